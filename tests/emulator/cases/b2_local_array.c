/* SPDX-License-Identifier: Apache-2.0 */
/*
 * b: the same across trips of a loop: the A array is local to the trip, its registers are not
 * (deepseek-ai/DeepGEMM#449, #448).
 *
 * expect: b at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    const smem_addr mine = SMEM_A(s, 0) + thread_index() * 16u;
    FRAGMENT_F32(acc, 4);
    int32_t tile;
    int i;
    load_operands(p, s);
    HB_NO_UNROLL
    for (tile = 0; tile < p->tiles; tile++) {
        FRAGMENT_U32(a, 4);
        HB_UNROLL
        for (i = 0; i < 4; i++) {
            a[i] = smem_load_u32(mine + (uint32_t)tile * 2048u + (uint32_t)i * 4u); /* fault */
        }
        wgmma_fence();
        wgmma_e4m3_rs_n8(acc, a, DESC_B(s, 0), tile != 0); /* other */
        wgmma_commit();
#ifdef FIXED
        wgmma_wait(0);
#endif
    }
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 4);
