/* SPDX-License-Identifier: Apache-2.0 */
/*
 * i: a block arrives at its peer's barrier without a cluster barrier at the start: the peer may not
 * run yet, let alone have initialised it.
 *
 * expect: h at fault
 * expect: i at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr bar = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
#ifdef FIXED
    cluster_sync();
#endif
    if (thread_index() == 0) {
        mbarrier_arrive_cluster(map_shared_rank(bar, cluster_rank() ^ 1u)); /* fault */
    }
    mbarrier_wait(bar, 0);
    global_store_u32((uint32_t *)p->out + cluster_rank() * 32u + thread_index(), thread_index());
    cluster_sync();
}

RACE_CASE(32, 2, 2, 0, 1);
