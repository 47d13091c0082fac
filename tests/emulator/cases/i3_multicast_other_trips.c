/* SPDX-License-Identifier: Apache-2.0 */
/*
 * i: two blocks share a tile by multicast but make different numbers of trips: the last copy lands
 * in a block that neither expects nor awaits it.
 *
 * expect: i at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
#ifdef FIXED
    const int32_t trips = p->tiles;
#else
    const int32_t trips = cluster_rank() == 0 ? p->tiles : p->tiles - 1;
#endif
    uint32_t sum = 0;
    int32_t trip;
    init_barriers(s, 2, 1, 1, 0, 0);
    cluster_sync();
    for (trip = 0; trip < trips; trip++) {
        const smem_addr full = SMEM_BAR(s, trip);
        if (thread_index() == 0) {
            mbarrier_arrive_expect_tx(full, B_BYTES);
            if (cluster_rank() == 0) {
                tma_load_2d_multicast(SMEM_B(s, trip), &p->b, full, trip * 128, 0, 3); /* fault */
            }
        }
        mbarrier_wait(full, 0);
        sum += smem_load_u32(SMEM_B(s, trip) + thread_index() * 4u);
    }
    global_store_u32((uint32_t *)p->out + cluster_rank() * 32u + thread_index(), sum);
    cluster_sync();
}

RACE_CASE(32, 2, 2, 0, 2);
