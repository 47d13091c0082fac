/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gemm_tile.h"

#include "model/arith.h"

/* The epilogue of one row: what does not depend on the column, and where its tensors begin. */
typedef struct epilogue_row {
    bool has_a_scale;
    bool has_b_scale;
    bool has_c;
    float a_scale;
    int64_t c_offset;       /* of (row, tile->column) in C */
    int64_t vector_channel; /* of tile->column in channel_scale */
    int64_t vector_bias;    /* of tile->column in bias */
} epilogue_row;

static bool is_outside_k(const gemm_scale *scale)
{
    return scale->mode == HALFBYTE_SCALE_TENSOR || scale->mode == HALFBYTE_SCALE_OUTER;
}

static epilogue_row epilogue_row_of(const gemm_context *context, const gemm_tile *tile, int r)
{
    const halfbyte_operands *operands = context->operands;
    const halfbyte_problem *problem = context->problem;
    const halfbyte_matrix_in *c = &operands->c;
    epilogue_row row = {0};
    row.has_a_scale = is_outside_k(&context->a_scale);
    row.has_b_scale = is_outside_k(&context->b_scale);
    row.has_c = problem->c_type != HALFBYTE_TYPE_NONE && operands->beta != 0.0f;
    if (row.has_a_scale) {
        row.a_scale = gemm_scale_read(&context->a_scale, tile->group, tile->row + r, 0);
    }
    if (row.has_c) {
        row.c_offset = tile->column +
                       gemm_row_offset(problem, tile->group, tile->row + r, c->ld, c->group_stride);
    }
    row.vector_channel = tile->group * operands->channel_scale.group_stride + tile->column;
    row.vector_bias = tile->group * operands->bias.group_stride + tile->column;
    return row;
}

/* docs/numerics.md section 6, line by line, for column c of the tile. */
static float epilogue(const gemm_context *context, const gemm_tile *tile, const epilogue_row *row,
                      int c, float x)
{
    const halfbyte_problem *problem = context->problem;
    const halfbyte_operands *operands = context->operands;
    if (row->has_a_scale) {
        x = mul_rn(x, row->a_scale);
    }
    if (row->has_b_scale) {
        x = mul_rn(x, gemm_scale_read(&context->b_scale, tile->group, tile->column + c, 0));
    }
    if (problem->channel_scale_type != HALFBYTE_TYPE_NONE) {
        x = mul_rn(x, element_read(problem->channel_scale_type, operands->channel_scale.data,
                                   row->vector_channel + c));
    }
    if (problem->alpha_mode != HALFBYTE_ALPHA_NONE) {
        x = mul_rn(x, context->alpha);
    }
    if (row->has_c) {
        const float old = element_read(problem->c_type, operands->c.data, row->c_offset + c);
        x = fma_rn(operands->beta, old, x);
    }
    if (problem->bias_type != HALFBYTE_TYPE_NONE) {
        x = add_rn(x, element_read(problem->bias_type, operands->bias.data, row->vector_bias + c));
    }
    return x;
}

void gemm_tile_store(const gemm_context *context, const gemm_tile *tile, gemm_sums sums)
{
    const halfbyte_problem *problem = context->problem;
    const halfbyte_matrix_out *d = &context->operands->d;
    for (int r = 0; r < tile->rows; r++) {
        const epilogue_row row = epilogue_row_of(context, tile, r);
        const int64_t offset = tile->column + gemm_row_offset(problem, tile->group, tile->row + r,
                                                              d->ld, d->group_stride);
        for (int c = 0; c < tile->columns; c++) {
            const float x = epilogue(context, tile, &row, c, sums[r][c]);
            element_write(problem->d_type, d->data, offset + c, x);
        }
    }
}
