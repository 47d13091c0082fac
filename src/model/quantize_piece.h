/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the quantisers do to 32 values at a time.
 *
 * The loops have a fixed count and no branches, so that compilers turn them into vector code at
 * -O2 for the plainest CPU.  They are written with the operations of arith.h; where one of those
 * branches, an equivalent stands here that needs the environment of fp_env.h, as everything in
 * this file does.
 */
#ifndef HALFBYTE_MODEL_QUANTIZE_PIECE_H
#define HALFBYTE_MODEL_QUANTIZE_PIECE_H

#include <stdint.h>
#include <string.h>

#include "format/bits.h"
#include "format/half.h"
#include "halfbyte.h"
#include "model/arith.h"

enum {
    PIECE = 32, /* the smallest run of k that has a scale of its own */
    PIECE_PER_BLOCK = 4,
    PIECE_CHUNK = PIECE * PIECE_PER_BLOCK,
};

/* Bytes of an element of a source: f32, bf16 or f16. */
static inline int64_t source_bytes(halfbyte_type type)
{
    return type == HALFBYTE_TYPE_F32 ? 4 : 2;
}

/*
 * Widens count (1..128) elements of a source, exactly, and fills up with +0 to whole chunks.  Zeros
 * change no largest magnitude.
 */
static inline void chunk_load(float x[PIECE_CHUNK], const void *source, halfbyte_type type,
                              int64_t count)
{
    const size_t size = (size_t)count;

    if (type == HALFBYTE_TYPE_F32) {
        memcpy(x, source, size * sizeof x[0]);
    } else if (type == HALFBYTE_TYPE_BF16) {
        bf16_decode_n(x, source, size);
    } else {
        fp16_decode_n(x, source, size);
    }
    for (int64_t i = count; i < PIECE_CHUNK; i++) {
        x[i] = 0.0f;
    }
}

/*
 * The largest magnitude as a bit pattern; those of positive fp32 numbers are ordered as integers.
 * FLOAT_BITS_INF or above: there is an infinity or a NaN.
 */
static inline int32_t piece_amax(const float x[PIECE])
{
    int32_t amax = 0;
    for (int i = 0; i < PIECE; i++) {
        const int32_t magnitude = (int32_t)(bits_from_float(x[i]) & ~FLOAT_BITS_SIGN);
        amax = magnitude > amax ? magnitude : amax;
    }
    return amax;
}

/* The same over the finite values alone. */
static inline int32_t piece_amax_finite(const float x[PIECE])
{
    int32_t amax = 0;
    for (int i = 0; i < PIECE; i++) {
        const int32_t magnitude = (int32_t)(bits_from_float(x[i]) & ~FLOAT_BITS_SIGN);
        const int32_t finite = magnitude < (int32_t)FLOAT_BITS_INF ? magnitude : 0;
        amax = finite > amax ? finite : amax;
    }
    return amax;
}

/* The smallest power of two that is not below a finite scale >= 0; 0 stays 0. */
static inline float scale_power_of_two(float scale)
{
    const uint32_t bits = bits_from_float(scale);

    if (bits >= FLOAT_BITS_HIDDEN) {
        return float_from_bits((bits + FLOAT_BITS_MANTISSA) & FLOAT_BITS_INF);
    }
    uint32_t power = bits; /* subnormal: a multiple of 2^-149, so a plain integer */
    while ((power & (power - 1)) != 0) {
        power &= power - 1;
    }
    return float_from_bits(power < bits ? power << 1 : power);
}

/* div_rn(amax, divisor), rounded up to a power of two if asked. */
static inline float scale_of(float amax, float divisor, uint32_t flags)
{
    const float scale = div_rn(amax, divisor);
    return (flags & HALFBYTE_QUANTIZE_POWER_OF_TWO) != 0 ? scale_power_of_two(scale) : scale;
}

/*
 * cvt_e4m3 without branches.  Below 2^-6 the codes count multiples of 2^-9, and adding 2^14, whose
 * last bit is worth 2^-9, rounds to such a multiple.
 */
static inline uint8_t e4m3_encode_flat(float value)
{
    const uint32_t bits = bits_from_float(value);
    const int32_t magnitude = (int32_t)(bits & ~FLOAT_BITS_SIGN);
    const int32_t sign = (int32_t)(bits >> 24) & 0x80;
    const uint32_t rounded = (uint32_t)magnitude + 0x7ffffu + (((uint32_t)magnitude >> 20) & 1u);
    const int32_t normal = (int32_t)(rounded >> 20) - ((127 - 7) << 3);
    const float shifted = float_from_bits((uint32_t)magnitude) + 16384.0f;
    const int32_t subnormal = (int32_t)(bits_from_float(shifted) - 0x46800000u);
    const int32_t code = magnitude < 0x3c800000 ? subnormal : normal;
    const int32_t saturated = (code < 0x7e ? code : 0x7e) | sign;

    return (uint8_t)(magnitude > (int32_t)FLOAT_BITS_INF ? 0x7f : saturated);
}

/* q = cvt_e4m3(div_rn(x, scale)) */
static inline void piece_to_e4m3(uint8_t q[PIECE], const float x[PIECE], float scale)
{
    for (int i = 0; i < PIECE; i++) {
        q[i] = e4m3_encode_flat(x[i] / scale); /* any NaN will do: all become 0x7f */
    }
}

/*
 * q = div_rn(x, scale) to the nearest integer, ties to even, clamped to -7..7; two to a byte.  x is
 * finite and scale neither 0 nor NaN.  Clamping first is the same, and then adding 1.5 * 2^23,
 * whose last bit is worth 1, rounds and leaves q in two's complement in the low bits.
 */
static inline void piece_to_int4(uint8_t q[PIECE / 2], const float x[PIECE], float scale)
{
    uint32_t nibble[PIECE];

    for (int i = 0; i < PIECE; i++) {
        const float quotient = x[i] / scale;
        const float low = quotient < -7.0f ? -7.0f : quotient;
        const float clamped = low > 7.0f ? 7.0f : low;
        nibble[i] = bits_from_float(clamped + 12582912.0f) & 15u;
    }
    for (int i = 0; i < PIECE / 2; i++) {
        q[i] = (uint8_t)(nibble[2 * i] | nibble[2 * i + 1] << 4);
    }
}

#endif
