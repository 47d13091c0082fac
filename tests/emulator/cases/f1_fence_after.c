/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f: wgmma.fence stands behind the first wgmma instead of before it (sonos/tract#2884,
 * HPMLL/NVIDIA-Hopper-Benchmark#1).
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
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        acc[i] = 1.0f;
    }
#ifdef FIXED
    wgmma_fence();
#endif
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 1); /* fault */
#ifndef FIXED
    wgmma_fence();
#endif
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
