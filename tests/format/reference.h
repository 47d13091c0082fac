/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small floating-point formats once more, from their definition and in double arithmetic:
 * nothing here is shared with src/format. Doubles hold every value and every midpoint exactly.
 */
#ifndef HALFBYTE_TESTS_FORMAT_REFERENCE_H
#define HALFBYTE_TESTS_FORMAT_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct ref_format {
    const char *name;
    int exponent_bits, mantissa_bits;
    bool has_infinity; /* false: the all-ones exponent is finite but for its last code, a NaN */
    bool saturates;    /* encoding never makes an infinity */
    uint32_t nan_code; /* what every NaN is encoded to */
};

static const struct ref_format ref_e4m3 = {"e4m3", 4, 3, false, true, 0x7f};
static const struct ref_format ref_e5m2 = {"e5m2", 5, 2, true, true, 0x7f};
static const struct ref_format ref_bf16 = {"bf16", 8, 7, true, false, 0x7fff};
static const struct ref_format ref_fp16 = {"fp16", 5, 10, true, false, 0x7fff};

static inline uint32_t ref_sign_bit(const struct ref_format *format)
{
    return 1u << (format->exponent_bits + format->mantissa_bits);
}

/* The largest code without sign that is a finite value. */
static inline uint32_t ref_max_code(const struct ref_format *format)
{
    const uint32_t all_ones = ref_sign_bit(format) - 1;
    return format->has_infinity ? all_ones - (1u << format->mantissa_bits) : all_ones - 1;
}

/* The value that the fields of a code without sign spell, as if no code were special. */
static inline double ref_plain_value(const struct ref_format *format, uint32_t magnitude)
{
    const int bias = (1 << (format->exponent_bits - 1)) - 1;
    const double fraction =
        ldexp((double)(magnitude & ((1u << format->mantissa_bits) - 1)), -format->mantissa_bits);
    const int exponent = (int)(magnitude >> format->mantissa_bits);

    return exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1.0 + fraction, exponent - bias);
}

static inline double ref_decode(const struct ref_format *format, uint32_t code)
{
    const uint32_t magnitude = code & (ref_sign_bit(format) - 1);
    const uint32_t max_code = ref_max_code(format);
    double value;

    if (magnitude <= max_code)
        value = ref_plain_value(format, magnitude);
    else if (format->has_infinity && magnitude == max_code + 1)
        value = INFINITY;
    else
        value = NAN;
    return (code & ref_sign_bit(format)) != 0 ? -value : value;
}

static inline float ref_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t ref_bits(double value)
{
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

/*
 * The code of a number by search: the neighbours below and above it are found by bisection over the
 * (monotone) codes, then the nearer one is taken, or of two equally near ones the even one. Without
 * saturation the code after the largest finite one, which is the infinity's, takes part.
 */
static inline uint32_t ref_encode(const struct ref_format *format, float input)
{
    const double value = input, magnitude = fabs(value);
    const uint32_t sign = signbit(value) ? ref_sign_bit(format) : 0;
    uint32_t low = 0, high = ref_max_code(format) + (format->saturates ? 0 : 1);

    if (isnan(value))
        return format->nan_code;
    if (magnitude >= ref_plain_value(format, high))
        return sign | high;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (ref_plain_value(format, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    const double below = magnitude - ref_plain_value(format, low);
    const double above = ref_plain_value(format, high) - magnitude;
    if (below == above)
        return sign | (low % 2 == 0 ? low : high);
    return sign | (below < above ? low : high);
}

/* A small generator for test data: SplitMix64. */
static inline uint64_t ref_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif /* HALFBYTE_TESTS_FORMAT_REFERENCE_H */
