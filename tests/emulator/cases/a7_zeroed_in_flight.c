/* SPDX-License-Identifier: Apache-2.0 */
/*
 * a: the accumulators are zeroed for the next tile while the tensor core still adds to them.
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
    store_result(p, acc);
#endif
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        acc[i] = 0.0f; /* fault */
    }
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 1), DESC_B(s, 1), 1);
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
