/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of the tokens, by the scale warps of gemm_w4a8_scales.h: along k with each group of a
 * stage, or the epilogue's factors with a tile's last stage.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_TOKEN_SCALES_H
#define HALFBYTE_KERNELS_GEMM_W4A8_TOKEN_SCALES_H

/* Rows of A of the tile. */
typedef struct token_rows {
    int32_t group, plane, row, row_end;
} token_rows;

HB_DEVICE token_rows token_rows_of(const scale_tile *tile)
{
    uint32_t low[4];
    token_rows t;
    smem_load_u32x4(tile->slot, low);
    t.group = (int32_t)low[0];
    t.plane = (int32_t)low[1];
    t.row = (int32_t)low[2];
    t.row_end = (int32_t)low[3];
    return t;
}

/* Scales of the tokens, one a group, to each group of one stage. */
HB_DEVICE void copy_token_scales(const gemm_params *p, const scale_tile *tile, int32_t block,
                                 smem_addr to)
{
    const token_rows rows = token_rows_of(tile);
    const gemm_scales *s = &p->a_scale;
    int q;
    uint32_t t;
    HB_NO_UNROLL
    for (q = 0; q < STAGE_GROUPS; q++) {
        const float *of_block = (const float *)s->data + rows.plane * s->group_stride +
                                scale_offset(s, block + q / GEMM_GROUPS);
        const bool exists =
            block + q / GEMM_GROUPS < tile->end_block && group_at(p, block, q) < p->k_groups;
        HB_NO_UNROLL
        for (t = lane_index(); t < TILE_TOKENS; t += 32) {
            const smem_addr at = to + (uint32_t)q * GROUP_SCALE_BYTES + (TILE_ROWS + t) * 4u;
            if (!exists) {
                smem_store_f32(at, 1.0f);
            } else if (rows.row + (int32_t)t < rows.row_end) {
                cp_async_4(at, of_block + (rows.row + (int32_t)t) * s->stride_mn);
            }
        }
    }
}

/* Factors of the tokens for the epilogue, with the last group of the tile's last stage. */
HB_DEVICE void store_token_factors(const gemm_params *p, const scale_tile *tile, smem_addr to)
{
    const token_rows rows = token_rows_of(tile);
    const gemm_vector *v = &p->epilogue.row_scale;
    const float *data =
        (const float *)v->data +
        (p->epilogue.row_scale_by_group ? rows.group : rows.plane) * v->group_stride;
    const int32_t lane = (int32_t)lane_index();
    float factor[(TILE_TOKENS + 31) / 32];
    int i;
    HB_UNROLL
    for (i = 0; i < TILE_TOKENS; i += 32) {
        const int32_t row = rows.row + lane + i;
        factor[i / 32] =
            global_load_f32_nc(data + (int64_t)(row < rows.row_end ? row : rows.row) * v->stride);
    }
    HB_UNROLL
    for (i = 0; i < TILE_TOKENS; i += 32) {
        if (lane + i < TILE_TOKENS) {
            smem_store_f32(to + (uint32_t)(TILE_ROWS + lane + i) * 4u, factor[i / 32]);
        }
    }
}

#endif
