/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary rules: the box of a tensor store does not begin before the tensor, as that of a load
 * may; an H200 answers with an illegal instruction.
 *
 * expect: memory at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    uint32_t i;
#ifdef FIXED
    const int32_t y = 0;
#else
    const int32_t y = -1;
#endif
    for (i = thread_index(); i < STAGING_BYTES / 4u; i += 32u) {
        smem_store_u32(SMEM_STAGING(s) + i * 4u, i);
    }
    fence_proxy_async();
    block_sync();
    if (thread_index() == 0) {
        tma_store_2d(&p->d, SMEM_STAGING(s), 0, y); /* fault */
        bulk_commit();
        bulk_wait(0);
    }
}

RACE_CASE(32, 1, 1, 0, 1);
