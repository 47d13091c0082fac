/* SPDX-License-Identifier: Apache-2.0 */
/* A host program's floating-point environment as hostile as the CPU allows. */
#ifndef HALFBYTE_TESTS_MODEL_HOST_FP_H
#define HALFBYTE_TESTS_MODEL_HOST_FP_H

#include <fenv.h>
#include <stdbool.h>

#include "format/bits.h"
#include "model/fp_env.h"

/* Rounds toward zero; flushes subnormal results and operands where there is a switch for it. */
static inline void host_fp_set_hostile(void)
{
    fesetround(FE_TOWARDZERO);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ, DAZ */
#elif defined(__aarch64__)
    fp_env_restore(fp_env_save() | 1u << 24); /* FZ */
#endif
}

/* True if this thread rounds to nearest even and keeps subnormal operands and results. */
static inline bool host_fp_is_exact(void)
{
    /* volatile: the operations must happen here, not at compile time or elsewhere */
    volatile float one = 1.0f, half_ulp = 0x1p-24f, tie = 0x1.8p-23f, tiny = 0x1p-126f;
    volatile float half = 0.5f, least = 0x1p-149f, huge = 0x1p100f;
    volatile float up = one + tie, down = one + half_ulp, negative = -one - tie;
    volatile float subnormal = tiny * half, from_subnormal = least * huge;
    return bits_from_float(up) == 0x3f800002 && bits_from_float(down) == 0x3f800000 &&
           bits_from_float(negative) == 0xbf800002 && bits_from_float(subnormal) == 0x00400000 &&
           bits_from_float(from_subnormal) == bits_from_float(0x1p-49f);
}

#endif
