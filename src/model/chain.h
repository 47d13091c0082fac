/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of e4m3 tensor-core instructions for GEMMs: tensor_core_block for 32 columns at a time.
 *
 *     C[row][column] = block(A[row][k..k+31], B[column][k..k+31], C[row][column]),  k = 0, 32, ...
 *
 * Operands are decoded once and used often: a row of A against many panels, a panel of 32 columns
 * of B against many rows.  Every variant gives the bits of tensor_core_block, for every input.
 * chain_vector.h says how that is reached without integer alignment of each product.
 *
 * All functions need the floating-point environment of fp_env.h and touch no global state.  Rows
 * and panels are aligned to 64 bytes: on the heap by aligned_alloc.
 */
#ifndef HALFBYTE_MODEL_CHAIN_H
#define HALFBYTE_MODEL_CHAIN_H

#include <stddef.h>
#include <stdint.h>

enum {
    CHAIN_COLUMNS = 32,
    CHAIN_BLOCK_K = 32, /* k of one instruction */
    CHAIN_MAX_K = 128,  /* k of one decoded row or panel */
    CHAIN_MAX_BLOCKS = CHAIN_MAX_K / CHAIN_BLOCK_K,

    /*
     * The exponent of e4m3 is -6..8 and that of a nonzero product -12..16.  A zero operand has
     * this one instead: no sum with it reaches -12, and twice it still fits a signed byte.
     */
    CHAIN_ZERO = -60,
};

/* One row of A.  A NaN operand stands in it as some finite number, which `nan` overrules. */
typedef struct chain_row {
    _Alignas(64) float value[CHAIN_MAX_K];
    _Alignas(64) int8_t exponent[CHAIN_MAX_K]; /* not normalised: -6 for subnormals */
    uint32_t nan;                              /* bit b: block b of 32 k holds a NaN */
} chain_row;

/* 32 columns of B, neighbouring columns side by side; NaN operands as in chain_row. */
typedef struct chain_panel {
    _Alignas(64) float value[CHAIN_MAX_K][CHAIN_COLUMNS];
    _Alignas(64) int8_t exponent[CHAIN_MAX_K][CHAIN_COLUMNS];
    uint32_t nan[CHAIN_MAX_BLOCKS]; /* per block of 32 k; bit c: column c holds a NaN there */
} chain_panel;

typedef struct chain_ops {
    const char *name;

    /* codes[0..k), 0 <= k <= 128, padded with zeros to whole blocks; later ones stay undefined. */
    void (*decode_row)(const uint8_t *codes, int k, chain_row *row);

    /*
     * Column c of B is codes[c * ld .. c * ld + k): n columns (0..32) of k codes (0..128), ld in
     * codes.  Padded with zeros to 32 columns and whole blocks; later blocks stay undefined.
     */
    void (*decode_panel)(const uint8_t *codes, ptrdiff_t ld, int n, int k, chain_panel *panel);

    /*
     * Chains blocks [first_block, first_block + blocks) of the row with those of each column.
     * partial: accumulator of each column, in and out; any fp32 value, of any alignment.
     */
    void (*run)(const chain_row *row, const chain_panel *panel, int first_block, int blocks,
                float partial[CHAIN_COLUMNS]);
} chain_ops;

typedef enum chain_isa {
    CHAIN_ISA_AUTO, /* the fastest that this CPU has */
    CHAIN_ISA_PORTABLE,
    CHAIN_ISA_AVX2,
    CHAIN_ISA_AVX512, /* F, BW, VL, DQ */
} chain_isa;

/* The functions of a variant; NULL if this build or this CPU lacks it (never for the first two). */
const chain_ops *chain_ops_get(chain_isa isa);

#endif
