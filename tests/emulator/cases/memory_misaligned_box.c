/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary rules: along rows, the box of a tensor copy begins at a multiple of 16 bytes; an H200
 * answers anything else with an illegal instruction.
 *
 * expect: memory at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
#ifdef FIXED
    const int32_t x = 16;
#else
    const int32_t x = 8;
#endif
    init_barriers(s, 1, 1, 0, 0, 0);
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(full, B_BYTES);
        tma_load_2d(SMEM_B(s, 0), &p->b, full, x, 0); /* fault */
    }
    mbarrier_wait(full, 0);
    global_store_u32((uint32_t *)p->out + thread_index(),
                     smem_load_u32(SMEM_B(s, 0) + thread_index() * 4u));
}

RACE_CASE(32, 1, 1, 0, 1);
