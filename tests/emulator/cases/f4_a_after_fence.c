/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f: the A registers are loaded between the fence and the wgmma that reads them.
 *
 * expect: f at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    FRAGMENT_U32(a, 4);
    int i;
    load_operands(p, s);
#ifndef FIXED
    wgmma_fence();
#endif
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        a[i] = smem_load_u32(SMEM_A(s, 0) + thread_index() * 16u + (uint32_t)i * 4u);
    }
#ifdef FIXED
    wgmma_fence();
#endif
    wgmma_e4m3_rs_n8(acc, a, DESC_B(s, 0), 0); /* fault */
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
