/* SPDX-License-Identifier: Apache-2.0 */
/*
 * p: the arrive of the own block's barriers is used on an address in the peer (apache/tvm#20074).
 *
 * expect: p at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr bar = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
    cluster_sync();
    if (thread_index() == 0) {
        const smem_addr peer = map_shared_rank(bar, cluster_rank() ^ 1u);
#ifdef FIXED
        mbarrier_arrive_cluster(peer);
#else
        mbarrier_arrive(peer); /* fault */
#endif
    }
    mbarrier_wait(bar, 0);
    global_store_u32((uint32_t *)p->out + cluster_rank() * 32u + thread_index(), thread_index());
    cluster_sync();
}

RACE_CASE(32, 2, 2, 0, 1);
