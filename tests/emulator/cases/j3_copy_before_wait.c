/* SPDX-License-Identifier: Apache-2.0 */
/*
 * j: the first copy is issued ahead of griddepcontrol.wait, although the grid before writes its
 * source.
 *
 * expect: j at fault
 */
#include "emulator/case.h"

KERNEL(CASE_FIRST, case_params, p, 64)
{
    grid_launch_dependents();
    global_store_u32((uint32_t *)p->mid + thread_index(), thread_index() * 3u);
}

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
    if (thread_index() == 0) {
#ifdef FIXED
        grid_dependency_wait();
#endif
        mbarrier_arrive_expect_tx(full, 256);
        bulk_load(SMEM_STAGING(s), p->mid, 256, full); /* fault */
    }
    grid_dependency_wait();
    mbarrier_wait(full, 0);
    global_store_u32((uint32_t *)p->out + thread_index(),
                     smem_load_u32(SMEM_STAGING(s) + thread_index() * 4u));
}

RACE_PAIR(64);
