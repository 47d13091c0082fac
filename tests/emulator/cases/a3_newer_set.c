/* SPDX-License-Identifier: Apache-2.0 */
/*
 * a3: two accumulators take turns, and the wait that covers the older is taken for the newer.
 *
 * expect: a at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(older, 4);
    FRAGMENT_F32(newer, 4);
    FRAGMENT_F32(sum, 4);
    int i;
    load_operands(p, s);
    wgmma_fence();
    wgmma_e4m3_ss_n8(older, DESC_A(s, 0), DESC_B(s, 0), 0);
    wgmma_commit();
    wgmma_e4m3_ss_n8(newer, DESC_A(s, 1), DESC_B(s, 1), 0); /* other */
    wgmma_commit();
    wgmma_wait(1);
    HB_UNROLL
    for (i = 0; i < 4; i++) {
#ifdef FIXED
        sum[i] = older[i];
#else
        sum[i] = newer[i]; /* fault */
#endif
    }
    wgmma_wait(0);
    HB_UNROLL
    for (i = 0; i < 4; i++) {
#ifdef FIXED
        sum[i] = add_rn(sum[i], newer[i]);
#else
        sum[i] = add_rn(sum[i], older[i]);
#endif
    }
    store_result(p, sum);
}

RACE_CASE(128, 1, 1, 0, 1);
