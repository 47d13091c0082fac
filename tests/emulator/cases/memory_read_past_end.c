/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary accesses: the last thread reads past the end of a buffer.
 *
 * expect: memory at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    uint32_t at = CASE_OUT_FLOATS - 32u + thread_index();
#ifndef FIXED
    at += 1u;
#endif
    global_store_f32(p->out + thread_index(), global_load_f32(p->mid + at)); /* fault */
}

RACE_CASE(32, 1, 1, 0, 1);
