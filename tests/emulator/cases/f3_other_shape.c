/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f: two wgmma of different n on one accumulator, with no fence between them: they are ordered only
 * if their shapes are the same.
 *
 * expect: f at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 8);
    load_operands(p, s);
    wgmma_fence();
    wgmma_e4m3_ss_n16(acc, DESC_A(s, 0), DESC_B(s, 0), 0);
#ifdef FIXED
    wgmma_commit();
    wgmma_wait(0);
    wgmma_fence();
#endif
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 1), DESC_B(s, 1), 1); /* fault */
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
