/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain in plain C, one column at a time: int32 arithmetic, no assumption beyond IEEE fp32.
 * It follows tensor_core.c step by step and leaves out what e4m3 cannot do.
 */
#include "format/bits.h"
#include "model/chain.h"
#include "model/chain_variants.h"

enum {
    ALIGNED_BITS = 13,       /* fraction bits below emax that a term keeps; also of the result */
    C_BITS = 23,             /* fraction bits of the accumulator */
    LEAST_EXPONENT = -12,    /* of a nonzero product */
    C_WIDTH = 24,            /* bits of its significand: a right shift by that leaves nothing */
};

/* 2^exponent, for the exponent of a normal fp32 number. */
static float power_of_two(int exponent)
{
    return float_from_bits((uint32_t)(exponent + 127) << 23);
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
static int products_emax(const chain_row *row, const chain_panel *panel, int first_k, int column)
{
    int emax = 2 * CHAIN_ZERO;
    for (int k = first_k; k < first_k + CHAIN_BLOCK_K; k++) {
        const int exponent = row->exponent[k] + panel->exponent[k][column];
        emax = exponent > emax ? exponent : emax;
    }
    return emax;
}

/*
 * Steps 5 and 6 without c.  A product is exact in fp32 and below 2^18; the conversion to an
 * integer truncates its magnitude.  Above 2^31 the scale is held: nothing is left of a product.
 */
static int32_t products_sum(const chain_row *row, const chain_panel *panel, int first_k,
                            int column, int emax)
{
    const float scale = power_of_two(ALIGNED_BITS - (emax < 32 ? emax : 32));
    int32_t sum = 0;
    for (int k = first_k; k < first_k + CHAIN_BLOCK_K; k++) {
        sum += (int32_t)(row->value[k] * panel->value[k][column] * scale);
    }
    return sum;
}

/* Step 7: sum * 2^(emax - 13), cut to 13 fraction bits; emax >= -12, so no result is subnormal. */
static float result_float(int32_t sum, int emax)
{
    const float exact = (float)sum; /* |sum| < 2^20 */
    const float cut = float_from_bits(bits_from_float(exact) & ~0x3ffu);
    return cut * power_of_two(emax - ALIGNED_BITS); /* exact, or infinity from 2^128 on */
}

static float column_block(const chain_row *row, const chain_panel *panel, int first_k, int column,
                          float accumulator)
{
    const uint32_t c = bits_from_float(accumulator);
    const int c_field = (int)(c >> C_BITS) & 0xff;
    const int emax_products = products_emax(row, panel, first_k, column);

    if (c_field == 0xff) { /* infinity stays, NaN becomes canonical */
        return float_from_bits(c & FLOAT_BITS_MANTISSA ? FLOAT_BITS_NAN : c);
    }
    if (emax_products < LEAST_EXPONENT) { /* only c: its low 10 bits go, a zero becomes +0 */
        return float_from_bits(c & ~0x3ffu) + 0.0f;
    }
    /* A c of field 0 is below 2^-126: nothing is left of it beside a product, as of c = 0. */
    const int emax = emax_products > c_field - 127 ? emax_products : c_field - 127;
    const int c_shift = C_BITS - ALIGNED_BITS + emax - (c_field - 127);
    const uint32_t c_significand = (c & FLOAT_BITS_MANTISSA) | FLOAT_BITS_HIDDEN;
    const int32_t c_term = c_shift < C_WIDTH ? (int32_t)(c_significand >> c_shift) : 0;
    const int32_t sum = products_sum(row, panel, first_k, column, emax);
    return result_float(c >> 31 ? sum - c_term : sum + c_term, emax);
}

static void run(const chain_row *row, const chain_panel *panel, int first_block, int blocks,
                float partial[CHAIN_COLUMNS])
{
    for (int block = first_block; block < first_block + blocks; block++) {
        const uint32_t nan = row->nan >> block & 1 ? ~0u : panel->nan[block];
        for (int column = 0; column < CHAIN_COLUMNS; column++) {
            partial[column] = nan >> column & 1 ? float_from_bits(FLOAT_BITS_NAN)
                                                : column_block(row, panel, block * CHAIN_BLOCK_K,
                                                               column, partial[column]);
        }
    }
}

const chain_ops chain_ops_portable = {"portable", decode_row, decode_panel, run};
