/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums whose lines are columns of D (weights on the 64-row side of the tensor core), to D.
 *
 * D in 16-bit types goes by way of shared memory, where the fragments are transposed on their way
 * in: a warpgroup's 64 columns of a token are 128 contiguous bytes, which eight lanes store.
 *
 * STAGING of a warpgroup: rows of 64 columns for up to 64 tokens, 64 at a time; 16 bytes between
 * rows spread the eight rows that one stmatrix writes over all banks.
 */
#ifndef HALFBYTE_KERNELS_TILE_STORE_ACROSS_H
#define HALFBYTE_KERNELS_TILE_STORE_ACROSS_H

#include "kernels/tile/epilogue.h"

#define ACROSS_TOKENS 64
#define ACROSS_ROW_BYTES 144u
#define ACROSS_STAGING_BYTES(tokens)                                                               \
    (((tokens) < ACROSS_TOKENS ? (tokens) : ACROSS_TOKENS) * ACROSS_ROW_BYTES)

/* Sums of groups of eight tokens, 4 * groups of a thread, into the staging. */
HB_DEVICE void across_put(const float *acc, int groups, smem_addr staging, int32_t type,
                          uint32_t thread)
{
    /* Matrix lane / 8: of eight columns the first or the second, of 16 tokens likewise. */
    const uint32_t lane = thread % 32u;
    const smem_addr at = staging + (lane / 16u * 8u + lane % 8u) * ACROSS_ROW_BYTES +
                         thread / 32u * 32u + lane / 8u % 2u * 16u;
    int i;
    HB_UNROLL
    for (i = 0; i < groups; i += 2) {
        const int next = i + 1 < groups ? i + 1 : i; /* of a lone last group a copy goes along */
        stmatrix_x4_trans(at + (uint32_t)i * (8u * ACROSS_ROW_BYTES),
                          convert_pair(acc[4 * i + 0], acc[4 * i + 1], type),
                          convert_pair(acc[4 * i + 2], acc[4 * i + 3], type),
                          convert_pair(acc[4 * next + 0], acc[4 * next + 1], type),
                          convert_pair(acc[4 * next + 2], acc[4 * next + 3], type));
    }
}

/* Tokens of the staging to D.  row: the first token's; column: the warpgroup's first. */
HB_DEVICE void across_send(const gemm_matrix *d, int64_t base, const fragment_place *at,
                           int32_t row, int32_t column, int tokens, smem_addr staging,
                           uint32_t thread)
{
    const int32_t mine = column + (int32_t)(thread % 8u) * 8;
    int i;
    HB_UNROLL
    for (i = 0; i < tokens; i += 16) {
        const int32_t token = i + (int32_t)(thread / 8u);
        uint32_t word[4];
        smem_load_u32x4(staging + (uint32_t)token * ACROSS_ROW_BYTES + thread % 8u * 16u, word);
        if (token < tokens && mine < at->column_end && row_is_owned(at, row + token)) {
            global_store_u32x4((uint16_t *)d->data + base + (row + token) * d->ld + mine, word[0],
                               word[1], word[2], word[3]);
        }
    }
}

/* Sums from `first` on, at most 64 tokens' worth, by way of the staging. */
HB_DEVICE void across_chunk(const gemm_matrix *d, int64_t base, const fragment_place *at,
                            const float *acc, int first, int count, int32_t row, int32_t column,
                            smem_addr staging, uint32_t barrier, uint32_t thread)
{
    const int left = count - first < ACROSS_TOKENS / 2 ? count - first : ACROSS_TOKENS / 2;
    barrier_sync(barrier, 128); /* all have sent what was there */
    across_put(acc + first, left / 4, staging, d->type, thread);
    barrier_sync(barrier, 128);
    across_send(d, base, at, row + first * 2, column, left * 2, staging, thread);
}

/* acc[count] to D.  at: of acc[0]; row, column: of the warpgroup's first element; barrier: a named
 * barrier of its own.  The chunks are written out: a loop would hide from the compiler that all
 * indices of acc are constants. */
HB_DEVICE void store_across(const gemm_matrix *d, int64_t base, const fragment_place *at,
                            const float *acc, int count, int32_t row, int32_t column,
                            smem_addr staging, uint32_t barrier, uint32_t thread)
{
    int i;
    if (d->vectors == 2 && d->type != ELEMENT_F32) {
        across_chunk(d, base, at, acc, 0, count, row, column, staging, barrier, thread);
        if (count > 32) {
            across_chunk(d, base, at, acc, 32, count, row, column, staging, barrier, thread);
        }
        if (count > 64) {
            across_chunk(d, base, at, acc, 64, count, row, column, staging, barrier, thread);
        }
        return;
    }
    HB_UNROLL
    for (i = 0; i < count; i++) {
        store_element(d, base, at, element_row(at, i, true), element_column(at, i, true), acc[i]);
    }
}

/* The terms of docs/numerics.md section 6, from the first or, if the scale of A is in acc already,
 * from the second on. */
HB_DEVICE void apply_terms_across(const gemm_params *p, const work_item *w, float *acc, int count,
                                  const fragment_place *at, bool row_scale)
{
    const gemm_epilogue *e = &p->epilogue;
    int i;
    if (row_scale) {
        combine_vector(acc, count, &e->row_scale, e->row_scale_by_group ? w->group : w->plane, at,
                       true, true, false);
    }
    combine_vector(acc, count, &e->column_scale, w->group, at, false, true, false);
    combine_vector(acc, count, &e->channel_scale, w->group, at, false, true, false);
    if (e->has_alpha) {
        const float alpha =
            e->alpha_pointer != NULL ? global_load_f32_nc(e->alpha_pointer) : e->alpha;
        HB_UNROLL
        for (i = 0; i < count; i++) {
            acc[i] = mul_rn(acc[i], alpha);
        }
    }
    if (e->c.data != NULL) {
        add_c(e, acc, count, w->plane, at, true);
    }
    combine_vector(acc, count, &e->bias, w->group, at, false, true, true);
}

/*
 * epilogue() for lines that are columns.  `thread` of the warpgroup whose 64 columns begin at
 * `column`, tokens at w->row.  row_scale: false if acc has the scale of A already.  staging,
 * barrier: of the warpgroup.
 */
HB_DEVICE void epilogue_across(const gemm_params *p, const work_item *w, float *acc, int count,
                               int32_t column, bool row_scale, smem_addr staging, uint32_t barrier,
                               uint32_t thread)
{
    const gemm_matrix *d = &p->epilogue.d;
    fragment_place at;
    at.row = w->row + (int32_t)(thread % 4u * 2u);
    at.row_end = w->row_end;
    at.column = column + (int32_t)(thread / 32u * 16u + thread % 32u / 4u);
    at.column_end = p->n;
    at.labels = p->groups.labels;
    at.group = w->group;
    if (p->epilogue.has_terms) {
        apply_terms_across(p, w, acc, count, &at, row_scale);
    }
    store_across(d, w->plane * d->plane_stride + w->split * p->split_stride, &at, acc, count,
                 w->row, column, staging, barrier, thread);
}

#endif
