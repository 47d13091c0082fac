/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d1: the tile is waited for, its scales come on another barrier that is not.
 *
 * expect: d at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0), scales = SMEM_BAR(s, 1);
    FRAGMENT_F32(acc, 4);
    uint32_t scale;
    init_barriers(s, 2, 1, 1, 0, 0);
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(scales, 512);
        bulk_load(SMEM_STAGING(s), p->in, 512, scales); /* other */
        mbarrier_arrive_expect_tx(full, TILE_BYTES);
        tma_load_2d(SMEM_A(s, 0), &p->a, full, 0, 0);
        tma_load_2d(SMEM_B(s, 0), &p->b, full, 0, 64);
    }
    mbarrier_wait(full, 0);
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0);
    wgmma_commit();
#ifdef FIXED
    mbarrier_wait(scales, 0);
#endif
    scale = smem_load_u32(SMEM_STAGING(s) + thread_index() * 4u); /* fault */
    wgmma_wait(0);
#ifndef FIXED
    mbarrier_wait(scales, 0);
#endif
    acc[0] = mul_rn(acc[0], (float)(scale & 15u));
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
