/* SPDX-License-Identifier: Apache-2.0 */
/*
 * a6: with one k tile an early way out skips the wait at the end of the loop.
 *
 * expect: a at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    int32_t tile;
    int i;
    load_operands(p, s);
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0); /* other */
    wgmma_commit();
#ifdef FIXED
    wgmma_wait(0);
#else
    if (p->tiles > 1) {
        wgmma_wait(0);
    }
#endif
    for (tile = 1; tile < p->tiles; tile++) {
        wgmma_fence();
        wgmma_e4m3_ss_n8(acc, DESC_A(s, 1), DESC_B(s, 1), 1);
        wgmma_commit();
        wgmma_wait(0);
    }
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        global_store_f32(p->out + thread_index() * 4u + (uint32_t)i, acc[i]); /* fault */
    }
    wgmma_wait(0);
}

RACE_CASE(128, 1, 1, 0, 1);
