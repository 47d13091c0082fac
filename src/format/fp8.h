/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 8-bit formats: e4m3 ("fn"), e5m2 and e8m0.
 *
 *            sign exp mant  bias  largest finite  smallest > 0  infinity     NaN
 *   e4m3       1    4    3     7   448 (0x7e)      2^-9          none         0x7f, 0xff
 *   e5m2       1    5    2    15   57344 (0x7b)    2^-16         0x7c, 0xfc   0x7d-0x7f, 0xfd-0xff
 *   e8m0       0    8    0   127   2^127 (0xfe)    2^-127        none         0xff
 *
 * Decoding is exact. Every NaN code decodes to the canonical fp32 NaN, 0x7fffffff.
 * Encoding to e4m3 and e5m2 gives what PTX cvt.rn.satfinite.{e4m3x2,e5m2x2}.f32 gives: nearest,
 * ties to even, subnormals kept, every NaN (of either sign) -> 0x7f, and whatever lies beyond the
 * largest finite value, infinities included, -> that value with its sign kept. So the infinities of
 * e5m2 are decoded but never encoded. All functions are total: there is no invalid input.
 *
 * The *_bits forms take the fp32 bit pattern. Nothing here computes in floating point.
 */
#ifndef HALFBYTE_FORMAT_FP8_H
#define HALFBYTE_FORMAT_FP8_H

#include "format/bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define E4M3_MAX 0x7eu /* 448 */
#define E4M3_NAN 0x7fu
#define E5M2_MAX 0x7bu /* 57344 */
#define E5M2_INF 0x7cu
#define E5M2_NAN 0x7fu
#define E8M0_MAX 0xfeu /* 2^127 */
#define E8M0_NAN 0xffu
#define E8M0_ONE 0x7fu

static inline uint32_t e4m3_decode_bits(uint8_t code)
{
    /* code * 2^-9 for the codes below the first normal one */
    static const uint32_t subnormal[8] = {
        0x00000000u, 0x3b000000u, 0x3b800000u, 0x3bc00000u,
        0x3c000000u, 0x3c200000u, 0x3c400000u, 0x3c600000u,
    };
    const uint32_t sign = (uint32_t)(code & 0x80u) << 24;
    const uint32_t magnitude = code & 0x7fu;

    if (magnitude == E4M3_NAN)
        return FLOAT_BITS_NAN;
    if (magnitude < 8)
        return sign | subnormal[magnitude];
    return sign | ((magnitude << 20) + ((127u - 7u) << 23));
}

static inline uint8_t e4m3_encode_bits(uint32_t bits)
{
    const uint32_t sign = (bits >> 24) & 0x80u;
    const uint32_t magnitude = bits & ~FLOAT_BITS_SIGN;
    uint32_t code;

    if (magnitude > FLOAT_BITS_INF)
        return E4M3_NAN;
    if (magnitude >= 0x43e00000u) { /* 448 */
        code = E4M3_MAX;
    } else if (magnitude >= 0x3c800000u) { /* 2^-6, the smallest normal */
        code = bits_shift_right_rne(magnitude, 20) - ((127u - 7u) << 3);
    } else if (magnitude > 0x3a800000u) { /* 2^-10, half the smallest subnormal: a tie, to 0 */
        const uint32_t significand = (magnitude & FLOAT_BITS_MANTISSA) | FLOAT_BITS_HIDDEN;
        code = bits_shift_right_rne(significand, 141u - (magnitude >> 23));
    } else {
        code = 0;
    }
    return (uint8_t)(sign | code);
}

static inline uint32_t e5m2_decode_bits(uint8_t code)
{
    /* code * 2^-16 for the codes below the first normal one */
    static const uint32_t subnormal[4] = {0x00000000u, 0x37800000u, 0x38000000u, 0x38400000u};
    const uint32_t sign = (uint32_t)(code & 0x80u) << 24;
    const uint32_t magnitude = code & 0x7fu;

    if (magnitude > E5M2_INF)
        return FLOAT_BITS_NAN;
    if (magnitude == E5M2_INF)
        return sign | FLOAT_BITS_INF;
    if (magnitude < 4)
        return sign | subnormal[magnitude];
    return sign | ((magnitude << 21) + ((127u - 15u) << 23));
}

static inline uint8_t e5m2_encode_bits(uint32_t bits)
{
    const uint32_t sign = (bits >> 24) & 0x80u;
    const uint32_t magnitude = bits & ~FLOAT_BITS_SIGN;
    uint32_t code;

    if (magnitude > FLOAT_BITS_INF)
        return E5M2_NAN;
    if (magnitude >= 0x47600000u) { /* 57344 */
        code = E5M2_MAX;
    } else if (magnitude >= 0x38800000u) { /* 2^-14, the smallest normal */
        code = bits_shift_right_rne(magnitude, 21) - ((127u - 15u) << 2);
    } else if (magnitude > 0x37000000u) { /* 2^-17, half the smallest subnormal: a tie, to 0 */
        const uint32_t significand = (magnitude & FLOAT_BITS_MANTISSA) | FLOAT_BITS_HIDDEN;
        code = bits_shift_right_rne(significand, 134u - (magnitude >> 23));
    } else {
        code = 0;
    }
    return (uint8_t)(sign | code);
}

/* 2^(code - 127), always positive; code 0 is the fp32 subnormal 2^-127. */
static inline uint32_t e8m0_decode_bits(uint8_t code)
{
    if (code == E8M0_NAN)
        return FLOAT_BITS_NAN;
    return code == 0 ? 0x00400000u : (uint32_t)code << 23;
}

static inline float e4m3_decode(uint8_t code)
{
    return float_from_bits(e4m3_decode_bits(code));
}

static inline uint8_t e4m3_encode(float value)
{
    return e4m3_encode_bits(bits_from_float(value));
}

static inline float e5m2_decode(uint8_t code)
{
    return float_from_bits(e5m2_decode_bits(code));
}

static inline uint8_t e5m2_encode(float value)
{
    return e5m2_encode_bits(bits_from_float(value));
}

static inline float e8m0_decode(uint8_t code)
{
    return float_from_bits(e8m0_decode_bits(code));
}

/*
 * Stores in *code the e8m0 code that equals value and returns true if there is one, that is if
 * value is +2^e with -127 <= e <= 127. Otherwise returns false and leaves *code alone.
 */
bool e8m0_encode_exact(float value, uint8_t *code);

/*
 * The smallest power of two that is >= value, for quantisers that must not let a scaled value leave
 * its range. 0 (of either sign) and all values up to 2^-127 -> 0x00; values above 2^127 and
 * +infinity saturate to 0xfe; NaN and everything below zero, which no scale can be, -> 0xff.
 */
uint8_t e8m0_encode_ceil(float value);

/* Arrays of count elements; dst and src must not overlap. */
void e4m3_decode_n(float *dst, const uint8_t *src, size_t count);
void e4m3_encode_n(uint8_t *dst, const float *src, size_t count);
void e5m2_decode_n(float *dst, const uint8_t *src, size_t count);
void e5m2_encode_n(uint8_t *dst, const float *src, size_t count);
void e8m0_decode_n(float *dst, const uint8_t *src, size_t count);

#endif /* HALFBYTE_FORMAT_FP8_H */
