/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single elements of the operands, read as include/halfbyte.h and docs/formats.md describe them.
 * Every scale and vector comes as an fp32 bit pattern, every element of A and B as an e4m3 code.
 */
#ifndef HALFBYTE_TESTS_ORACLE_OPERAND_H
#define HALFBYTE_TESTS_ORACLE_OPERAND_H

#include "halfbyte.h"

#include <stdbool.h>
#include <stdint.h>

/* The blocks along k: section 4 of numerics.md. */
struct oracle_blocks {
    int64_t length, offset, count;
};

struct oracle_blocks oracle_blocks(const halfbyte_problem *p);

/* The k indices of block b: [*start, *end). */
void oracle_block_range(const halfbyte_problem *p, int64_t b, int64_t *start, int64_t *end);

int64_t oracle_groups(const halfbyte_problem *p);

/* Whether group owns the row (a row of the group for MASKED, of the whole matrix otherwise). */
bool oracle_group_owns(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                       int64_t row);

uint8_t oracle_a(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group, int64_t row,
                 int64_t k);
uint8_t oracle_b(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                 int64_t column, int64_t k);

/* The value -8..7 of an int4 weight. */
int oracle_int4(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                int64_t column, int64_t k);

/* Scales that vary along k, at block b; the mode must be one of those. */
uint32_t oracle_a_block_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                              int64_t row, int64_t b);
uint32_t oracle_b_block_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                              int64_t column, int64_t b);

/* Scales of the epilogue: TENSOR and OUTER. */
uint32_t oracle_a_outer_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                              int64_t row);
uint32_t oracle_b_outer_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                              int64_t column);

uint32_t oracle_vector(const halfbyte_vector_in *v, halfbyte_type type, int64_t group, int64_t i);
uint32_t oracle_c(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group, int64_t row,
                  int64_t column);

/* Where D[row, column] of the group lies, in elements. */
int64_t oracle_d_offset(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                        int64_t row, int64_t column);

/* Element i of an array of bf16, f16, e4m3 (code) or f32, as it stands in memory. */
uint32_t oracle_load(const void *data, halfbyte_type type, int64_t i);

#endif /* HALFBYTE_TESTS_ORACLE_OPERAND_H */
