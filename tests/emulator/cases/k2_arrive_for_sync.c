/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k: a warp arrives in every tile and never waits (vllm-project/vllm#26026, where an early way out
 * did so: a hang): it arrives a second time before the barrier was reset.
 *
 * expect: k at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    int32_t tile;
    for (tile = 0; tile < p->tiles; tile++) {
        if (thread_index() < 32) {
#ifdef FIXED
            barrier_sync(1, 64);
#else
            barrier_arrive(1, 64); /* fault */
#endif
        } else {
            barrier_sync(1, 64);
        }
    }
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
}

RACE_CASE(64, 1, 1, 0, 3);
