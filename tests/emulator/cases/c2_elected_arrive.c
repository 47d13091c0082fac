/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c2: 32 lanes read scales, one of them arrives for all without a warp sync
 * (Dao-AILab/flash-attention@7a802796): an arrival publishes what the arriving thread knows.
 *
 * expect: c at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0), empty = SMEM_BAR(s, 1);
    uint32_t tile;
    init_barriers(s, 2, 1, 1, 0, 0);
    if (thread_index() == 32) {
        for (tile = 0; tile < (uint32_t)p->tiles; tile++) {
            mbarrier_wait(empty, (tile & 1u) ^ 1u);
            mbarrier_arrive_expect_tx(full, 128);
            bulk_load(SMEM_STAGING(s), p->in + tile * 128u, 128, full); /* fault */
        }
    } else if (thread_index() < 32) {
        uint32_t sum = 0;
        for (tile = 0; tile < (uint32_t)p->tiles; tile++) {
            mbarrier_wait(full, tile & 1u);
            sum += smem_load_u32(SMEM_STAGING(s) + lane_index() * 4u); /* other */
            fence_proxy_async();
#ifdef FIXED
            warp_sync();
#endif
            if (elect_one()) {
                mbarrier_arrive(empty);
            }
        }
        global_store_f32(p->out + lane_index(), (float)sum);
    }
}

RACE_CASE(64, 1, 1, 0, 3);
