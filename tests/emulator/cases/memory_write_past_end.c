/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary accesses: a row count is not looked at before a store.
 *
 * expect: memory at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const uint32_t at = CASE_OUT_FLOATS - 32u + thread_index();
#ifdef FIXED
    if (at >= CASE_OUT_FLOATS) {
        return;
    }
#endif
    global_store_u32((uint32_t *)p->out + at, at); /* fault */
}

RACE_CASE(64, 1, 1, 0, 1);
