/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signed 4-bit integers (-8..7): nibbles, their e4m3 bytes, and the packings of checkpoints.
 *
 * A row-major [n, k] tensor of int4 comes in three forms; a row is padded up to whole units:
 *
 *   form            unit          value i of a unit         encoding
 *   INT4_RAW        byte, 2       bits 4i..4i+3             two's complement
 *   INT4_SIGNED32   int32, 8      bits 4i..4i+3             two's complement
 *   INT4_OFFSET32   int32, 8      bits 4i..4i+3             v + 8 ("pack-quantized" checkpoints)
 *
 * The int32 forms are defined by the value of the int32 in the byte order of the host, so they hold
 * on hosts of either byte order. Bits of the last unit beyond k are ignored on reading and written
 * as zero. Row strides are in bytes, may exceed the row (the gap is not touched), and may be
 * negative; int32 rows need no alignment. In every function k >= 0 and n >= 0.
 */
#ifndef HALFBYTE_FORMAT_INT4_H
#define HALFBYTE_FORMAT_INT4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum int4_form { INT4_RAW = 0, INT4_SIGNED32 = 1, INT4_OFFSET32 = 2 };

/* The value of the two's complement nibble in bits 3..0; higher bits are ignored. */
static inline int int4_from_nibble(unsigned nibble)
{
    return (int)((nibble & 15u) ^ 8u) - 8;
}

/* The two's complement nibble of value, which must lie in -8..7. */
static inline unsigned int4_to_nibble(int value)
{
    return (unsigned)value & 15u;
}

/* Value k of an INT4_RAW row. */
static inline int int4_get(const uint8_t *row, int64_t k)
{
    return int4_from_nibble((unsigned)row[k >> 1] >> (4 * (k & 1)));
}

/* Sets value k of an INT4_RAW row and leaves the other nibble of its byte alone. */
static inline void int4_set(uint8_t *row, int64_t k, int value)
{
    const unsigned shift = 4u * (unsigned)(k & 1);
    const unsigned kept = row[k >> 1] & (0xf0u >> shift);
    row[k >> 1] = (uint8_t)(kept | int4_to_nibble(value) << shift);
}

/*
 * The e4m3 byte that stands for an int4 in every product: sign << 7 | magnitude, which is exactly
 * value * 2^-9. Zero is 0x00, never 0x80. This choice is part of the definition of the result: the
 * tensor core aligns another encoding of the same value differently.
 */
static inline uint8_t int4_to_e4m3(int value)
{
    return (uint8_t)(value < 0 ? 0x80 | -value : value);
}

/* The inverse. Returns false, and leaves *value alone, for a byte that no int4 becomes. */
static inline bool int4_from_e4m3(uint8_t code, int *value)
{
    const int magnitude = code & 0x7f;
    const bool negative = code > 0x7f;

    if (negative ? magnitude < 1 || magnitude > 8 : magnitude > 7)
        return false;
    *value = negative ? -magnitude : magnitude;
    return true;
}

/* Eight nibbles, value i in bits 4i..4i+3 -> eight bytes 0..15, value i in bits 8i..8i+7. */
static inline uint64_t int4_spread(uint32_t nibbles)
{
    uint64_t x = nibbles;

    x = (x | x << 16) & 0x0000ffff0000ffffu;
    x = (x | x << 8) & 0x00ff00ff00ff00ffu;
    return (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
}

/* As int4_spread, but the two's complement nibbles become e4m3 bytes. */
static inline uint64_t int4_spread_e4m3(uint32_t nibbles)
{
    const uint64_t x = int4_spread(nibbles);
    const uint64_t negative = (x >> 3) & 0x0101010101010101u;
    const uint64_t magnitude = (x ^ negative * 15u) + negative; /* at most 8: no carry */

    return magnitude | negative << 7;
}

/* The inverse of int4_spread_e4m3, for bytes that it makes. */
static inline uint32_t int4_gather_e4m3(uint64_t codes)
{
    const uint64_t negative = (codes >> 7) & 0x0101010101010101u;
    uint64_t x = (codes & 0x0f0f0f0f0f0f0f0fu) ^ negative * 15u;

    x = (x + negative) & 0x0f0f0f0f0f0f0f0fu;
    x = (x | x >> 4) & 0x00ff00ff00ff00ffu;
    x = (x | x >> 8) & 0x0000ffff0000ffffu;
    return (uint32_t)((x | x >> 16) & 0xffffffffu);
}

/* count values of an INT4_RAW row from value k_begin on, as e4m3 bytes or as int8. */
void int4_row_to_e4m3(uint8_t *dst, const uint8_t *row, int64_t k_begin, int64_t count);
void int4_row_to_int8(int8_t *dst, const uint8_t *row, int64_t k_begin, int64_t count);

/* The inverse of int4_row_to_int8 with k_begin = 0; takes the low four bits of each value. */
void int4_row_from_int8(uint8_t *row, const int8_t *src, int64_t count);

/*
 * Reads count values of a row of any form, from value k_begin on, as an INT4_RAW row. Touches no
 * unit of either row beyond those values.
 */
void int4_row_read(uint8_t *raw, const void *row, enum int4_form form, int64_t k_begin,
                   int64_t count);

/*
 * Writes an INT4_RAW row of count values into a row of k values of any form from value k_begin on,
 * k_begin + count <= k. Keeps the values before k_begin; values of the last unit written that lie
 * beyond k_begin + count become zero, so a row is written from left to right.
 */
void int4_row_write(void *row, enum int4_form form, int64_t k, int64_t k_begin, int64_t count,
                    const uint8_t *raw);

/* Bytes of a row of k values; -1 if k is negative or form unknown. */
int64_t int4_row_bytes(enum int4_form form, int64_t k);

/*
 * Converts n rows of k values. dst may be src itself with the same stride (then a row of dst must
 * not be wider than the stride); any other overlap is not allowed. Returns false and writes nothing
 * if n or k is negative, a form is unknown, or, for n > 1, a stride is smaller in magnitude than
 * its row.
 */
bool int4_convert_rows(void *dst, enum int4_form dst_form, int64_t dst_stride_bytes,
                       const void *src, enum int4_form src_form, int64_t src_stride_bytes,
                       int64_t n, int64_t k);

/*
 * Stores in *holds whether any of the n x k values is -8, which the shorter of the two packed word
 * forms cannot express. Returns false, and leaves *holds alone, where int4_convert_rows would.
 */
bool int4_rows_hold_minus8(const void *src, enum int4_form form, int64_t stride_bytes, int64_t n,
                           int64_t k, bool *holds);

#endif /* HALFBYTE_FORMAT_INT4_H */
