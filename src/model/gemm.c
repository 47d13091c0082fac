/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts a GEMM into tiles and shares them out.  Group sizes are read here and nowhere else; nothing
 * is allocated: row tiles are collected in batches on the stack, and each batch times all column
 * tiles is one parallel loop.
 */
#include "model/gemm.h"

#include <string.h>

#include "model/fp_env.h"
#include "model/gemm_padding.h"
#include "model/gemm_tile.h"
#include "model/groups.h"

enum { BATCH_ROW_TILES = 256 };

typedef struct batch_rows {
    int64_t group;
    int64_t row;
    int rows;
} batch_rows;

typedef struct gemm_batch {
    gemm_context context;
    parallel_pool *pool;
    int64_t column_tiles;
    int count;
    batch_rows row_tiles[BATCH_ROW_TILES];
} gemm_batch;

static void batch_task(void *argument, int64_t task)
{
    const gemm_batch *batch = argument;
    const batch_rows *rows = &batch->row_tiles[task / batch->column_tiles];
    const int64_t column = task % batch->column_tiles * GEMM_TILE_COLUMNS;
    const int64_t columns_left = batch->context.problem->n - column;
    const gemm_tile tile = {
        rows->group, rows->row, column, rows->rows,
        (int)(columns_left < GEMM_TILE_COLUMNS ? columns_left : GEMM_TILE_COLUMNS)};
    gemm_sums sums;
    gemm_tile_sum(&batch->context, &tile, sums);
    gemm_tile_store(&batch->context, &tile, sums);
}

static void batch_flush(gemm_batch *batch)
{
    parallel_for(batch->pool, batch->count * batch->column_tiles, batch_task, batch);
    batch->count = 0;
}

/* Rows [start, end) of one group. */
static void batch_add(gemm_batch *batch, int64_t group, int64_t start, int64_t end)
{
    for (int64_t row = start; row < end; row += GEMM_TILE_ROWS) {
        if (batch->count == BATCH_ROW_TILES) {
            batch_flush(batch);
        }
        const int64_t left = end - row;
        const batch_rows rows = {group, row, (int)(left < GEMM_TILE_ROWS ? left : GEMM_TILE_ROWS)};
        batch->row_tiles[batch->count++] = rows;
    }
}

/* Runs of rows with the same label, wherever they stand. */
static void batch_add_labelled(gemm_batch *batch)
{
    const halfbyte_problem *problem = batch->context.problem;
    const halfbyte_operands *operands = batch->context.operands;
    int64_t end;
    for (int64_t start = 0; start < operands->m; start = end) {
        const int64_t group = label_group(problem, operands, start);
        end = start + 1;
        while (end < operands->m && label_group(problem, operands, end) == group) {
            end++;
        }
        if (group >= 0) {
            batch_add(batch, group, start, end);
        }
    }
}

static gemm_context context_of(const halfbyte_problem *problem, const halfbyte_operands *operands,
                               const chain_ops *ops)
{
    gemm_context context = {.problem = problem,
                            .operands = operands,
                            .ops = ops,
                            .promote = promote_get(),
                            .blocks = gemm_blocks_of(problem),
                            .alpha = operands->alpha};
    const int64_t blocks_of_128 = (problem->k + 127) / 128;
    const bool by_128 = problem->b_scale.mode == HALFBYTE_SCALE_128X128;
    int64_t b_blocks = blocks_of_128;
    if (problem->b_scale.mode == HALFBYTE_SCALE_K_GROUP && problem->k > 0) {
        b_blocks = problem->weight_group_size == 0 ? 1 : context.blocks.count;
    }
    context.a_scale =
        gemm_scale_of(&problem->a_scale, &operands->a_scale, operands->m, blocks_of_128);
    context.b_scale = gemm_scale_of(&problem->b_scale, &operands->b_scale,
                                    by_128 ? (problem->n + 127) / 128 : problem->n, b_blocks);
    /* Rows of A belong to one matrix unless each group has its own. */
    if (problem->a_scale.mode != HALFBYTE_SCALE_TENSOR &&
        problem->grouping != HALFBYTE_GROUPING_MASKED) {
        context.a_scale.group_stride = 0;
    }
    if (problem->alpha_mode == HALFBYTE_ALPHA_DEVICE) {
        context.alpha = *operands->alpha_pointer;
    }
    return context;
}

void gemm_run(const halfbyte_problem *problem, const halfbyte_operands *operands,
              const chain_ops *ops, parallel_pool *pool)
{
    if (operands->m == 0 || problem->n == 0) {
        return;
    }
    const fp_env env = fp_env_save();
    fp_env_set();
    gemm_batch batch;
    batch.context = context_of(problem, operands, ops);
    batch.pool = pool;
    batch.column_tiles = (problem->n + GEMM_TILE_COLUMNS - 1) / GEMM_TILE_COLUMNS;
    batch.count = 0;
    if (problem->grouping == HALFBYTE_GROUPING_LABELS) {
        batch_add_labelled(&batch);
    } else {
        group_cursor cursor = group_cursor_begin(problem, operands);
        group_rows rows;
        while (group_cursor_next(&cursor, &rows)) {
            batch_add(&batch, rows.group, rows.start, rows.end);
        }
    }
    batch_flush(&batch);
    if (problem->flags & HALFBYTE_ZERO_FILL_PADDING) {
        gemm_zero_padding(problem, operands);
    }
    fp_env_restore(env);
}
