/* SPDX-License-Identifier: Apache-2.0 */
/*
 * g5: a later part of the kernel reads what a store writes, after a wait for its source alone.
 *
 * expect: g at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    smem_store_f32(SMEM_STAGING(s) + thread_index() * 4u, (float)thread_index());
    fence_proxy_async();
    block_sync();
    if (thread_index() == 0) {
        bulk_store(p->mid, SMEM_STAGING(s), 512); /* other */
        bulk_commit();
#ifdef FIXED
        bulk_wait(0);
#else
        bulk_wait_read(0);
#endif
    }
    block_sync();
    global_store_f32(p->out + thread_index(), global_load_f32(p->mid + thread_index())); /* fault */
    if (thread_index() == 0) {
        bulk_wait(0);
    }
}

RACE_CASE(128, 1, 1, 0, 1);
