/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l: the map of a store is edited while the store is in flight (NVIDIA/cutlass#2162: a patch of the
 * result in another matrix, very rarely).
 *
 * expect: l at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    uint32_t i;
    for (i = thread_index(); i < STAGING_BYTES / 4u; i += 32u) {
        smem_store_u32(SMEM_STAGING(s) + i * 4u, i);
    }
    fence_proxy_async();
    block_sync();
    if (thread_index() == 0) {
        tma_store_2d(p->maps + 1, SMEM_STAGING(s), 0, 0); /* other */
        bulk_commit();
#ifdef FIXED
        bulk_wait_read(0);
#endif
        tensormap_replace_global_address(p->maps + 1, p->mid); /* fault */
        fence_proxy_tensormap_release();
        fence_proxy_tensormap_acquire(p->maps + 1);
        tma_store_2d(p->maps + 1, SMEM_STAGING(s), 0, 0);
        bulk_commit();
        bulk_wait(0);
    }
}

RACE_CASE(32, 1, 1, 0, 1);
