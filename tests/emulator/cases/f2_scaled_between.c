/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f: accumulators are scaled between two wgmma, with no fence before the second
 * (Dao-AILab/flash-attention#1658: ptxas says C7519).
 *
 * expect: f at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    int i;
    load_operands(p, s);
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0);
    wgmma_commit();
    wgmma_wait(0);
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        acc[i] = mul_rn(acc[i], 0.5f);
    }
#ifdef FIXED
    wgmma_fence();
#endif
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 1), DESC_B(s, 1), 1); /* fault */
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
