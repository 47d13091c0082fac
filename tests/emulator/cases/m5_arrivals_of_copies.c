/* SPDX-License-Identifier: Apache-2.0 */
/*
 * m5: 32 threads arrive by cp.async.mbarrier.arrive.noinc, the barrier counts one: its phase
 * completes with the first.
 *
 * expect: d at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
#ifdef FIXED
    init_barriers(s, 1, 32, 0, 0, 0);
#else
    init_barriers(s, 1, 1, 0, 0, 0);
#endif
    if (warp_index() == 0) {
        cp_async_16(SMEM_STAGING(s) + thread_index() * 16u, p->in + thread_index() * 16u);
        cp_async_mbarrier_arrive_noinc(full); /* fault */
    } else {
        mbarrier_wait(full, 0);
        global_store_u32((uint32_t *)p->out + lane_index(),
                         smem_load_u32(SMEM_STAGING(s) + lane_index() * 16u));
    }
}

RACE_CASE(64, 1, 1, 0, 1);
