/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 16-bit formats bf16 (8 exponent, 7 mantissa bits) and fp16 (5 and 10).
 *
 * Decoding is exact; every NaN decodes to the canonical fp32 NaN, 0x7fffffff. Encoding gives what
 * PTX cvt.rn.bf16.f32 and cvt.rn.f16.f32 give: nearest, ties to even, subnormals kept, overflow to
 * infinity, every NaN (of either sign) -> 0x7fff. All functions are total.
 *
 * The *_bits forms take and return the fp32 bit pattern. Nothing here computes in floating point.
 */
#ifndef HALFBYTE_FORMAT_HALF_H
#define HALFBYTE_FORMAT_HALF_H

#include "format/bits.h"

#include <stddef.h>
#include <stdint.h>

#define BF16_INF 0x7f80u
#define FP16_INF 0x7c00u
#define HALF_NAN 0x7fffu /* canonical in both formats */

static inline uint32_t bf16_decode_bits(uint16_t code)
{
    const uint32_t bits = (uint32_t)code << 16;
    return bits_is_nan(bits) ? FLOAT_BITS_NAN : bits;
}

static inline uint16_t bf16_encode_bits(uint32_t bits)
{
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)(bits_is_nan(bits) ? HALF_NAN : rounded);
}

static inline uint32_t fp16_decode_bits(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16;
    const uint32_t magnitude = code & 0x7fffu;

    if (magnitude > FP16_INF)
        return FLOAT_BITS_NAN;
    if (magnitude == FP16_INF)
        return sign | FLOAT_BITS_INF;
    if (magnitude >= 0x0400u)
        return sign | ((magnitude << 13) + ((127u - 15u) << 23));
    if (magnitude == 0)
        return sign;

    /* magnitude * 2^-24: shift the leading 1 up to the hidden bit */
    uint32_t significand = magnitude << 13;
    uint32_t exponent = 113; /* of 2^-14, which magnitude 0x400 would be */
    while (significand < FLOAT_BITS_HIDDEN) {
        significand <<= 1;
        exponent--;
    }
    return sign | exponent << 23 | (significand & FLOAT_BITS_MANTISSA);
}

static inline uint16_t fp16_encode_bits(uint32_t bits)
{
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & ~FLOAT_BITS_SIGN;
    uint32_t code;

    if (magnitude > FLOAT_BITS_INF)
        return HALF_NAN;
    if (magnitude >= 0x477ff000u) { /* 65520, the tie between 65504 and what would be 65536 */
        code = FP16_INF;
    } else if (magnitude >= 0x38800000u) { /* 2^-14, the smallest normal */
        code = bits_shift_right_rne(magnitude, 13) - ((127u - 15u) << 10);
    } else if (magnitude > 0x33000000u) { /* 2^-25, half the smallest subnormal: a tie, to 0 */
        const uint32_t significand = (magnitude & FLOAT_BITS_MANTISSA) | FLOAT_BITS_HIDDEN;
        code = bits_shift_right_rne(significand, 126u - (magnitude >> 23));
    } else {
        code = 0;
    }
    return (uint16_t)(sign | code);
}

static inline float bf16_decode(uint16_t code)
{
    return float_from_bits(bf16_decode_bits(code));
}

static inline uint16_t bf16_encode(float value)
{
    return bf16_encode_bits(bits_from_float(value));
}

static inline float fp16_decode(uint16_t code)
{
    return float_from_bits(fp16_decode_bits(code));
}

static inline uint16_t fp16_encode(float value)
{
    return fp16_encode_bits(bits_from_float(value));
}

/* Arrays of count elements; dst and src must not overlap. */
void bf16_decode_n(float *dst, const uint16_t *src, size_t count);
void bf16_encode_n(uint16_t *dst, const float *src, size_t count);
void fp16_decode_n(float *dst, const uint16_t *src, size_t count);
void fp16_encode_n(uint16_t *dst, const float *src, size_t count);

#endif /* HALFBYTE_FORMAT_HALF_H */
