/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h: a barrier is initialised and used by the other block of the cluster without
 * fence.mbarrier_init (NVIDIA/cutlass#2030: four pipelines lacked it).
 *
 * expect: h at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr bar = SMEM_BAR(s, 0);
    if (thread_index() == 0) {
        mbarrier_init(bar, 1);
#ifdef FIXED
        fence_mbarrier_init();
#endif
    }
    cluster_sync();
    if (thread_index() == 0) {
        mbarrier_arrive_cluster(map_shared_rank(bar, cluster_rank() ^ 1u)); /* fault */
    }
    mbarrier_wait(bar, 0);
    global_store_u32((uint32_t *)p->out + cluster_rank() * 32u + thread_index(), thread_index());
    cluster_sync();
}

RACE_CASE(32, 2, 2, 0, 1);
