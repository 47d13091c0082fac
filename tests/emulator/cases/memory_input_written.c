/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary accesses: a kernel writes to a buffer that is an input.
 *
 * expect: memory at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
#ifdef FIXED
    uint8_t *at = (uint8_t *)p->out;
#else
    uint8_t *at = (uint8_t *)(uintptr_t)p->in;
#endif
    global_store_u8(at + thread_index(), (uint8_t)thread_index()); /* fault */
}

RACE_CASE(32, 1, 1, 0, 1);
