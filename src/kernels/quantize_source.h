/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of f32, bf16 or f16 as the quantisers see them: vectors of 16 bytes, their largest finite
 * magnitude, their elements as fp32, and rows of e4m3 to write.
 *
 * `source` is a constant in every call, so that each copy of a body knows its type.
 *
 * KEYS.  The largest finite magnitude is found without unpacking: an element's bits are shifted up
 * until the sign is gone, and a constant is added under which infinity and NaN, which stand above
 * all others, wrap round to below all finite keys.  So one unsigned maximum ranks the finite ones
 * and ignores the rest.  The upper element of a pair keeps what lies below it in its word: less
 * than a unit of its own last place, dropped when the key is read.
 */
#ifndef HALFBYTE_KERNELS_QUANTIZE_SOURCE_H
#define HALFBYTE_KERNELS_QUANTIZE_SOURCE_H

#include "kernels/hopper/hopper.h"
#include "kernels/quantize_params.h"

#define VECTOR_WORDS 4

/* Twice the bits of infinity in the upper end of a word, negated: the key of zero. */
HB_DEVICE uint32_t key_of_zero(int source)
{
    return source == QUANTIZE_FROM_F16 ? 0x08000000u : 0x01000000u;
}

HB_DEVICE uint32_t key_larger(uint32_t x, uint32_t y)
{
    return x > y ? x : y;
}

/* The largest key of a vector. */
HB_DEVICE uint32_t key_of_vector(int source, const uint32_t *words)
{
    uint32_t key = 0;
    int i;
    HB_UNROLL
    for (i = 0; i < VECTOR_WORDS; i++) {
        key = key_larger(key, (words[i] << 1) + key_of_zero(source));
        if (source != QUANTIZE_FROM_F32) {
            key = key_larger(key, (words[i] << 17) + key_of_zero(source));
        }
    }
    return key;
}

/* The magnitude that a key stands for; +0 if nothing was finite. */
HB_DEVICE float magnitude_of_key(int source, uint32_t key)
{
    const uint32_t shifted = key > key_of_zero(source) ? key - key_of_zero(source) : 0;
    switch (source) {
    case QUANTIZE_FROM_F32: return f32_of_bits(shifted >> 1);
    case QUANTIZE_FROM_BF16: return f32_of_bits(shifted >> 17 << 16);
    default: return f32_of_f16((uint16_t)(shifted >> 17));
    }
}

/* Element i of a vector, widened exactly. */
HB_DEVICE float vector_element(int source, const uint32_t *words, int i)
{
    if (source == QUANTIZE_FROM_F32) {
        return f32_of_bits(words[i]);
    }
    if (source == QUANTIZE_FROM_BF16) {
        return f32_of_bits(i % 2 != 0 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16);
    }
    return f32_of_f16((uint16_t)(i % 2 != 0 ? words[i / 2] >> 16 : words[i / 2] & 0xffffu));
}

/* One element's bits, or +0 past the end. */
HB_DEVICE uint32_t load_element(const quantize_params *p, int source, int64_t row, uint32_t column)
{
    const int64_t at = row * p->src_ld + column;
    if (column >= p->k) {
        return 0;
    }
    return source == QUANTIZE_FROM_F32 ? global_load_u32_nc((const uint32_t *)p->src + at)
                                       : global_load_u16_nc((const uint16_t *)p->src + at);
}

HB_DEVICE void load_whole_vector(const quantize_params *p, int source, int64_t row, uint32_t column,
                                 uint32_t *words)
{
    const int64_t bytes = source == QUANTIZE_FROM_F32 ? 4 : 2;
    global_load_u32x4_nc((const char *)p->src + (row * p->src_ld + column) * bytes, words);
}

/* A vector that may hang over the end of its row, or of a row that starts anywhere.  What lies past
 * the end is +0, which changes no largest magnitude. */
HB_DEVICE void load_ragged_vector(const quantize_params *p, int source, int64_t row,
                                  uint32_t column, uint32_t *words)
{
    int i;
    if (p->src_is_aligned && column + QUANTIZE_VECTOR(source) <= p->k) {
        load_whole_vector(p, source, row, column, words);
        return;
    }
    HB_UNROLL
    for (i = 0; i < VECTOR_WORDS; i++) {
        if (source == QUANTIZE_FROM_F32) {
            words[i] = load_element(p, source, row, column + (uint32_t)i);
        } else {
            words[i] = load_element(p, source, row, column + (uint32_t)i * 2u) |
                       load_element(p, source, row, column + (uint32_t)i * 2u + 1u) << 16;
        }
    }
}

/*
 * The vectors of a thread at column, column + stride, ...; all loads go out before a value is used.
 * end: the first column behind what all threads that share the row load here.
 */
HB_DEVICE void load_vectors(const quantize_params *p, int source, int64_t row, uint32_t column,
                            uint32_t stride, uint32_t end, uint32_t *words)
{
    int i;
    if (p->src_is_aligned && end <= p->k) {
        HB_UNROLL
        for (i = 0; i < QUANTIZE_VECTORS; i++) {
            load_whole_vector(p, source, row, column + (uint32_t)i * stride,
                              words + i * VECTOR_WORDS);
        }
        return;
    }
    HB_UNROLL
    for (i = 0; i < QUANTIZE_VECTORS; i++) {
        load_ragged_vector(p, source, row, column + (uint32_t)i * stride, words + i * VECTOR_WORDS);
    }
}

/* The codes of a vector: four to a word, one word or two. */
HB_DEVICE void store_codes(const quantize_params *p, int source, int64_t row, uint32_t column,
                           const uint32_t *codes)
{
    uint8_t *to = p->dst + row * p->dst_ld + column;
    int i;
    if (p->dst_is_aligned && column + QUANTIZE_VECTOR(source) <= p->k) {
        if (source == QUANTIZE_FROM_F32) {
            global_store_u32((uint32_t *)(void *)to, codes[0]);
        } else {
            global_store_u32x2(to, codes[0], codes[1]);
        }
        return;
    }
    HB_UNROLL
    for (i = 0; i < QUANTIZE_VECTOR(source); i++) {
        if (column + (uint32_t)i < p->k) {
            global_store_u8(to + i, (uint8_t)(codes[i / 4] >> i % 4 * 8));
        }
    }
}

#endif
