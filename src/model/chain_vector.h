/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain in vectors of neighbouring columns; the body of chain_avx2.c and chain_avx512.c.
 *
 * One block of 32 k is two passes over the panel:
 *
 *   emax     per column, the largest exponent of a nonzero product: one add and one maximum of
 *            signed bytes for 32 products.
 *   sum      per column, terms cut to 13 fraction bits below emax and added as integers:
 *            sum += truncate(a * b * 2^(13 - emax)).  a * b is exact in fp32 (8 bits), the scale
 *            is a power of two, and the conversion to int32 truncates the magnitude: the tensor
 *            core's alignment of one product in a multiplication and a conversion.
 *
 * Then sum * 2^(emax - 13) is cut to 13 fraction bits by clearing the low 10 bits of the mantissa.
 *
 * Why no other case needs care, C standing for the incoming accumulator:
 *
 *   - A nonzero product lies in [2^-18, 2^18) and has an exponent in -12..16.
 *   - emax is held in [-12, 128], so the scale is a normal number and so is its reciprocal.
 *     Where a scaled term underflows it is far below 1, and truncates to 0 as it must.
 *   - |sum| < 33 * 2^15 < 2^24: exact in int32 and in fp32.
 *   - With a nonzero product, emax >= -12 and the result is 0 or at least 2^-25: never subnormal.
 *     The product with 2^(emax - 13) is exact, or infinity exactly from 2^128 on.
 *   - With none, the result is C without its low 10 bits, for every finite C.  Infinite C: itself.
 *   - Adding +0 turns -0 into +0 and changes nothing else.
 *
 * PARAMETERS, to be defined before inclusion, once per file:
 *
 *   CHAIN_LANES    columns in a vector: 8 or 16
 *   CHAIN_TARGET   function attribute that enables the instructions
 *
 * and these operations on the types below, as macros:
 *
 *   vint     chain_max(vint, vint)              larger signed integer
 *   vint     chain_truncate(vfloat)             to integer, toward zero; out of range: any value
 *   vint     chain_widen(const int8_t *)        CHAIN_LANES signed bytes, any alignment
 *   vint     chain_bits_mask(uint32_t)          lane i: all ones where bit i is set
 */
#ifndef HALFBYTE_MODEL_CHAIN_VECTOR_H
#define HALFBYTE_MODEL_CHAIN_VECTOR_H

#include <string.h>

#include "format/bits.h"
#include "model/chain.h"
#include "model/chain_variants.h"

#if CHAIN_LANES != 8 && CHAIN_LANES != 16
#error "CHAIN_LANES must be 8 or 16"
#endif

#define CHAIN_INLINE static inline __attribute__((always_inline)) CHAIN_TARGET

/* Loops over the vectors of a panel row must be unrolled for their arrays to become registers. */
#ifdef __clang__
#define CHAIN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define CHAIN_UNROLL _Pragma("GCC unroll 4")
#endif

enum {
    VECTORS = CHAIN_COLUMNS / CHAIN_LANES,
    KEPT_BITS = 13,       /* fraction bits below emax that a term keeps; also of the result */
    LEAST_EXPONENT = -12, /* of a nonzero product */
    DROPPED_MASK = 0x3ff, /* mantissa bits that no result has */
};

typedef float vfloat __attribute__((vector_size(4 * CHAIN_LANES), may_alias));
typedef int32_t vint __attribute__((vector_size(4 * CHAIN_LANES), may_alias));
typedef uint32_t vuint __attribute__((vector_size(4 * CHAIN_LANES), may_alias));
typedef int8_t vbytes __attribute__((vector_size(32), may_alias)); /* a panel row's exponents */
typedef uint32_t vwords __attribute__((vector_size(32)));
typedef int64_t vquads __attribute__((vector_size(32)));

CHAIN_INLINE vbytes bytes_max(vbytes a, vbytes b)
{
    return (vbytes)_mm256_max_epi8((__m256i)a, (__m256i)b);
}

/* Lane by lane: where mask is all ones `yes`, where it is 0 `no`. */
CHAIN_INLINE vfloat lanes_select(vint mask, vfloat yes, vfloat no)
{
    return (vfloat)((mask & (vint)yes) | (~mask & (vint)no));
}

/* 2^exponent, for exponents of normal numbers. */
CHAIN_INLINE vfloat power_of_two(vint exponent)
{
    return (vfloat)((vuint)(exponent + 127) << 23);
}

/*
 * The values of e4m3 codes, one in the low byte of each lane.  A subnormal m * 2^-9 is made as
 * (1 + m/8) * 2^-6 - 2^-6.  A NaN becomes some finite number, which its mark in `nan` overrules.
 */
CHAIN_INLINE vfloat values_decode(vint codes)
{
    const vint magnitude = codes & 0x7f;
    const vint subnormal = magnitude < 8;
    const vint rebias = (vint)((vuint)(127 - 7 - subnormal) << 23);
    const vint least_normal = (vint)power_of_two((vint){0} - 6);
    const vfloat value = (vfloat)((magnitude << 20) + rebias) - (vfloat)(least_normal & subnormal);
    return (vfloat)((vint)value | (vint)((vuint)(codes & 0x80) << 24));
}

/* Their exponents, byte by byte: the field, at least 1, less the bias; CHAIN_ZERO for zeros. */
CHAIN_INLINE vbytes exponents_decode(vbytes codes)
{
    const vbytes magnitude = codes & 0x7f;
    const vbytes field = (vbytes)((vwords)magnitude >> 3) & 0x0f;
    const vbytes zero = magnitude == 0;
    return bytes_max(field, (vbytes){0} + 1) - 7 + (zero & (CHAIN_ZERO + 6));
}

CHAIN_INLINE vbytes codes_nan(vbytes codes)
{
    return (codes & 0x7f) == 0x7f;
}

CHAIN_INLINE int blocks_ceil(int k)
{
    return (k + CHAIN_BLOCK_K - 1) / CHAIN_BLOCK_K;
}

CHAIN_TARGET static void decode_row(const uint8_t *codes, int k, chain_row *row)
{
    _Alignas(32) int8_t padded[CHAIN_MAX_K] = {0};
    memcpy(padded, codes, (size_t)k);
    row->nan = 0;
    for (int block = 0; block < blocks_ceil(k); block++) {
        const int first_k = block * CHAIN_BLOCK_K;
        const vbytes block_codes = *(const vbytes *)(padded + first_k);
        const vbytes nan = codes_nan(block_codes);

        *(vbytes *)(row->exponent + first_k) = exponents_decode(block_codes);
        row->nan |= (uint32_t)(_mm256_movemask_epi8((__m256i)nan) != 0) << block;
        for (int i = first_k; i < first_k + CHAIN_BLOCK_K; i += CHAIN_LANES)
            *(vfloat *)(row->value + i) = values_decode(chain_widen(padded + i));
    }
}

/* Four neighbouring codes of a column in one word, so that lanes are columns from here on. */
typedef uint32_t code_words[CHAIN_BLOCK_K / 4][CHAIN_COLUMNS];

/* n columns of k codes, the rest zeros; n <= 32, k <= 32. */
CHAIN_INLINE void words_gather(const uint8_t *codes, ptrdiff_t ld, int n, int k, code_words words)
{
    for (int column = 0; column < CHAIN_COLUMNS; column++) {
        uint32_t run[CHAIN_BLOCK_K / 4] = {0};
        if (column < n && k == CHAIN_BLOCK_K)
            memcpy(run, codes + column * ld, CHAIN_BLOCK_K);
        else if (column < n)
            memcpy(run, codes + column * ld, (size_t)k);
        for (int i = 0; i < CHAIN_BLOCK_K / 4; i++)
            words[i][column] = run[i];
    }
}

/* Four bytes of each of eight columns -> eight columns in each of four rows. */
CHAIN_INLINE void bytes_transpose(vbytes bytes, int8_t (*rows)[CHAIN_COLUMNS])
{
    const __m256i halves = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i across = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const vquads columns =
        (vquads)_mm256_permutevar8x32_epi32(_mm256_shuffle_epi8((__m256i)bytes, halves), across);
    for (int i = 0; i < 4; i++)
        memcpy(rows[i], (const int64_t[]){columns[i]}, 8);
}

CHAIN_TARGET static void decode_panel(const uint8_t *codes, ptrdiff_t ld, int n, int k,
                                      chain_panel *panel)
{
    for (int block = 0; block < blocks_ceil(k); block++) {
        const int first_k = block * CHAIN_BLOCK_K;
        const int block_k = k - first_k < CHAIN_BLOCK_K ? k - first_k : CHAIN_BLOCK_K;
        _Alignas(64) code_words words;
        words_gather(codes + first_k, ld, n, block_k, words);

        for (int i = 0; i < CHAIN_BLOCK_K; i++) {
            for (int column = 0; column < CHAIN_COLUMNS; column += CHAIN_LANES) {
                const vuint word = *(const vuint *)&words[i / 4][column];
                *(vfloat *)&panel->value[first_k + i][column] =
                    values_decode((vint)(word >> (8 * (i % 4))));
            }
        }
        panel->nan[block] = 0;
        for (int column = 0; column < CHAIN_COLUMNS; column += 8) {
            vbytes nan = {0};
            for (int i = 0; i < CHAIN_BLOCK_K; i += 4) {
                const vbytes word = *(const vbytes *)&words[i / 4][column];
                int8_t *const exponents = &panel->exponent[first_k + i][column];
                bytes_transpose(exponents_decode(word), (int8_t(*)[CHAIN_COLUMNS])exponents);
                nan |= codes_nan(word);
            }
            const __m256 columns = (__m256)((vwords)nan != 0);
            panel->nan[block] |= (uint32_t)_mm256_movemask_ps(columns) << column;
        }
    }
}

/* Largest exponent of a nonzero product in each column, below LEAST_EXPONENT if there is none. */
CHAIN_INLINE void products_emax(const chain_row *row, const chain_panel *panel, int first_k,
                                vint emax[VECTORS])
{
    vbytes top = (vbytes){0} + 2 * CHAIN_ZERO;
    for (int k = first_k; k < first_k + CHAIN_BLOCK_K; k++)
        top = bytes_max(top, row->exponent[k] + *(const vbytes *)panel->exponent[k]);

    int8_t columns[CHAIN_COLUMNS];
    memcpy(columns, &top, sizeof columns);
    CHAIN_UNROLL
    for (int v = 0; v < VECTORS; v++)
        emax[v] = chain_widen(columns + v * CHAIN_LANES);
}

/* Adds the 32 products to sum, cut to integers after multiplication by scale. */
CHAIN_INLINE void products_add(const chain_row *row, const chain_panel *panel, int first_k,
                               const vfloat scale[VECTORS], vint sum[VECTORS])
{
    for (int k = first_k; k < first_k + CHAIN_BLOCK_K; k++) {
        const vfloat *columns = (const vfloat *)panel->value[k];
        const float a = row->value[k];
        CHAIN_UNROLL
        for (int v = 0; v < VECTORS; v++)
            sum[v] += chain_truncate(a * columns[v] * scale[v]);
    }
}

/* The accumulators after a block.  nan: bit i for lane i. */
CHAIN_INLINE vfloat result_lanes(vint sum, vint emax, vint emax_products, vfloat c, uint32_t nan)
{
    const vint c_magnitude = (vint)c & (int)~FLOAT_BITS_SIGN;
    const vint c_cut = (vint)c & ~DROPPED_MASK;
    const vint keep_c = (emax_products < LEAST_EXPONENT) | (c_magnitude >= (int)FLOAT_BITS_INF);
    const vint cut = (vint) __builtin_convertvector(sum, vfloat) & ~DROPPED_MASK;
    const vfloat result = (vfloat)cut * power_of_two(emax - KEPT_BITS);

    const vint is_nan = (c_magnitude > (int)FLOAT_BITS_INF) | chain_bits_mask(nan);
    const vint canonical = (vint){0} + (int)FLOAT_BITS_NAN;
    return lanes_select(is_nan, (vfloat)canonical,
                        lanes_select(keep_c, (vfloat)c_cut, result) + 0.0f);
}

CHAIN_TARGET static void run(const chain_row *row, const chain_panel *panel, int first_block,
                             int blocks, float partial[CHAIN_COLUMNS])
{
    vfloat c[VECTORS];
    memcpy(c, partial, sizeof c);
    for (int block = first_block; block < first_block + blocks; block++) {
        const int first_k = block * CHAIN_BLOCK_K;
        const uint32_t nan = row->nan >> block & 1 ? ~0u : panel->nan[block];
        vint emax_products[VECTORS], emax[VECTORS], sum[VECTORS];
        vfloat scale[VECTORS];

        products_emax(row, panel, first_k, emax_products);
        CHAIN_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            const vint c_exponent = (vint)((vuint)c[v] << 1 >> 24) - 127;
            emax[v] =
                chain_max(chain_max(emax_products[v], c_exponent), (vint){0} + LEAST_EXPONENT);
            scale[v] = power_of_two(KEPT_BITS - emax[v]);
            sum[v] = chain_truncate(c[v] * scale[v]);
        }
        products_add(row, panel, first_k, scale, sum);
        CHAIN_UNROLL
        for (int v = 0; v < VECTORS; v++)
            c[v] = result_lanes(sum[v], emax[v], emax_products[v], c[v], nan >> v * CHAIN_LANES);
    }
    memcpy(partial, c, sizeof c);
}

#endif
