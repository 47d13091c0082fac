/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h: one thread initialises the barrier, the others use it without a block barrier in between
 * (NVIDIA/Fuser#1552: a hang).
 *
 * expect: h at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
    if (thread_index() == 0) {
        mbarrier_init(full, 1);
        fence_mbarrier_init();
    }
#ifdef FIXED
    block_sync();
#endif
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(full, 256);
        bulk_load(SMEM_STAGING(s), p->in, 256, full);
    }
    mbarrier_wait(full, 0); /* fault */
    global_store_u32((uint32_t *)p->out + thread_index(),
                     smem_load_u32(SMEM_STAGING(s) + thread_index() * 4u));
}

RACE_CASE(64, 1, 1, 0, 1);
