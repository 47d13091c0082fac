/* SPDX-License-Identifier: Apache-2.0 */
/*
 * a5: the commit is forgotten, so that the wait has nothing to wait for.
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
#ifdef FIXED
    wgmma_commit();
#endif
    wgmma_wait(0);
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        global_store_f32(p->out + thread_index() * 4u + (uint32_t)i, acc[i]); /* fault */
    }
#ifndef FIXED
    wgmma_commit();
    wgmma_wait(0);
#endif
}

RACE_CASE(128, 1, 1, 0, 1);
