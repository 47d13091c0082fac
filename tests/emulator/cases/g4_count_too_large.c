/* SPDX-License-Identifier: Apache-2.0 */
/*
 * g4: the wait leaves pending the very store that reads the buffer (deepseek-ai/DeepEP#657).
 *
 * expect: g at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    int32_t tile;
    for (tile = 0; tile < p->tiles; tile++) {
        if (thread_index() == 0) {
#ifdef FIXED
            bulk_wait_read(0);
#else
            bulk_wait_read(1);
#endif
        }
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
