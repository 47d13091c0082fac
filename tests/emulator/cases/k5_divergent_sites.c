/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k: the lanes of one warp reach bar.sync, which is aligned, at different places
 * (mlc-ai/TIRx-kernels#21).
 *
 * expect: k at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 64)
{
#ifdef FIXED
    block_sync();
#else
    if (lane_index() < 16) {
        block_sync(); /* fault */
    } else {
        block_sync(); /* fault */
    }
#endif
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
}

RACE_CASE(64, 1, 1, 0, 1);
