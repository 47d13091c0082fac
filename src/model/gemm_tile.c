/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gemm_tile.h"

#include <string.h>

#include "format/int4.h"
#include "format/int4_packed.h"

enum {
    PANELS = GEMM_TILE_COLUMNS / CHAIN_COLUMNS,
    /* Panels of packed weights and tiles begin at the same columns. */
    PACKED_PANELS_A_TILE = GEMM_TILE_COLUMNS / INT4_PACKED_ATOM_ROWS,
};
_Static_assert(GEMM_TILE_COLUMNS % CHAIN_COLUMNS == 0, "a tile is made of whole panels");
_Static_assert(PACKED_PANELS_A_TILE == 1, "a tile is as wide as a packed panel");

/* An atom of 128 positions of both operands, decoded. */
typedef struct tile_atom {
    int64_t atom; /* -1: none yet */
    chain_row rows[GEMM_TILE_ROWS];
    chain_panel panels[PANELS];
} tile_atom;

typedef uint8_t tile_codes[GEMM_TILE_COLUMNS][CHAIN_MAX_K];

static void decode_rows(const gemm_context *context, const gemm_tile *tile,
                        const gemm_run_of_k *run, tile_atom *decoded)
{
    const halfbyte_matrix_in *a = &context->operands->a;
    uint8_t padded[CHAIN_MAX_K];
    for (int r = 0; r < tile->rows; r++) {
        const int64_t offset =
            gemm_row_offset(context->problem, tile->group, tile->row + r, a->ld, a->group_stride);
        const uint8_t *codes = (const uint8_t *)a->data + offset + run->k_begin;
        if (run->pad > 0) {
            memset(padded, 0, (size_t)run->pad);
            memcpy(padded + run->pad, codes, (size_t)run->k_count);
            codes = padded;
        }
        context->ops->decode_row(codes, run->pad + run->k_count, &decoded->rows[r]);
    }
}

/* int4 weights of the tile as e4m3 bytes, position p of column c at codes[c][p]. */
static void int4_codes(const gemm_context *context, const gemm_tile *tile, int64_t atom,
                       const gemm_run_of_k *run, tile_codes codes)
{
    const halfbyte_problem *problem = context->problem;
    const halfbyte_matrix_in *b = &context->operands->b;
    if (problem->b_layout == HALFBYTE_B_PACKED) {
        const unsigned flags = context->operands->b_header->flags;
        const struct int4_packed_shape shape = {problem->groups, problem->n, problem->k,
                                                problem->group_k_offset, flags};
        const int64_t panel =
            tile->group * int4_packed_panels(&shape) + tile->column / INT4_PACKED_ATOM_ROWS;
        const int64_t index = panel * int4_packed_atoms(&shape) + atom;
        int4_packed_atom_to_e4m3(codes[0], CHAIN_MAX_K,
                                 (const uint8_t *)b->data + index * INT4_PACKED_ATOM_BYTES, flags);
        return;
    }
    for (int c = 0; c < tile->columns; c++) {
        const int64_t row = tile->group * b->group_stride + (tile->column + c) * b->ld;
        memset(codes[c], 0, (size_t)run->pad);
        int4_row_to_e4m3(codes[c] + run->pad, (const uint8_t *)b->data + row / 2, run->k_begin,
                         run->k_count);
    }
}

static void decode_columns(const gemm_context *context, const gemm_tile *tile, int64_t atom,
                           const gemm_run_of_k *run, tile_atom *decoded)
{
    const halfbyte_matrix_in *b = &context->operands->b;
    tile_codes int4;
    const uint8_t *codes = int4[0];
    int64_t ld = CHAIN_MAX_K;
    if (context->problem->family == HALFBYTE_FAMILY_W4A8) {
        int4_codes(context, tile, atom, run, int4);
    } else {
        ld = b->ld;
        codes = (const uint8_t *)b->data + tile->group * b->group_stride + tile->column * ld +
                run->k_begin;
    }
    for (int p = 0; p * CHAIN_COLUMNS < tile->columns; p++) {
        const int left = tile->columns - p * CHAIN_COLUMNS;
        context->ops->decode_panel(codes + p * CHAIN_COLUMNS * ld, (ptrdiff_t)ld,
                                   left < CHAIN_COLUMNS ? left : CHAIN_COLUMNS,
                                   run->pad + run->k_count, &decoded->panels[p]);
    }
}

/* B's scale of the block for each column of the tile, 1 where B has none along k. */
static void column_scales(const gemm_context *context, const gemm_tile *tile, int64_t block,
                          float scales[GEMM_TILE_COLUMNS])
{
    const halfbyte_problem *problem = context->problem;
    const gemm_scale *b = &context->b_scale;
    /* A weight group that is all of k spans many blocks. */
    const bool all_of_k = b->mode == HALFBYTE_SCALE_K_GROUP && problem->weight_group_size == 0;
    for (int c = 0; c < GEMM_TILE_COLUMNS; c++) {
        scales[c] = 1.0f;
        if (gemm_scale_varies(b) && c < tile->columns) {
            scales[c] = gemm_scale_read(b, tile->group, tile->column + c, all_of_k ? 0 : block);
        }
    }
}

/*
 * The block's scale for the columns of a panel.  Multiplying by an absent scale's 1 changes no bit,
 * so one formula serves all rows of the table in docs/numerics.md section 5 (mul_rn also makes NaN
 * canonical, as fma_rn would).
 */
static void combine_scales(halfbyte_family family, float a_scale,
                           const float b_scales[CHAIN_COLUMNS], float scales[CHAIN_COLUMNS])
{
    const float int4_unit = family == HALFBYTE_FAMILY_W4A8 ? 512.0f : 1.0f;
    for (int c = 0; c < CHAIN_COLUMNS; c++) {
        scales[c] = mul_rn(mul_rn(a_scale, b_scales[c]), int4_unit);
    }
}

static void add_block(const gemm_context *context, const gemm_tile *tile, const tile_atom *decoded,
                      int64_t block, gemm_sums sums)
{
    const halfbyte_family family = context->problem->family;
    const int64_t position = block * context->blocks.length;
    const int first = (int)(position % CHAIN_MAX_K / CHAIN_BLOCK_K);
    const int instructions = gemm_blocks_instructions(&context->blocks, block);
    const bool a_varies = gemm_scale_varies(&context->a_scale);
    float b_scales[GEMM_TILE_COLUMNS];
    float scales[GEMM_TILE_COLUMNS];

    column_scales(context, tile, block, b_scales);
    for (int p = 0; p < PANELS; p++) {
        combine_scales(family, 1.0f, b_scales + p * CHAIN_COLUMNS, scales + p * CHAIN_COLUMNS);
    }
    for (int p = 0; p * CHAIN_COLUMNS < tile->columns; p++) {
        const int c = p * CHAIN_COLUMNS;
        for (int r = 0; r < tile->rows; r++) {
            float partial[CHAIN_COLUMNS] = {0};
            context->ops->run(&decoded->rows[r], &decoded->panels[p], first, instructions, partial);
            if (a_varies) {
                const float a_scale = gemm_scale_read(&context->a_scale, tile->group, tile->row + r,
                                                      position / CHAIN_MAX_K);
                combine_scales(family, a_scale, b_scales + c, scales + c);
            }
            context->promote(partial, scales + c, &sums[r][c]);
        }
    }
}

static void sum_blocks(const gemm_context *context, const gemm_tile *tile, int64_t begin,
                       int64_t end, tile_atom *decoded, gemm_sums sums)
{
    memset(sums, 0, sizeof(gemm_sums));
    for (int64_t block = begin; block < end; block++) {
        const int64_t atom = block * context->blocks.length / CHAIN_MAX_K;
        if (atom != decoded->atom) {
            const gemm_run_of_k run = gemm_blocks_atom(&context->blocks, atom);
            decode_rows(context, tile, &run, decoded);
            decode_columns(context, tile, atom, &run, decoded);
            decoded->atom = atom;
        }
        add_block(context, tile, decoded, block, sums);
    }
}

/* Sums of one range of k are added to those of the ranges before it. */
static void add_range(const gemm_tile *tile, gemm_sums range, gemm_sums sums)
{
    for (int r = 0; r < tile->rows; r++) {
        for (int c = 0; c < tile->columns; c++) {
            sums[r][c] = add_rn(sums[r][c], range[r][c]);
        }
    }
}

void gemm_tile_sum(const gemm_context *context, const gemm_tile *tile, gemm_sums sums)
{
    const gemm_blocks *blocks = &context->blocks;
    const int64_t splits = context->problem->k_splits;
    tile_atom decoded;
    gemm_sums range;
    decoded.atom = -1;
    sum_blocks(context, tile, 0, gemm_blocks_split(blocks, splits, 1), &decoded, sums);
    for (int64_t split = 1; split < splits; split++) {
        sum_blocks(context, tile, gemm_blocks_split(blocks, splits, split),
                   gemm_blocks_split(blocks, splits, split + 1), &decoded, range);
        add_range(tile, range, sums);
    }
}
