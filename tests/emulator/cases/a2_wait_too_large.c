/* SPDX-License-Identifier: Apache-2.0 */
/*
 * a2: four groups, scaled after a wait that leaves three of them pending: the main loop of
 * sgl-project/sglang#10572 (W4A8 mixture of experts: a quarter of the elements wrong).
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
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        wgmma_e4m3_ss_n8(acc, DESC_STEP(DESC_A(s, 0), i), DESC_STEP(DESC_B(s, 0), i), /* other */
                         i != 0);                                                     /* other */
        wgmma_commit();
    }
#ifdef FIXED
    wgmma_wait(0);
#else
    wgmma_wait(3);
#endif
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        acc[i] = mul_rn(acc[i], 0.5f); /* fault */
    }
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
