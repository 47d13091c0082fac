/* SPDX-License-Identifier: Apache-2.0 */
/*
 * e: a staging buffer written by ordinary stores, no proxy fence before the TMA store reads it
 * (tile-ai/TileOPs#1574: 3 % of the calls wrong).
 *
 * expect: e at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    smem_store_f32(SMEM_STAGING(s) + thread_index() * 4u, (float)thread_index()); /* other */
#ifdef FIXED
    fence_proxy_async();
#endif
    block_sync();
    if (thread_index() == 0) {
        bulk_store(p->out, SMEM_STAGING(s), 512); /* fault */
        bulk_commit();
        bulk_wait(0);
    }
}

RACE_CASE(128, 1, 1, 0, 1);
