/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside this file every form is seen through its nibbles in two's complement, eight to a uint32_t
 * with value i in bits 4i..4i+3: that is the int32 forms' own order, and INT4_RAW read as little
 * endian. Forms then differ only in how a word is loaded and in one XOR.
 */
#include "format/int4.h"

#include "format/bits.h"

#define OFFSET_BINARY_XOR 0x88888888u /* v + 8 differs from two's complement in the top bit */

static bool form_is_known(enum int4_form form)
{
    return form == INT4_RAW || form == INT4_SIGNED32 || form == INT4_OFFSET32;
}

/* Keeps the nibbles of the first values (1..8) of a word. */
static uint32_t word_mask(int64_t values)
{
    return values >= 8 ? 0xffffffffu : (1u << (4 * values)) - 1;
}

/* Loads values 8 * word .. of a row, zero beyond its k values. */
static uint32_t word_load(const uint8_t *row, enum int4_form form, int64_t word, int64_t k)
{
    const int64_t values = k - 8 * word;
    uint32_t bits = 0;

    if (form == INT4_RAW) {
        if (values >= 8) {
            bits = bits_load_le32(row + 4 * word);
        } else {
            for (int64_t byte = 0; byte < (values + 1) / 2; byte++)
                bits |= (uint32_t)row[4 * word + byte] << (8 * byte);
        }
    } else {
        memcpy(&bits, row + 4 * word, sizeof bits);
        if (form == INT4_OFFSET32)
            bits ^= OFFSET_BINARY_XOR;
    }
    return bits & word_mask(values);
}

static void word_store(uint8_t *row, enum int4_form form, int64_t word, int64_t k, uint32_t bits)
{
    const int64_t values = k - 8 * word;

    if (form == INT4_RAW) {
        if (values >= 8) {
            bits_store_le32(row + 4 * word, bits);
        } else {
            for (int64_t byte = 0; byte < (values + 1) / 2; byte++)
                row[4 * word + byte] = (uint8_t)(bits >> (8 * byte) & 0xffu);
        }
    } else {
        if (form == INT4_OFFSET32)
            bits = (bits ^ OFFSET_BINARY_XOR) & word_mask(values);
        memcpy(row + 4 * word, &bits, sizeof bits);
    }
}

int64_t int4_row_bytes(enum int4_form form, int64_t k)
{
    if (k < 0 || !form_is_known(form))
        return -1;
    if (form == INT4_RAW)
        return k / 2 + k % 2;
    return 4 * (k / 8 + (k % 8 != 0));
}

static bool rows_are_valid(enum int4_form form, int64_t stride_bytes, int64_t n, int64_t k)
{
    const int64_t row_bytes = int4_row_bytes(form, k);

    if (n < 0 || row_bytes < 0)
        return false;
    return n <= 1 || stride_bytes >= row_bytes || stride_bytes <= -row_bytes;
}

bool int4_convert_rows(void *dst, enum int4_form dst_form, int64_t dst_stride_bytes,
                       const void *src, enum int4_form src_form, int64_t src_stride_bytes,
                       int64_t n, int64_t k)
{
    if (!rows_are_valid(dst_form, dst_stride_bytes, n, k) ||
        !rows_are_valid(src_form, src_stride_bytes, n, k))
        return false;

    const int64_t words = k / 8 + (k % 8 != 0);
    for (int64_t row = 0; row < n; row++) {
        uint8_t *to = (uint8_t *)dst + row * dst_stride_bytes;
        const uint8_t *from = (const uint8_t *)src + row * src_stride_bytes;
        for (int64_t word = 0; word < words; word++)
            word_store(to, dst_form, word, k, word_load(from, src_form, word, k));
    }
    return true;
}

/* True if one of the 16 nibbles is zero. */
static bool holds_zero_nibble(uint64_t nibbles)
{
    return ((nibbles - 0x1111111111111111u) & ~nibbles & 0x8888888888888888u) != 0;
}

static bool row_holds_minus8(const uint8_t *row, enum int4_form form, int64_t k)
{
    /* -8 is 8 in two's complement and 0 in offset binary; the order of nibbles does not matter. */
    const uint64_t minus8 = form == INT4_OFFSET32 ? 0 : 0x8888888888888888u;
    bool found = false;
    int64_t i = 0;

    for (; i + 16 <= k; i += 16) {
        uint64_t nibbles;
        memcpy(&nibbles, row + i / 2, sizeof nibbles);
        found |= holds_zero_nibble(nibbles ^ minus8);
    }
    for (; i < k; i += 8) { /* two words at most; they are zero beyond k */
        const uint64_t nibbles = word_load(row, form, i / 8, k);
        found |= holds_zero_nibble(nibbles ^ 0x8888888888888888u);
    }
    return found;
}

bool int4_rows_hold_minus8(const void *src, enum int4_form form, int64_t stride_bytes, int64_t n,
                           int64_t k, bool *holds)
{
    if (!rows_are_valid(form, stride_bytes, n, k))
        return false;

    bool found = false;
    for (int64_t row = 0; row < n && !found; row++)
        found = row_holds_minus8((const uint8_t *)src + row * stride_bytes, form, k);
    *holds = found;
    return true;
}

void int4_row_read(uint8_t *raw, const void *row, enum int4_form form, int64_t k_begin,
                   int64_t count)
{
    const int64_t k_end = k_begin + count;
    const unsigned skip = 4u * (unsigned)(k_begin % 8);

    if (form == INT4_RAW && k_begin % 2 == 0) { /* whole bytes */
        memcpy(raw, (const uint8_t *)row + k_begin / 2, (size_t)((count + 1) / 2));
        if (count % 2 != 0)
            raw[count / 2] &= 0x0f;
        return;
    }
    for (int64_t i = 0; 8 * i < count; i++) {
        const int64_t word = k_begin / 8 + i;
        uint32_t bits = word_load(row, form, word, k_end) >> skip;
        if (skip != 0 && 8 * (word + 1) < k_end)
            bits |= word_load(row, form, word + 1, k_end) << (32u - skip);
        word_store(raw, INT4_RAW, i, count, bits);
    }
}

void int4_row_write(void *row, enum int4_form form, int64_t k, int64_t k_begin, int64_t count,
                    const uint8_t *raw)
{
    const int64_t first = k_begin / 8, k_end = k_begin + count;
    const unsigned skip = 4u * (unsigned)(k_begin % 8);

    if (form == INT4_RAW && k_begin % 2 == 0) {
        int4_row_read((uint8_t *)row + k_begin / 2, raw, INT4_RAW, 0, count);
        return;
    }
    for (int64_t word = first; count > 0 && 8 * word < k_end; word++) {
        const int64_t i = word - first;
        uint32_t bits = 0;
        if (8 * i < count)
            bits = word_load(raw, INT4_RAW, i, count) << skip;
        if (skip != 0 && i > 0)
            bits |= word_load(raw, INT4_RAW, i - 1, count) >> (32u - skip);
        if (8 * word < k_begin)
            bits |= word_load(row, form, word, k_begin);
        word_store(row, form, word, form == INT4_RAW ? k_end : k, bits); /* no byte too far */
    }
}

void int4_row_to_e4m3(uint8_t *dst, const uint8_t *row, int64_t k_begin, int64_t count)
{
    int64_t i = 0;

    if ((k_begin & 1) != 0 && count > 0) {
        dst[0] = int4_to_e4m3(int4_get(row, k_begin));
        i = 1;
    }
    for (; i + 8 <= count; i += 8) {
        const uint64_t codes = int4_spread_e4m3(bits_load_le32(row + (k_begin + i) / 2));
        bits_store_le32(dst + i, (uint32_t)(codes & 0xffffffffu));
        bits_store_le32(dst + i + 4, (uint32_t)(codes >> 32));
    }
    for (; i < count; i++)
        dst[i] = int4_to_e4m3(int4_get(row, k_begin + i));
}

void int4_row_to_int8(int8_t *dst, const uint8_t *row, int64_t k_begin, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = (int8_t)int4_get(row, k_begin + i);
}

void int4_row_from_int8(uint8_t *row, const int8_t *src, int64_t count)
{
    for (int64_t i = 0; i < count; i += 2) {
        const unsigned low = int4_to_nibble(src[i]);
        const unsigned high = i + 1 < count ? int4_to_nibble(src[i + 1]) : 0;
        row[i / 2] = (uint8_t)(low | high << 4);
    }
}
