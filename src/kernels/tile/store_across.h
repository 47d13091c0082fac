/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums whose lines are columns of D (weights on the 64-row side of the tensor core), to D in 16-bit
 * types by 16-byte stores.
 *
 * A thread (g = lane / 4, q = lane % 4) holds, of each eight tokens, those 2q and 2q + 1 for
 * columns g and g + 8 of the warp's 16.  Lanes g and g ^ 1 trade a token, so that each has one
 * token and a pair of columns, 32 bits; then four lanes that have the same token trade words, so
 * that each has eight columns.  Two lanes store the 32 bytes of a token.
 */
#ifndef HALFBYTE_KERNELS_TILE_STORE_ACROSS_H
#define HALFBYTE_KERNELS_TILE_STORE_ACROSS_H

#include "kernels/tile/epilogue.h"

/* x of this lane: tokens (low, high) of one column -> columns (low, high) of token lane / 4 % 2. */
HB_DEVICE uint32_t trade_tokens(uint32_t x, uint32_t lane)
{
    const bool odd = (lane & 4u) != 0;
    const uint32_t other = shuffle_xor_u32(odd ? x << 16 : x >> 16, 4);
    return odd ? (x & 0xffff0000u) | other : (x & 0xffffu) | other;
}

/* 4 x 4 transpose among lanes that differ in bits 3 and 4: the lane of value s gets, as word[i],
 * word[s] of the lane of value i. */
HB_DEVICE void transpose_eights(uint32_t word[4], uint32_t lane)
{
    const bool odd = (lane & 8u) != 0, high = (lane & 16u) != 0;
    uint32_t a, b;
    a = shuffle_xor_u32(odd ? word[0] : word[1], 8);
    b = shuffle_xor_u32(odd ? word[2] : word[3], 8);
    word[0] = odd ? a : word[0];
    word[1] = odd ? word[1] : a;
    word[2] = odd ? b : word[2];
    word[3] = odd ? word[3] : b;
    a = shuffle_xor_u32(high ? word[0] : word[2], 16);
    b = shuffle_xor_u32(high ? word[1] : word[3], 16);
    word[0] = high ? a : word[0];
    word[2] = high ? word[2] : a;
    word[1] = high ? b : word[1];
    word[3] = high ? word[3] : b;
}

/*
 * acc[4 * groups], one or two groups of eight tokens.  at: of acc[0], as in epilogue().  All lanes
 * take part; D allows 16-byte stores.
 */
HB_DEVICE void store_token_groups(const gemm_matrix *d, int64_t base, const fragment_place *at,
                                  const float *acc, int groups, uint32_t lane)
{
    const uint32_t what = lane / 8u; /* group of tokens: what / 2; eight columns: what % 2 */
    const int32_t row = at->row + (int32_t)(what / 2u * 8u + lane / 4u % 2u);
    const int32_t column = at->column - (int32_t)(lane / 4u) + (int32_t)(what % 2u * 8u);
    uint32_t word[4];
    int i;
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        const int of = i < 2 * groups ? i : 0; /* a lone group repeats */
        word[i] = trade_tokens(convert_pair(acc[2 * of], acc[2 * of + 1], d->type), lane);
    }
    transpose_eights(word, lane);
    if (what < 2u * (uint32_t)groups && column < at->column_end && row_is_owned(at, row)) {
        global_store_u32x4((uint16_t *)d->data + base + row * d->ld + column, word[0], word[1],
                           word[2], word[3]);
    }
}

/* acc[count] to D; arguments as in epilogue(). */
HB_DEVICE void store_across(const gemm_matrix *d, int64_t base, const fragment_place *at,
                            const float *acc, int count, uint32_t lane)
{
    int i;
    if (d->vectors == 2 && d->type != ELEMENT_F32) {
        HB_UNROLL
        for (i = 0; i < count; i += 8) {
            fragment_place here = *at;
            here.row += i * 2;
            store_token_groups(d, base, &here, acc + i, i + 8 <= count ? 2 : 1, lane);
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
 * `column`, tokens at w->row.  row_scale: false if acc has the scale of A already.
 */
HB_DEVICE void epilogue_across(const gemm_params *p, const work_item *w, float *acc, int count,
                               int32_t column, bool row_scale, uint32_t thread)
{
    const gemm_matrix *d = &p->epilogue.d;
    const uint32_t lane = thread % 32u;
    fragment_place at;
    at.row = w->row + (int32_t)(lane % 4u * 2u);
    at.row_end = w->row_end;
    at.column = column + (int32_t)(thread / 32u * 16u + lane / 4u);
    at.column_end = p->n;
    at.labels = p->groups.labels;
    at.group = w->group;
    if (p->epilogue.has_terms) {
        apply_terms_across(p, w, acc, count, &at, row_scale);
    }
    store_across(d, w->plane * d->plane_stride + w->split * p->split_stride, &at, acc, count, lane);
}

#endif
