/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c: the stage is given back before the group that reads it is complete (NVIDIA/Fuser#3561, #3863,
 * #3865: sometimes wrong, sanitizers clean).
 *
 * expect: c at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 160)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0), empty = SMEM_BAR(s, 1);
    uint32_t tile;
    init_barriers(s, 2, 1, 4, 0, 0);
    if (thread_index() == 128) {
        for (tile = 0; tile < (uint32_t)p->tiles; tile++) {
            mbarrier_wait(empty, (tile & 1u) ^ 1u);
            mbarrier_arrive_expect_tx(full, TILE_BYTES);
            tma_load_2d(SMEM_A(s, 0), &p->a, full, 0, (int32_t)tile * 64);   /* fault */
            tma_load_2d(SMEM_B(s, 0), &p->b, full, 128, (int32_t)tile * 64); /* fault */
        }
    } else if (thread_index() < 128) {
        FRAGMENT_F32(acc, 4);
        for (tile = 0; tile < (uint32_t)p->tiles; tile++) {
            mbarrier_wait(full, tile & 1u);
            wgmma_fence();
            wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), tile != 0); /* other */
            wgmma_commit();
#ifdef FIXED
            wgmma_wait(0);
#endif
            if (elect_one()) {
                mbarrier_arrive(empty);
            }
            wgmma_wait(0);
        }
        store_result(p, acc);
    }
}

RACE_CASE(160, 1, 1, 0, 3);
