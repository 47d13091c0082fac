/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k: the threads that meet at a named barrier do not agree on how many they are
 * (Dao-AILab/quack#146).
 *
 * expect: k at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    if (warp_index() < 3) {
        barrier_sync(1, 128); /* fault */
    } else {
#ifdef FIXED
        barrier_sync(1, 128);
#else
        barrier_sync(1, 96); /* fault */
#endif
    }
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
}

RACE_CASE(128, 1, 1, 0, 1);
