/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tensor-core instruction, step by step:
 *
 *   1. Specials.  A NaN among a, b and c, infinity * 0, or infinities of both signs among the
 *      products and c give NaN; otherwise an infinite product or c gives that infinity.
 *   2. Decode without normalising: |value| = significand * 2^(e - mantissa bits).  A subnormal
 *      keeps the smallest normal exponent and has a small significand.
 *   3. A product is the exact integer significand_a * significand_b, in [0, 4) as a fraction, with
 *      the exponent e_a + e_b.  It is not renormalised.
 *   4. emax is the largest exponent among the nonzero products and a nonzero c.
 *   5. Every term, c too, is cut to `aligned_bits` fraction bits below 2^emax: its magnitude is
 *      truncated toward zero, with no guard, sticky or rounding bit.
 *   6. The cut terms are integers in units of 2^(emax - aligned_bits); their sum is exact, so the
 *      order of the products inside a block cannot matter.
 *   7. The sum is truncated toward zero to `result_bits` fraction bits after normalisation, to
 *      that quantum below 2^-126, and becomes infinite at 2^128.  A zero sum is +0.
 */
#include "model/tensor_core.h"

#include <stdbool.h>
#include <stddef.h>

#include "format/bits.h"

enum {
    FP32_MANTISSA_BITS = 23,
    FP32_BIAS = 127,
    FP32_EMIN = -126, /* exponent of the smallest normal and of every subnormal */
    FP32_EMAX = 127,
    EXPONENT_NONE = -32768, /* below every exponent that a term can have */
    MAX_TERMS = TENSOR_CORE_MAX_K + 1,
};

struct operand_format {
    int k; /* products per instruction */
    int exponent_bits;
    int mantissa_bits;
    bool has_infinity; /* false: the only special codes are the NaNs with all bits set */
    int aligned_bits;  /* fraction bits below emax that a term keeps */
    int result_bits;   /* fraction bits of the normalised result */
    int least_emax;    /* lower clamp of emax; seen only in bf16 sums below about 2^-132, c = 0 */
};

static const struct operand_format formats[] = {
    [TENSOR_CORE_E4M3] = {32, 4, 3, false, 13, 13, EXPONENT_NONE},
    [TENSOR_CORE_E5M2] = {32, 5, 2, true, 13, 13, EXPONENT_NONE},
    [TENSOR_CORE_BF16] = {16, 8, 7, true, 25, 23, -133},
    [TENSOR_CORE_FP16] = {16, 5, 10, true, 25, 23, -133},
};

enum operand_kind { KIND_ZERO, KIND_FINITE, KIND_INFINITE, KIND_NAN };

/* |value| = significand * 2^(exponent - mantissa bits of its format). */
struct operand {
    enum operand_kind kind;
    bool negative;
    uint32_t significand;
    int exponent;
};

/* The finite nonzero terms of the sum, |term| = significand * 2^scale, and what else was seen. */
struct term_list {
    int count;
    int emax;
    uint64_t significand[MAX_TERMS];
    int scale[MAX_TERMS];
    bool negative[MAX_TERMS];
    bool nan;
    bool positive_infinity;
    bool negative_infinity;
};

static struct operand operand_decode(const struct operand_format *format, uint32_t code)
{
    const uint32_t mantissa_mask = (1u << format->mantissa_bits) - 1;
    const uint32_t exponent_mask = (1u << format->exponent_bits) - 1;
    const uint32_t mantissa = code & mantissa_mask;
    const uint32_t biased = (code >> format->mantissa_bits) & exponent_mask;
    const int bias = (int)(exponent_mask >> 1);
    const bool top = biased == exponent_mask;

    struct operand value = {
        .kind = KIND_FINITE,
        .negative = (code >> (format->exponent_bits + format->mantissa_bits)) & 1,
        .significand = biased ? mantissa | (mantissa_mask + 1) : mantissa,
        .exponent = (biased ? (int)biased : 1) - bias,
    };
    if (format->has_infinity && top) {
        value.kind = mantissa ? KIND_NAN : KIND_INFINITE;
    } else if (!format->has_infinity && top && mantissa == mantissa_mask) {
        value.kind = KIND_NAN;
    } else if (!value.significand) {
        value.kind = KIND_ZERO;
    }
    return value;
}

static void infinity_add(struct term_list *terms, bool negative)
{
    if (negative) {
        terms->negative_infinity = true;
    } else {
        terms->positive_infinity = true;
    }
}

static void finite_add(struct term_list *terms, bool negative, uint64_t significand, int exponent,
                       int fraction_bits)
{
    if (exponent > terms->emax)
        terms->emax = exponent;
    terms->significand[terms->count] = significand;
    terms->scale[terms->count] = exponent - fraction_bits;
    terms->negative[terms->count] = negative;
    terms->count++;
}

static void product_add(struct term_list *terms, const struct operand_format *format, uint32_t a,
                        uint32_t b)
{
    const struct operand x = operand_decode(format, a);
    const struct operand y = operand_decode(format, b);
    const bool negative = x.negative != y.negative;
    const bool zero = x.kind == KIND_ZERO || y.kind == KIND_ZERO;
    const bool infinite = x.kind == KIND_INFINITE || y.kind == KIND_INFINITE;

    if (x.kind == KIND_NAN || y.kind == KIND_NAN || (infinite && zero)) {
        terms->nan = true;
    } else if (infinite) {
        infinity_add(terms, negative);
    } else if (!zero) { /* a zero product takes no part in emax */
        finite_add(terms, negative, (uint64_t)x.significand * y.significand,
                   x.exponent + y.exponent, 2 * format->mantissa_bits);
    }
}

static void accumulator_add(struct term_list *terms, uint32_t c)
{
    static const struct operand_format fp32 = {
        .exponent_bits = 8, .mantissa_bits = FP32_MANTISSA_BITS, .has_infinity = true};
    const struct operand value = operand_decode(&fp32, c);

    if (value.kind == KIND_NAN) {
        terms->nan = true;
    } else if (value.kind == KIND_INFINITE) {
        infinity_add(terms, value.negative);
    } else if (value.kind == KIND_FINITE) {
        finite_add(terms, value.negative, value.significand, value.exponent, FP32_MANTISSA_BITS);
    }
}

/* floor(value * 2^shift) for any shift; left shifts never lose bits here (at most 38 are used). */
static uint64_t scaled_floor(uint64_t value, int shift)
{
    if (shift >= 0)
        return value << shift;
    return shift > -64 ? value >> -shift : 0;
}

/* The terms cut to `aligned_bits` below emax and added, in units of 2^(emax - aligned_bits). */
static int64_t aligned_sum(const struct term_list *terms, int emax, int aligned_bits)
{
    int64_t sum = 0;
    for (int i = 0; i < terms->count; i++) {
        const int shift = terms->scale[i] + aligned_bits - emax;
        const int64_t magnitude = (int64_t)scaled_floor(terms->significand[i], shift);
        sum += terms->negative[i] ? -magnitude : magnitude;
    }
    return sum;
}

/* sum * 2^scale as fp32, truncated toward zero to result_bits fraction bits. */
static uint32_t result_encode(int64_t sum, int scale, int result_bits)
{
    if (!sum)
        return 0;
    const uint32_t sign = sum < 0 ? FLOAT_BITS_SIGN : 0;
    const uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
    const int exponent = 63 - __builtin_clzll(magnitude) + scale;
    if (exponent > FP32_EMAX)
        return sign | FLOAT_BITS_INF;
    const bool subnormal = exponent < FP32_EMIN;
    const int quantum = (subnormal ? FP32_EMIN : exponent) - result_bits;
    const uint32_t quanta = (uint32_t)scaled_floor(magnitude, scale - quantum);
    if (!quanta)
        return 0;
    /* A normal result has its leading one in quanta: it adds one to the exponent field below. */
    const uint32_t field = subnormal ? 0 : (uint32_t)(exponent + FP32_BIAS - 1);
    return sign | ((field << FP32_MANTISSA_BITS) + (quanta << (FP32_MANTISSA_BITS - result_bits)));
}

int tensor_core_k(tensor_core_type type)
{
    return formats[type].k;
}

uint32_t tensor_core_block(tensor_core_type type, const uint16_t *a, const uint16_t *b, uint32_t c)
{
    const struct operand_format *format = &formats[type];
    struct term_list terms = {.emax = EXPONENT_NONE};

    for (int i = 0; i < format->k; i++)
        product_add(&terms, format, a[i], b[i]);
    accumulator_add(&terms, c);

    if (terms.nan || (terms.positive_infinity && terms.negative_infinity))
        return FLOAT_BITS_NAN;
    if (terms.positive_infinity || terms.negative_infinity)
        return terms.negative_infinity ? FLOAT_BITS_NEG_INF : FLOAT_BITS_INF;
    if (!terms.count)
        return 0;
    const int emax = terms.emax > format->least_emax ? terms.emax : format->least_emax;
    const int64_t sum = aligned_sum(&terms, emax, format->aligned_bits);
    return result_encode(sum, emax - format->aligned_bits, format->result_bits);
}
