/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k: two groups of warps use the same barrier id at the same time (flashinfer-ai/flashinfer#4533:
 * one request in 25).  Where one group happens to meet before the other begins, nothing is wrong.
 *
 * expect: k at fault
 * under: low-first
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 160)
{
    const smem_addr s = smem_base();
    const smem_addr ready = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
    if (warp_index() < 2) {
        if (warp_index() == 1) {
            mbarrier_wait(ready, 0);
        }
        barrier_sync(1, 64); /* fault */
    } else {
#ifdef FIXED
        barrier_sync(2, 96);
#else
        barrier_sync(1, 96); /* fault */
#endif
        if (thread_index() == 64) {
            mbarrier_arrive(ready);
        }
    }
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
}

RACE_CASE(160, 1, 1, 0, 1);
