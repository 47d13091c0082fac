/* SPDX-License-Identifier: Apache-2.0 */
/*
 * n: 40 + 2 * 240 registers a thread are asked of a pool of 3 * 168 (NVIDIA/cutlass#2007,
 * tile-ai/tilelang#2406, #2567: a hang).
 *
 * expect: n at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 384)
{
    if (warp_index() < 4) {
        setmaxnreg_dec(40);
    } else {
#ifdef FIXED
        setmaxnreg_inc(232);
#else
        setmaxnreg_inc(240); /* fault */
#endif
    }
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
}

RACE_CASE(384, 1, 1, 168, 1);
