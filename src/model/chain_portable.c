/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain in plain C: the steps of tensor_core.c for 32 columns side by side, in loops that
 * compilers turn into whatever vectors the machine has.  It leaves out what e4m3 cannot do.
 */
#include <stdbool.h>

#include "format/bits.h"
#include "model/chain.h"
#include "model/chain_variants.h"

enum {
    ALIGNED_BITS = 13,    /* fraction bits below emax that a term keeps; also of the result */
    C_BITS = 23,          /* fraction bits of the accumulator */
    C_WIDTH = 24,         /* bits of its significand: a right shift by that leaves nothing */
    C_SPECIAL = 128,      /* its exponent field less the bias, for infinity and NaN */
    LEAST_EXPONENT = -12, /* of a nonzero product */
};

#define CUT_MASK (~0x3ffu) /* a result has 13 of the 23 mantissa bits */

/* 2^exponent, for the exponent of a normal fp32 number. */
static float power_of_two(int exponent)
{
    return float_from_bits((uint32_t)(exponent + 127) << 23);
}

/* The exponent field less the bias; -127 for a zero or subnormal accumulator. */
static int accumulator_exponent(uint32_t c)
{
    return (int)(c >> C_BITS & 0xff) - 127;
}

/* Returns 1 for a NaN, which decodes as a zero. */
static unsigned code_decode(uint32_t code, float *value, int8_t *exponent)
{
    const int biased = (int)(code >> 3) & 15;
    const int mantissa = (int)code & 7;
    const int significand = biased ? mantissa | 8 : mantissa;
    const int e = (biased ? biased : 1) - 7;

    if ((code & 0x7f) == 0 || (code & 0x7f) == 0x7f) {
        *value = 0.0f;
        *exponent = CHAIN_ZERO;
        return (code & 0x7f) != 0;
    }
    const float magnitude = (float)significand * power_of_two(e - 3);
    *value = code & 0x80 ? -magnitude : magnitude;
    *exponent = (int8_t)e;
    return 0;
}

static int blocks_ceil(int k)
{
    return (k + CHAIN_BLOCK_K - 1) / CHAIN_BLOCK_K;
}

static void decode_row(const uint8_t *codes, int k, chain_row *row)
{
    row->nan = 0;
    for (int i = 0; i < blocks_ceil(k) * CHAIN_BLOCK_K; i++) {
        const uint32_t code = i < k ? codes[i] : 0;
        row->nan |= code_decode(code, &row->value[i], &row->exponent[i]) << (i / CHAIN_BLOCK_K);
    }
}

static void decode_panel(const uint8_t *codes, ptrdiff_t ld, int n, int k, chain_panel *panel)
{
    for (int i = 0; i < blocks_ceil(k) * CHAIN_BLOCK_K; i++) {
        uint32_t nan = 0;
        for (int column = 0; column < CHAIN_COLUMNS; column++) {
            const uint32_t code = i < k && column < n ? codes[column * ld + i] : 0;
            nan |= code_decode(code, &panel->value[i][column], &panel->exponent[i][column])
                   << column;
        }
        const int block = i / CHAIN_BLOCK_K;
        panel->nan[block] = i % CHAIN_BLOCK_K ? panel->nan[block] | nan : nan;
    }
}

/* Step 4 without c: the largest exponent of a nonzero product, below LEAST_EXPONENT if none. */
static void products_emax(const chain_row *row, const chain_panel *panel, int first_k,
                          int8_t emax[CHAIN_COLUMNS])
{
    for (int column = 0; column < CHAIN_COLUMNS; column++)
        emax[column] = 2 * CHAIN_ZERO;
    for (int k = first_k; k < first_k + CHAIN_BLOCK_K; k++) {
        const int8_t a = row->exponent[k];
        for (int column = 0; column < CHAIN_COLUMNS; column++) {
            const int8_t exponent = (int8_t)(a + panel->exponent[k][column]);
            emax[column] = exponent > emax[column] ? exponent : emax[column];
        }
    }
}

/*
 * Steps 5 and 6 without c.  A product is exact in fp32 and scaled by a power of two; the
 * conversion to an integer truncates its magnitude, which is below 2^15.
 */
static void products_add(const chain_row *row, const chain_panel *panel, int first_k,
                         const float scale[CHAIN_COLUMNS], int32_t sum[CHAIN_COLUMNS])
{
    for (int k = first_k; k < first_k + CHAIN_BLOCK_K; k++) {
        const float a = row->value[k];
        for (int column = 0; column < CHAIN_COLUMNS; column++)
            sum[column] += (int32_t)(a * panel->value[k][column] * scale[column]);
    }
}

/* Step 5 for c.  Below 2^-126 nothing is left of it beside emax >= -12, as of c = 0. */
static int32_t accumulator_term(uint32_t c, int emax)
{
    const int shift = C_BITS - ALIGNED_BITS + emax - accumulator_exponent(c);
    const uint32_t significand = (c & FLOAT_BITS_MANTISSA) | FLOAT_BITS_HIDDEN;
    const int32_t magnitude = shift < C_WIDTH ? (int32_t)(significand >> shift) : 0;
    return c & FLOAT_BITS_SIGN ? -magnitude : magnitude;
}

/*
 * Step 7: sum * 2^(emax - 13), cut to 13 fraction bits.  No result is subnormal, as emax >= -12;
 * the last product is exact, or infinity from 2^128 on.
 */
static float result_float(int32_t sum, int emax)
{
    const float exact = (float)sum; /* |sum| < 33 * 2^15 */
    return float_from_bits(bits_from_float(exact) & CUT_MASK) * power_of_two(emax - ALIGNED_BITS);
}

/* The result where products do not count: none but zeros, or an infinite or NaN c. */
static float accumulator_cut(uint32_t c)
{
    if (bits_is_nan(c))
        return float_from_bits(FLOAT_BITS_NAN);
    return float_from_bits(c & CUT_MASK) + 0.0f; /* -0 becomes +0 */
}

static void block_run(const chain_row *row, const chain_panel *panel, int first_k,
                      float partial[CHAIN_COLUMNS])
{
    int8_t emax_products[CHAIN_COLUMNS];
    int emax[CHAIN_COLUMNS];
    float scale[CHAIN_COLUMNS];
    int32_t sum[CHAIN_COLUMNS];

    products_emax(row, panel, first_k, emax_products);
    for (int column = 0; column < CHAIN_COLUMNS; column++) {
        const uint32_t c = bits_from_float(partial[column]);
        const int c_exponent = accumulator_exponent(c);
        emax[column] = emax_products[column] > c_exponent ? emax_products[column] : c_exponent;
        emax[column] = emax[column] > LEAST_EXPONENT ? emax[column] : LEAST_EXPONENT;
        scale[column] = power_of_two(ALIGNED_BITS - emax[column]);
        sum[column] = accumulator_term(c, emax[column]);
    }
    products_add(row, panel, first_k, scale, sum);
    for (int column = 0; column < CHAIN_COLUMNS; column++) {
        const uint32_t c = bits_from_float(partial[column]);
        const bool counts =
            emax_products[column] >= LEAST_EXPONENT && accumulator_exponent(c) < C_SPECIAL;
        partial[column] = counts ? result_float(sum[column], emax[column]) : accumulator_cut(c);
    }
}

static void run(const chain_row *row, const chain_panel *panel, int first_block, int blocks,
                float partial[CHAIN_COLUMNS])
{
    for (int block = first_block; block < first_block + blocks; block++) {
        const uint32_t nan = row->nan >> block & 1 ? ~0u : panel->nan[block];
        block_run(row, panel, block * CHAIN_BLOCK_K, partial);
        for (int column = 0; nan && column < CHAIN_COLUMNS; column++) {
            if (nan >> column & 1)
                partial[column] = float_from_bits(FLOAT_BITS_NAN);
        }
    }
}

const chain_ops chain_ops_portable = {"portable", decode_row, decode_panel, run};
