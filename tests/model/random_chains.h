/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operands for e4m3 chains, biased toward what the tensor core treats specially.  One case
 * is a row of A against 32 columns of B: 32 chains of 4 instructions.
 */
#ifndef HALFBYTE_TESTS_MODEL_RANDOM_CHAINS_H
#define HALFBYTE_TESTS_MODEL_RANDOM_CHAINS_H

#include <stdint.h>

#include "model/chain.h"

struct random_source {
    uint64_t state;
};

struct chain_case {
    uint8_t a[CHAIN_MAX_K];
    uint8_t b[CHAIN_COLUMNS][CHAIN_MAX_K];
    uint32_t c[CHAIN_COLUMNS]; /* accumulators before the first instruction */
};

/* 64 uniform bits. */
uint64_t random_bits(struct random_source *source);

/* Uniform in [0, count). */
unsigned random_below(struct random_source *source, unsigned count);

/* The distributions of operands: index 0 .. chain_kinds - 1 and their names. */
extern const char *const chain_kind_names[];
extern const unsigned chain_kinds;

void chain_case_fill(struct chain_case *dots, unsigned kind, struct random_source *source);

#endif
