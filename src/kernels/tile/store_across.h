/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums whose lines are columns of D (weights on the 64-row side of the tensor core), to D.
 *
 * D in 16-bit types goes by way of shared memory, where the fragments are transposed on their way
 * in: a warpgroup's 64 columns of a token are 128 contiguous bytes.  From there the copy engine
 * takes them, while the warpgroup goes on with its next tile: boxes of D_BOX_ROWS tokens, by the
 * map of D, which also cuts off what lies past the tensor.  Tokens of a box that is not all of the
 * group's or of the tile's (at their ends; all of them where rows have labels) are stored by the
 * threads.
 *
 * Boxes, not rows of 128 bytes each: one instruction for 2,048 bytes, and the map brings the
 * swizzle without which eight rows would meet in the same banks.  Of no more tokens, since groups
 * end anywhere; of half as many the engine does not keep up where k is short.
 *
 * STAGING of a warpgroup: a row of 128 bytes a token, 128-byte swizzle.
 *
 * ORDER.  Copies of the tile before have read the staging (bulk_wait_read by the lanes that issued
 * them), and threads have, before any thread writes it again (a barrier): across_claim(), which
 * some main loops call under a tile's last chain.  Every thread's writes are made known to the copy
 * engine (fence_proxy_async) before a lane issues (a barrier).
 *
 * What D mostly is, bf16 in whole boxes with no term but the scale of A, has straight code, which
 * across_is_straight() finds: jumps over what is rare cost more than what lies between them.
 */
#ifndef HALFBYTE_KERNELS_TILE_STORE_ACROSS_H
#define HALFBYTE_KERNELS_TILE_STORE_ACROSS_H

#include "kernels/tile/epilogue.h"

#define ACROSS_ROW_BYTES 128u
#define ACROSS_BOX_BYTES (D_BOX_ROWS * ACROSS_ROW_BYTES)
/* Pairs of groups of eight tokens are written together.  The staging begins at a multiple of 1,024
 * bytes. */
#define ACROSS_STAGING_BYTES(tokens) (((tokens) + 15) / 16 * 16 * ACROSS_ROW_BYTES)

/* The staging may be written again.  All threads of the warpgroup call. */
HB_DEVICE void across_claim(uint32_t barrier)
{
    bulk_wait_read(0);
    barrier_sync(barrier, 128);
}

/* acc[count] into the staging; type: a constant. */
HB_DEVICE void across_put(const float *acc, int count, smem_addr staging, int32_t type,
                          uint32_t thread)
{
    /* Matrix lane / 8: of eight columns the first or the second, of 16 tokens likewise. */
    const uint32_t lane = thread % 32u;
    const uint32_t unit = (thread / 32u * 2u + lane / 8u % 2u) ^ lane % 8u;
    const smem_addr at = staging + (lane / 16u * 8u + lane % 8u) * ACROSS_ROW_BYTES + unit * 16u;
    int i;
    HB_UNROLL
    for (i = 0; i < count; i += 8) {
        const int next = i + 4 < count ? i + 4 : i; /* of a lone last group a copy goes along */
        stmatrix_x4_trans(at + (uint32_t)i * (2u * ACROSS_ROW_BYTES),
                          convert_pair(acc[i + 0], acc[i + 1], type),
                          convert_pair(acc[i + 2], acc[i + 3], type),
                          convert_pair(acc[next + 0], acc[next + 1], type),
                          convert_pair(acc[next + 2], acc[next + 3], type));
    }
}

/* Boxes of the staging to D, the warp's share of them.  column: the warpgroup's first. */
HB_DEVICE void across_send_boxes(const gemm_params *p, const work_item *w, int32_t boxes,
                                 int32_t column, smem_addr staging, uint32_t thread)
{
    int32_t box;
    if (elect_one()) {
        HB_NO_UNROLL
        for (box = (int32_t)(thread / 32u); box < boxes; box += 4) {
            tma_store_3d(&p->d, staging + (uint32_t)box * ACROSS_BOX_BYTES, column * 2,
                         w->row + box * D_BOX_ROWS, w->plane);
        }
        bulk_commit();
    }
}

/* Eight columns of D from `to` on, of which `count` exist. */
HB_DEVICE void across_store_unit(uint16_t *to, int32_t count, bool whole, const uint32_t word[4])
{
    int j;
    if (whole) {
        global_store_u32x4(to, word[0], word[1], word[2], word[3]);
        return;
    }
    HB_UNROLL
    for (j = 0; j < 8; j++) {
        if (j < count) {
            global_store_u16(to + j, (uint16_t)(word[j / 2] >> (j % 2 * 16)));
        }
    }
}

/* Tokens first .. end - 1 of the staging to D, eight lanes a token. */
HB_DEVICE void across_send_rows(const gemm_params *p, const work_item *w, int32_t first,
                                int32_t end, int32_t column, smem_addr staging, uint32_t thread)
{
    const gemm_matrix *d = &p->epilogue.d;
    const int32_t mine = column + (int32_t)(thread % 8u) * 8;
    fragment_place at;
    int32_t token;
    at.row_end = w->row_end;
    at.labels = p->groups.labels;
    at.group = w->group;
    HB_NO_UNROLL
    for (token = first + (int32_t)(thread / 8u); token < end; token += 16) {
        const uint32_t unit = (thread ^ (uint32_t)token) % 8u;
        const int32_t row = w->row + token;
        if (mine < p->n && row_is_owned(&at, row)) {
            const int64_t index = w->plane * d->plane_stride + row * d->ld + mine;
            uint32_t word[4];
            smem_load_u32x4(staging + (uint32_t)token * ACROSS_ROW_BYTES + unit * 16u, word);
            across_store_unit((uint16_t *)d->data + index, p->n - mine, d->vectors == 2, word);
        }
    }
}

/* Does D go by way of the staging?  Uniform over the grid. */
HB_DEVICE bool across_is_staged(const gemm_params *p)
{
    return p->epilogue.d.type != ELEMENT_F32;
}

/* Tokens that D has of a tile of `tokens`. */
HB_DEVICE int32_t across_rows(const work_item *w, int tokens)
{
    const int32_t left = w->row_end - w->row;
    return left < tokens ? left : tokens;
}

/* Boxes of such a tile.  The map cuts off what lies past the tensor, but not what lies past these
 * tokens. */
HB_DEVICE int32_t across_boxes(const gemm_params *p, const work_item *w, int tokens)
{
    const bool cuts = w->row_end == p->m && w->row_end - w->row <= tokens;
    return (across_rows(w, tokens) + (cuts ? D_BOX_ROWS - 1 : 0)) / D_BOX_ROWS;
}

/* Does acc[count] have the straight way to D?  Uniform over the warpgroup. */
HB_DEVICE bool across_is_straight(const gemm_params *p, const work_item *w, int count,
                                  int32_t column)
{
    const int32_t ways = GEMM_D_SCALED | GEMM_D_BOXES;
    return (p->flags & ways) == ways && column < p->n &&
           across_boxes(p, w, count * 2) * D_BOX_ROWS >= across_rows(w, count * 2);
}

/* That way, the staging claimed.  Arguments as those of epilogue_across(). */
HB_DEVICE void store_across_straight(const gemm_params *p, const work_item *w, const float *acc,
                                     int count, int32_t column, smem_addr staging, uint32_t barrier,
                                     uint32_t thread)
{
    across_put(acc, count, staging, ELEMENT_BF16, thread);
    fence_proxy_async();
    barrier_sync(barrier, 128);
    across_send_boxes(p, w, across_boxes(p, w, count * 2), column, staging, thread);
}

/* acc[count] to a D that is staged, likewise. */
HB_DEVICE void store_across(const gemm_params *p, const work_item *w, const float *acc, int count,
                            int32_t column, smem_addr staging, uint32_t barrier, uint32_t thread)
{
    const int32_t rows = across_rows(w, count * 2);
    int32_t boxes = 0;
    if (p->epilogue.d.type == ELEMENT_BF16) {
        across_put(acc, count, staging, ELEMENT_BF16, thread);
    } else {
        across_put(acc, count, staging, ELEMENT_F16, thread);
    }
    fence_proxy_async();
    barrier_sync(barrier, 128);
    if ((p->flags & GEMM_D_BOXES) && column < p->n) {
        boxes = across_boxes(p, w, count * 2);
        across_send_boxes(p, w, boxes, column, staging, thread);
    }
    across_send_rows(p, w, boxes * D_BOX_ROWS, rows, column, staging, thread);
}

/* The same where the staging has room for `piece` of acc[count] at a time.  A piece waits for the
 * copies of the one before it, so what is left over comes first where it is whole boxes. */
HB_DEVICE void store_across_pieces(const gemm_params *p, const work_item *w, const float *acc,
                                   int count, int piece, int32_t column, smem_addr staging,
                                   uint32_t barrier, uint32_t thread)
{
    const int over = count % piece * 2 % D_BOX_ROWS == 0 ? count % piece : 0;
    work_item part = *w;
    int i;
    HB_UNROLL
    for (i = over > 0 ? over - piece : 0; i < count; i += piece) {
        const int first = i < 0 ? 0 : i, end = i + piece < count ? i + piece : count;
        if (part.row < part.row_end) {
            if (first > 0) {
                across_claim(barrier);
            }
            if (HB_LIKELY(across_is_straight(p, &part, end - first, column))) {
                store_across_straight(p, &part, acc + first, end - first, column, staging, barrier,
                                      thread);
            } else {
                store_across(p, &part, acc + first, end - first, column, staging, barrier, thread);
            }
        }
        part.row += (end - first) * 2;
    }
}

/* Is that all that becomes of a sum, after the scale of A?  Uniform over the grid. */
HB_DEVICE bool across_is_plain(const gemm_params *p)
{
    const gemm_epilogue *e = &p->epilogue;
    if (HB_LIKELY(p->flags & GEMM_D_SCALED)) {
        return true;
    }
    return across_is_staged(p) && e->column_scale.data == NULL && e->channel_scale.data == NULL &&
           e->bias.data == NULL && e->c.data == NULL && !e->has_alpha;
}

/*
 * What is rare goes a piece at a time, four elements from `first` on: a piece is picked out of the
 * registers by predicated moves, so that there is one copy of its code.
 */
HB_DEVICE void piece_take(const float *acc, int count, int first, float part[4])
{
    int i, j;
    HB_UNROLL
    for (j = 0; j < 4; j++) {
        part[j] = acc[j];
    }
    HB_UNROLL
    for (i = 4; i < count; i += 4) {
        HB_UNROLL
        for (j = 0; j < 4; j++) {
            part[j] = first == i ? acc[i + j] : part[j];
        }
    }
}

HB_DEVICE void piece_give(float *acc, int count, int first, const float part[4])
{
    int i, j;
    HB_UNROLL
    for (i = 0; i < count; i += 4) {
        HB_UNROLL
        for (j = 0; j < 4; j++) {
            acc[i + j] = first == i ? part[j] : acc[i + j];
        }
    }
}

HB_DEVICE fragment_place piece_place(const fragment_place *at, int first)
{
    fragment_place of_piece = *at;
    of_piece.row += first * 2;
    return of_piece;
}

/* acc[count] to a D of fp32.  at: of acc[0]. */
HB_DEVICE void store_across_f32(const gemm_params *p, const work_item *w, const fragment_place *at,
                                const float *acc, int count)
{
    const gemm_matrix *d = &p->epilogue.d;
    const int64_t base = w->plane * d->plane_stride + w->split * p->split_stride;
    int first, i;
    HB_NO_UNROLL
    for (first = 0; first < count; first += 4) {
        const fragment_place here = piece_place(at, first);
        float part[4];
        piece_take(acc, count, first, part);
        HB_UNROLL
        for (i = 0; i < 4; i++) {
            store_element(d, base, &here, element_row(&here, i, true),
                          element_column(&here, i, true), part[i]);
        }
    }
}

/* When a warpgroup has stored its last tile: shared memory outlives the copies out of it. */
HB_DEVICE void across_end(void)
{
    bulk_wait_read(0);
}

/* Terms with a value for each element or each token: C, or the scale of A. */
HB_DEVICE void apply_by_pieces(const gemm_params *p, const work_item *w, float *acc, int count,
                               const fragment_place *at, bool is_c)
{
    const gemm_epilogue *e = &p->epilogue;
    int first;
    HB_NO_UNROLL
    for (first = 0; first < count; first += 4) {
        const fragment_place here = piece_place(at, first);
        float part[4];
        piece_take(acc, count, first, part);
        if (is_c) {
            add_c(e, part, 4, w->plane, &here, true);
        } else {
            combine_vector(part, 4, &e->row_scale, e->row_scale_by_group ? w->group : w->plane,
                           &here, true, true, false);
        }
        piece_give(acc, count, first, part);
    }
}

/* The terms of docs/numerics.md section 6, from the first or, if the scale of A is in acc already,
 * from the second on. */
HB_DEVICE void apply_terms_across(const gemm_params *p, const work_item *w, float *acc, int count,
                                  const fragment_place *at, bool row_scale)
{
    const gemm_epilogue *e = &p->epilogue;
    int i;
    if (row_scale && e->row_scale.data != NULL) {
        apply_by_pieces(p, w, acc, count, at, false);
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
        apply_by_pieces(p, w, acc, count, at, true);
    }
    combine_vector(acc, count, &e->bias, w->group, at, false, true, true);
}

/*
 * epilogue() for lines that are columns.  `thread` of the warpgroup whose 64 columns begin at
 * `column`, tokens at w->row.  row_scale: false if acc has the scale of A already.  staging,
 * barrier: of the warpgroup, which has claimed it, and calls across_end() after its last tile.
 * piece: as store_across_pieces().
 */
HB_DEVICE void epilogue_across(const gemm_params *p, const work_item *w, float *acc, int count,
                               int piece, int32_t column, bool row_scale, smem_addr staging,
                               uint32_t barrier, uint32_t thread)
{
    fragment_place at;
    fragment_place_set(&at, p, w, w->row + (int32_t)(thread % 4u * 2u),
                       column + (int32_t)(thread / 32u * 16u + thread % 32u / 4u));
    at.labels = p->groups.labels;
    if (p->epilogue.has_terms) {
        apply_terms_across(p, w, acc, count, &at, row_scale);
    }
    if (across_is_staged(p)) {
        store_across_pieces(p, w, acc, count, piece, column, staging, barrier, thread);
    } else {
        store_across_f32(p, w, &at, acc, count);
    }
}

#endif
