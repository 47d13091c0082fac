/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d4: the bytes of one of two copies are announced; the phase may complete with the other copy
 * still on its way.
 *
 * expect: d at mma, other load
 * expect: d at wait
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
    FRAGMENT_F32(acc, 4);
    init_barriers(s, 1, 1, 0, 0, 0);
    if (thread_index() == 0) {
#ifdef FIXED
        mbarrier_arrive_expect_tx(full, TILE_BYTES);
#else
        mbarrier_arrive_expect_tx(full, A_BYTES);
#endif
        tma_load_2d(SMEM_A(s, 0), &p->a, full, 0, 0);  /* load */
        tma_load_2d(SMEM_B(s, 0), &p->b, full, 0, 64); /* load */
    }
    mbarrier_wait(full, 0); /* wait */
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0); /* mma */
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
