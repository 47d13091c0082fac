/* SPDX-License-Identifier: Apache-2.0 */
/*
 * i: a block ends while its peer may still have to arrive at a barrier in its shared memory.
 *
 * expect: i at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr bar = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
    cluster_sync();
    if (cluster_rank() == 1 && thread_index() == 0) {
        mbarrier_arrive_cluster(map_shared_rank(bar, 0)); /* fault */
    }
    global_store_u32((uint32_t *)p->out + cluster_rank() * 32u + thread_index(), thread_index());
#ifdef FIXED
    cluster_sync();
#endif
}

RACE_CASE(32, 2, 2, 0, 1);
