/* SPDX-License-Identifier: Apache-2.0 */
/*
 * g6: the block ends while a store has yet to read its shared memory.
 *
 * expect: g at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    smem_store_f32(SMEM_STAGING(s) + thread_index() * 4u, (float)thread_index());
    fence_proxy_async();
    block_sync();
    if (thread_index() == 0) {
        bulk_store(p->out, SMEM_STAGING(s), 512); /* fault */
        bulk_commit();
#ifdef FIXED
        bulk_wait_read(0);
#endif
    }
}

RACE_CASE(128, 1, 1, 0, 1);
