/* SPDX-License-Identifier: Apache-2.0 */
/*
 * g1: the staging buffer is refilled in the second tile although the store of the first may not
 * have read it.
 *
 * expect: g at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    int32_t tile;
    for (tile = 0; tile < p->tiles; tile++) {
#ifdef FIXED
        if (thread_index() == 0) {
            bulk_wait_read(0);
        }
#endif
        block_sync();
        smem_store_f32(SMEM_STAGING(s) + thread_index() * 4u, (float)tile); /* fault */
        fence_proxy_async();
        block_sync();
        if (thread_index() == 0) {
            bulk_store(p->out + tile * 128, SMEM_STAGING(s), 512); /* other */
            bulk_commit();
        }
    }
    if (thread_index() == 0) {
        bulk_wait(0);
    }
}

RACE_CASE(128, 1, 1, 0, 3);
