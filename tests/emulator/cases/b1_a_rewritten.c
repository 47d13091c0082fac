/* SPDX-License-Identifier: Apache-2.0 */
/*
 * b: A of the next k block is dequantised into registers that the wgmma before still reads
 * (NVIDIA/cutlass#1931: the wait ran at the last k block only).
 *
 * expect: b at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    const smem_addr mine = SMEM_A(s, 0) + thread_index() * 16u;
    FRAGMENT_F32(acc, 4);
    FRAGMENT_U32(a, 4);
    int i;
    load_operands(p, s);
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        a[i] = smem_load_u32(mine + (uint32_t)i * 4u);
    }
    wgmma_fence();
    wgmma_e4m3_rs_n8(acc, a, DESC_B(s, 0), 0); /* other */
    wgmma_commit();
#ifdef FIXED
    wgmma_wait(0);
#endif
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        a[i] = smem_load_u32(mine + 4096u + (uint32_t)i * 4u); /* fault */
    }
    wgmma_fence();
    wgmma_e4m3_rs_n8(acc, a, DESC_B(s, 1), 1);
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
