/* SPDX-License-Identifier: Apache-2.0 */
/*
 * m2: one path commits once where the other commits twice, and a constant wait count fits the other
 * alone.
 *
 * expect: a at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(first, 4);
    FRAGMENT_F32(second, 4);
    int i;
    load_operands(p, s);
    wgmma_fence();
    wgmma_e4m3_ss_n8(first, DESC_A(s, 0), DESC_B(s, 0), 0); /* other */
#ifdef FIXED
    wgmma_commit();
#else
    if (p->tiles > 1) {
        wgmma_commit();
    }
#endif
    wgmma_e4m3_ss_n8(second, DESC_A(s, 1), DESC_B(s, 1), 0);
    wgmma_commit();
    wgmma_wait(1);
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        first[i] = mul_rn(first[i], 0.5f); /* fault */
    }
    wgmma_wait(0);
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        first[i] = add_rn(first[i], second[i]);
    }
    store_result(p, first);
}

RACE_CASE(128, 1, 1, 0, 1);
