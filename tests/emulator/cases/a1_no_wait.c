/* SPDX-License-Identifier: Apache-2.0 */
/*
 * a1: accumulators read with no wait at all: the first k tile of sgl-project/sglang#10572.
 *
 * expect: a at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    int i;
    load_operands(p, s);
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0); /* other */
    wgmma_commit();
#ifdef FIXED
    wgmma_wait(0);
#endif
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        acc[i] = mul_rn(acc[i], 0.5f); /* fault */
    }
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
