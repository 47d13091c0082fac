/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d2: the parity of a one-stage ring starts anew with each tile, which is right only if a tile has
 * an even number of trips (tile-ai/tilelang#2674, #3087, #2927): from the second tile on, the wait
 * returns for a phase that was consumed before, or never.
 *
 * expect: d at fault
 */
#include "emulator/case.h"

HB_DEVICE void produce(const case_params *p, smem_addr s)
{
    uint32_t trip;
    for (trip = 0; trip < 2u * (uint32_t)p->tiles; trip++) {
        mbarrier_wait(SMEM_BAR(s, 1), (trip & 1u) ^ 1u);
        mbarrier_arrive_expect_tx(SMEM_BAR(s, 0), 128);
        bulk_load(SMEM_STAGING(s), p->in + trip * 128u, 128, SMEM_BAR(s, 0));
    }
}

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const smem_addr s = smem_base();
    uint32_t tile, trip, count = 0, sum = 0;
    init_barriers(s, 2, 1, 1, 0, 0);
    if (thread_index() == 32) {
        produce(p, s);
    } else if (thread_index() < 32) {
        for (tile = 0; tile < 2; tile++) {
            for (trip = 0; trip < (uint32_t)p->tiles; trip++) {
#ifdef FIXED
                mbarrier_wait(SMEM_BAR(s, 0), count & 1u);
#else
                mbarrier_wait(SMEM_BAR(s, 0), trip & 1u); /* fault */
#endif
                count++;
                sum += smem_load_u32(SMEM_STAGING(s) + lane_index() * 4u);
                fence_proxy_async();
                warp_sync();
                if (elect_one()) {
                    mbarrier_arrive(SMEM_BAR(s, 1));
                }
            }
        }
        global_store_u32((uint32_t *)p->out + lane_index(), sum);
    }
}

RACE_CASE(64, 1, 1, 0, 3);
