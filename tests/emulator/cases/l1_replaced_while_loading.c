/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l: a tensor map in global memory is pointed at the next group while a load through it is in
 * flight (deepseek-ai/DeepGEMM#343, #430, #431: one element in a thousand wrong); cured by waiting
 * for the loads.
 *
 * expect: l at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
    int32_t group;
    init_barriers(s, 1, 1, 0, 0, 0);
    for (group = 0; group < p->tiles; group++) {
        if (thread_index() == 0) {
            if (group != 0) {
                tensormap_replace_global_address(p->maps, p->in + group * 2048); /* fault */
                fence_proxy_tensormap_release();
                fence_proxy_tensormap_acquire(p->maps);
            }
            mbarrier_arrive_expect_tx(full, B_BYTES);
            tma_load_2d(SMEM_B(s, group & 1), p->maps, full, 0, 0); /* other */
#ifdef FIXED
            mbarrier_wait(full, (uint32_t)group & 1u);
#else
            if (group != 0) {
                mbarrier_wait(full, 0);
                mbarrier_wait(full, 1);
            }
#endif
        }
    }
    block_sync();
    if (thread_index() == 0) {
        global_store_u32((uint32_t *)p->out, smem_load_u32(SMEM_B(s, 0)));
        global_store_u32((uint32_t *)p->out + 1, smem_load_u32(SMEM_B(s, 1)));
    }
}

RACE_CASE(32, 1, 1, 0, 2);
