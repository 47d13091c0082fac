/* SPDX-License-Identifier: Apache-2.0 */
/*
 * e: the issuer fences before the barrier, the writers do not: a fence covers what its thread knows
 * at that moment.
 *
 * expect: e at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    uint32_t i;
    for (i = thread_index(); i < STAGING_BYTES / 4u; i += 128u) {
        smem_store_u32(SMEM_STAGING(s) + i * 4u, i); /* other */
    }
#ifdef FIXED
    fence_proxy_async();
#else
    if (thread_index() == 0) {
        fence_proxy_async();
    }
#endif
    block_sync();
    if (thread_index() == 0) {
        tma_store_2d(&p->d, SMEM_STAGING(s), 0, 0); /* fault */
        bulk_commit();
        bulk_wait(0);
    }
}

RACE_CASE(128, 1, 1, 0, 1);
