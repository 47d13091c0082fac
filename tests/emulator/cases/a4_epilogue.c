/* SPDX-License-Identifier: Apache-2.0 */
/*
 * a4: the loop waits at the head of each trip for the trip before; the epilogue behind it reads
 * what the last trip issued.
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
    for (tile = 0; tile < p->tiles; tile++) {
        wgmma_wait(0);
        wgmma_fence();
        wgmma_e4m3_ss_n8(acc, DESC_A(s, tile & 1), DESC_B(s, tile & 1), tile != 0); /* other */
        wgmma_commit();
    }
#ifdef FIXED
    wgmma_wait(0);
#endif
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        global_store_f32(p->out + thread_index() * 4u + (uint32_t)i, acc[i]); /* fault */
    }
    wgmma_wait(0);
}

RACE_CASE(128, 1, 1, 0, 3);
