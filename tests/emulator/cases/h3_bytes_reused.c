/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h: the bytes of a barrier that still lives serve as a buffer; mbarrier.inval is missing.
 *
 * expect: h at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr bar = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
    if (thread_index() == 0) {
        mbarrier_arrive(bar);
    }
    mbarrier_wait(bar, 0);
    block_sync();
    if (thread_index() == 0) {
#ifdef FIXED
        mbarrier_inval(bar);
#endif
        smem_store_u32(bar, 17u); /* fault */
        global_store_u32((uint32_t *)p->out, smem_load_u32(bar));
    }
}

RACE_CASE(32, 1, 1, 0, 1);
