/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tile of a GEMM: up to 64 rows of one group times up to 64 columns.
 *
 * Tiles share nothing, so how D is cut into them and who computes them leaves no trace in the bits.
 */
#ifndef HALFBYTE_MODEL_GEMM_TILE_H
#define HALFBYTE_MODEL_GEMM_TILE_H

#include "halfbyte.h"
#include "model/chain.h"
#include "model/gemm_blocks.h"
#include "model/gemm_scale.h"
#include "model/promote.h"

enum { GEMM_TILE_ROWS = 64, GEMM_TILE_COLUMNS = 64 };

/* What all tiles of one run have in common. */
typedef struct gemm_context {
    const halfbyte_problem *problem;
    const halfbyte_operands *operands;
    const chain_ops *ops;
    promote_function *promote;
    gemm_blocks blocks;
    gemm_scale a_scale;
    gemm_scale b_scale;
    float alpha;
} gemm_context;

typedef struct gemm_tile {
    int64_t group;
    int64_t row; /* of A and D; MASKED: of the group's own matrix */
    int64_t column;
    int rows;
    int columns;
} gemm_tile;

typedef float gemm_sums[GEMM_TILE_ROWS][GEMM_TILE_COLUMNS];

/* Running sums over all of k: docs/numerics.md sections 4 and 5.  Rows and columns past the tile's
 * end are left undefined. */
void gemm_tile_sum(const gemm_context *context, const gemm_tile *tile, gemm_sums sums);

/* Epilogue and store: docs/numerics.md section 6.  Writes the tile of D and nothing else. */
void gemm_tile_store(const gemm_context *context, const gemm_tile *tile, gemm_sums sums);

/* Element offset of (row, 0) of a group's matrix with leading dimension ld. */
static inline int64_t gemm_row_offset(const halfbyte_problem *problem, int64_t group, int64_t row,
                                      int64_t ld, int64_t group_stride)
{
    const int64_t matrix = problem->grouping == HALFBYTE_GROUPING_MASKED ? group * group_stride : 0;
    return matrix + row * ld;
}

#endif
