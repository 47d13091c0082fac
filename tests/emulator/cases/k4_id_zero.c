/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k: two warps meet at named barrier 0, which is that of the block barrier (tile-ai/TileOPs#1633).
 *
 * expect: k at fault
 * under: high-first
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    if (warp_index() < 2) {
#ifdef FIXED
        barrier_sync(1, 64);
#else
        barrier_sync(0, 64); /* fault */
#endif
    }
    block_sync(); /* fault */
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
}

RACE_CASE(128, 1, 1, 0, 1);
