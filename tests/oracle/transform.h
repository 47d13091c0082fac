/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problems made from another one, whose results must hold the same bits: rows alone, rows
 * elsewhere, groups in another order, k in a wider buffer, k in pieces.
 *
 * Each makes *v from c: same problem and operands but for what it is named for, a poisoned D of
 * its own, and C never aliased. Memory belongs to c. Rows are those of the whole matrix: c must be
 * DENSE or RANGES, unless it says otherwise.
 */
#ifndef HALFBYTE_TESTS_ORACLE_TRANSFORM_H
#define HALFBYTE_TESTS_ORACLE_TRANSFORM_H

#include "oracle/gemm_case.h"

/* The same again. Any grouping. */
void transform_again(struct gemm_case *c, struct gemm_case *v);

/* Rows [first, first + count) of a DENSE problem, in place: only pointers move. */
void transform_take_rows(struct gemm_case *c, struct gemm_case *v, int64_t first, int64_t count);

/* Row i is row map[i] of c, or random bytes (NaN among them) where map[i] is -1. */
void transform_gather_rows(struct gemm_case *c, struct gemm_case *v, const int64_t *map,
                           int64_t rows, struct random *r);

/* Group g is group map[g] of c, or random bytes where map[g] is -1. The rows that groups own are
 * left to the caller. */
void transform_regroup(struct gemm_case *c, struct gemm_case *v, const int64_t *map, int64_t groups,
                       struct random *r);

/* k extended to the end of its last block, with zeros. B must be row-major, c DENSE. */
void transform_widen_k(struct gemm_case *c, struct gemm_case *v);

/* Blocks [first, end) of k alone, one running sum. B must be row-major, its scale not INTERLEAVED4,
 * c DENSE; with A 1X128 the blocks must be of 128. */
void transform_take_blocks(struct gemm_case *c, struct gemm_case *v, int64_t first, int64_t end);

/* Whether row i of v's D and row j of c's hold the same bits. */
bool transform_same_row(const struct gemm_case *v, int64_t i, const struct gemm_case *c, int64_t j);

/* Extents of B's scale tensor of one group; *kb is 1 where it does not vary along k. */
void transform_b_scale_extents(const halfbyte_problem *p, int64_t *mn, int64_t *kb);

#endif /* HALFBYTE_TESTS_ORACLE_TRANSFORM_H */
