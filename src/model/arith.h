/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fp32 operations that stand between tensor-core instructions: promotion, scales, epilogue.
 *
 * Kernels, CPU model and emulator share these names (decision 8), so that a formula written with
 * them means the same bits everywhere.  Each operation rounds once, to nearest, ties to even,
 * keeps subnormals and returns the GPU's single NaN, 0x7fffffff, whatever the NaN operands were.
 *
 * Needs the environment of fp_env.h, IEEE 754 arithmetic in fp32 proper (no wider intermediate,
 * no contraction of a*b+c: -ffp-contract=off) and never -ffast-math.
 */
#ifndef HALFBYTE_MODEL_ARITH_H
#define HALFBYTE_MODEL_ARITH_H

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "format/bits.h"
#include "format/fp8.h"
#include "format/half.h"

static_assert(FLT_EVAL_METHOD == 0, "fp32 expressions must be evaluated in fp32");
#ifdef __FAST_MATH__
#error "build without -ffast-math: results are compared bit for bit"
#endif

/* The value itself, or the canonical NaN in place of any NaN. */
static inline float nan_canonical(float value)
{
    return value != value ? float_from_bits(FLOAT_BITS_NAN) : value;
}

/* a * b + c, rounded once: FFMA. */
static inline float fma_rn(float a, float b, float c)
{
    return nan_canonical(fmaf(a, b, c));
}

/* a * b: FMUL. */
static inline float mul_rn(float a, float b)
{
    return nan_canonical(a * b);
}

/* a + b: FADD. */
static inline float add_rn(float a, float b)
{
    return nan_canonical(a + b);
}

/* a / b, correctly rounded: div.rn.f32. */
static inline float div_rn(float a, float b)
{
    return nan_canonical(a / b);
}

/* The larger of a and b, NaN if either is NaN, and +0 above -0: max.NaN.f32. */
static inline float max_nan(float a, float b)
{
    if (a != a || b != b)
        return float_from_bits(FLOAT_BITS_NAN);
    if (a == b) /* equal values differ in bits only as +0 and -0: AND clears the sign */
        return float_from_bits(bits_from_float(a) & bits_from_float(b));
    return a > b ? a : b;
}

/* Nearest-even bf16; NaN -> 0x7fff: cvt.rn.bf16.f32. */
static inline uint16_t cvt_bf16(float value)
{
    return bf16_encode(value);
}

/* Nearest-even fp16; overflow -> infinity, NaN -> 0x7fff: cvt.rn.f16.f32. */
static inline uint16_t cvt_f16(float value)
{
    return fp16_encode(value);
}

/* Nearest-even e4m3, saturating at +-448 (infinities too), NaN -> 0x7f: cvt.rn.satfinite.e4m3. */
static inline uint8_t cvt_e4m3(float value)
{
    return e4m3_encode(value);
}

#endif
