/* SPDX-License-Identifier: Apache-2.0 */
/*
 * m1: the warps of one warpgroup execute wgmma at different places.
 *
 * expect: m at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    load_operands(p, s);
    wgmma_fence();
#ifdef FIXED
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0);
#else
    if (warp_index() < 2) {
        wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0); /* fault */
    } else {
        wgmma_e4m3_ss_n8(acc, DESC_A(s, 1), DESC_B(s, 1), 0); /* fault */
    }
#endif
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
