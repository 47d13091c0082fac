/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bit patterns of fp32 and small helpers on them.
 *
 * Everything in src/format moves bits with integer operations only, so that no result depends on
 * the rounding mode, flush-to-zero or denormals-are-zero state of the calling thread.
 */
#ifndef HALFBYTE_FORMAT_BITS_H
#define HALFBYTE_FORMAT_BITS_H

#include <stdint.h>
#include <string.h>

#define FLOAT_BITS_NAN 0x7fffffffu /* the canonical NaN: what Hopper's fp32 units return */
#define FLOAT_BITS_INF 0x7f800000u /* +infinity; also the mask of the exponent field */
#define FLOAT_BITS_NEG_INF 0xff800000u
#define FLOAT_BITS_SIGN 0x80000000u
#define FLOAT_BITS_MAX 0x7f7fffffu /* the largest finite value */
#define FLOAT_BITS_MANTISSA 0x007fffffu
#define FLOAT_BITS_HIDDEN 0x00800000u /* the leading 1 that a normal number does not store */

static inline float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Nonzero for every NaN pattern, whatever its sign and payload. */
static inline int bits_is_nan(uint32_t bits)
{
    return (bits & ~FLOAT_BITS_SIGN) > FLOAT_BITS_INF;
}

/* value / 2^shift, rounded to nearest, ties to even. value < 2^31, 1 <= shift <= 31. */
static inline uint32_t bits_shift_right_rne(uint32_t value, unsigned shift)
{
    const uint32_t half_less_one = (1u << (shift - 1)) - 1;
    return (value + half_less_one + ((value >> shift) & 1u)) >> shift;
}

/* Rotate right by shift bits; any shift is taken modulo 32. */
static inline uint32_t bits_rotr32(uint32_t value, unsigned shift)
{
    return (value >> (shift & 31u)) | (value << ((0u - shift) & 31u));
}

/* Little-endian access at any alignment, on hosts of either byte order. */
static inline uint32_t bits_load_le16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t bits_load_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void bits_store_le16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value & 0xffu);
    p[1] = (uint8_t)((value >> 8) & 0xffu);
}

static inline void bits_store_le32(uint8_t *p, uint32_t value)
{
    bits_store_le16(p, value);
    bits_store_le16(p + 2, value >> 16);
}

#endif /* HALFBYTE_FORMAT_BITS_H */
