/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l: one thread edits a map, another copies through it without the acquiring tensormap fence
 * (facebookexperimental/triton#680).
 *
 * expect: l at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
    if (thread_index() == 32) {
        tensormap_replace_global_address(p->maps, p->in + 2048);
        fence_proxy_tensormap_release();
    }
    block_sync();
    if (thread_index() == 0) {
#ifdef FIXED
        fence_proxy_tensormap_acquire(p->maps);
#endif
        mbarrier_arrive_expect_tx(full, B_BYTES);
        tma_load_2d(SMEM_B(s, 0), p->maps, full, 0, 0); /* fault */
    }
    mbarrier_wait(full, 0);
    global_store_u32((uint32_t *)p->out + thread_index(),
                     smem_load_u32(SMEM_B(s, 0) + thread_index() * 4u));
}

RACE_CASE(64, 1, 1, 0, 1);
