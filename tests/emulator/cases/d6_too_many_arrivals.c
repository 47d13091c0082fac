/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d: the barrier counts warps, but every lane arrives: phases run ahead of the consumers.
 *
 * expect: d at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 160)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0), empty = SMEM_BAR(s, 1);
    uint32_t tile;
    init_barriers(s, 2, 1, 4, 0, 0);
    if (thread_index() == 128) {
        for (tile = 0; tile < (uint32_t)p->tiles; tile++) {
            mbarrier_wait(empty, (tile & 1u) ^ 1u);
            mbarrier_arrive_expect_tx(full, 512);
            bulk_load(SMEM_STAGING(s), p->in + tile * 512u, 512, full);
        }
    } else if (thread_index() < 128) {
        uint32_t sum = 0;
        for (tile = 0; tile < (uint32_t)p->tiles; tile++) {
            mbarrier_wait(full, tile & 1u);
            sum += smem_load_u32(SMEM_STAGING(s) + thread_index() * 4u);
            fence_proxy_async();
            warp_sync();
#ifdef FIXED
            if (elect_one()) {
                mbarrier_arrive(empty);
            }
#else
            mbarrier_arrive(empty); /* fault */
#endif
        }
        global_store_u32((uint32_t *)p->out + thread_index(), sum);
    }
}

RACE_CASE(160, 1, 1, 0, 2);
