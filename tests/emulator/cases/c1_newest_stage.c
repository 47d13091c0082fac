/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c: one group may stay pending, and the stage of just that group is given back
 * (facebookexperimental/triton#1278).
 *
 * expect: c at fault, other other
 */
#include "emulator/case.h"

HB_DEVICE void produce(const case_params *p, smem_addr s)
{
    uint32_t tile;
    for (tile = 0; tile < (uint32_t)p->tiles; tile++) {
        const smem_addr full = SMEM_BAR(s, tile & 1u);
        mbarrier_wait(SMEM_BAR(s, 2u + (tile & 1u)), ((tile >> 1) & 1u) ^ 1u);
        mbarrier_arrive_expect_tx(full, TILE_BYTES);
        tma_load_2d(SMEM_A(s, tile & 1u), &p->a, full, 0, (int32_t)tile * 32);   /* fault */
        tma_load_2d(SMEM_B(s, tile & 1u), &p->b, full, 128, (int32_t)tile * 32); /* fault */
    }
}

KERNEL(CASE_KERNEL, case_params, p, 160)
{
    const smem_addr s = smem_base();
    uint32_t tile;
    init_barriers(s, 4, 1, 1, 4, 4);
    if (thread_index() == 128) {
        produce(p, s);
    } else if (thread_index() < 128) {
        FRAGMENT_F32(acc, 4);
        for (tile = 0; tile < (uint32_t)p->tiles; tile++) {
            const uint32_t stage = tile & 1u;
            mbarrier_wait(SMEM_BAR(s, stage), (tile >> 1) & 1u);
            wgmma_fence();
            wgmma_e4m3_ss_n8(acc, DESC_A(s, stage), DESC_B(s, stage), tile != 0); /* other */
            wgmma_commit();
            wgmma_wait(1);
#ifdef FIXED
            if (tile != 0 && elect_one()) {
                mbarrier_arrive(SMEM_BAR(s, 2u + (stage ^ 1u)));
            }
#else
            if (elect_one()) {
                mbarrier_arrive(SMEM_BAR(s, 2u + stage));
            }
#endif
        }
        wgmma_wait(0);
        store_result(p, acc);
    }
}

RACE_CASE(160, 1, 1, 0, 6);
