/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d1: wgmma before the wait for the copies of its operands (facebookexperimental/CUTracer#106: it
 * passes as a rule, since TMA takes only some hundred cycles).
 *
 * expect: d at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
    FRAGMENT_F32(acc, 4);
    init_barriers(s, 1, 1, 0, 0, 0);
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(full, TILE_BYTES);
        tma_load_2d(SMEM_A(s, 0), &p->a, full, 0, 0);  /* other */
        tma_load_2d(SMEM_B(s, 0), &p->b, full, 0, 64); /* other */
    }
    block_sync();
#ifdef FIXED
    mbarrier_wait(full, 0);
#endif
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0); /* fault */
    wgmma_commit();
    wgmma_wait(0);
#ifndef FIXED
    mbarrier_wait(full, 0);
#endif
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
