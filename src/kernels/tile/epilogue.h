/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From sums in registers to D: docs/numerics.md section 6, then the stores.
 *
 * A FRAGMENT is a thread's share of a wgmma result: of each four elements, 0 and 1 belong to line g
 * of the warp's 16 and 2 and 3 to line g + 8; 0 and 2 to one place across, 1 and 3 to the next; the
 * next four lie eight places on.  Lines are rows of D and places its columns where tokens take the
 * 64-row side of the tensor core; the other way round (`across_rows`) where weights do.
 *
 * Every term is a loop of its own over the fragment behind a uniform branch, so an absent one costs
 * a branch; D without terms costs one.
 */
#ifndef HALFBYTE_KERNELS_TILE_EPILOGUE_H
#define HALFBYTE_KERNELS_TILE_EPILOGUE_H

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/work.h"

/* The element that a fragment's first stands for, and where rows and columns end. */
typedef struct fragment_place {
    int32_t row, row_end;
    int32_t column, column_end;
    const int32_t *labels; /* NULL: all rows before row_end belong to the group */
    int32_t group;
} fragment_place;

/* `at`: in the item's rows, all of which belong to its group. */
HB_DEVICE void fragment_place_set(fragment_place *at, const gemm_params *p, const work_item *w,
                                  int32_t row, int32_t column)
{
    at->row = row;
    at->row_end = w->row_end;
    at->column = column;
    at->column_end = p->n;
    at->labels = NULL;
    at->group = w->group;
}

/* Does the group own row `row`, which is not before its first? */
HB_DEVICE bool row_is_owned(const fragment_place *at, int32_t row)
{
    return row < at->row_end &&
           (at->labels == NULL ||
            (int32_t)global_load_u32((const uint32_t *)at->labels + row) == at->group);
}

HB_DEVICE float element_widen(uint16_t bits, int32_t type)
{
    return type == ELEMENT_BF16 ? f32_of_bf16(bits) : f32_of_f16(bits);
}

/* Element `index` of an input that nobody writes. */
HB_DEVICE float element_load(const void *data, int32_t type, int64_t index)
{
    return type == ELEMENT_F32
               ? global_load_f32_nc((const float *)data + index)
               : element_widen(global_load_u16_nc((const uint16_t *)data + index), type);
}

/* Element `index` of C, which may be D. */
HB_DEVICE float element_load_c(const void *data, int32_t type, int64_t index)
{
    return type == ELEMENT_F32
               ? global_load_f32((const float *)data + index)
               : element_widen(global_load_u16((const uint16_t *)data + index), type);
}

/* ---- terms ----------------------------------------------------------------------------------- */

/* One factor or addend for elements [index], where they are inside; what is outside is not stored,
 * so any value will do. */
HB_DEVICE float vector_load(const gemm_vector *v, int64_t base, int32_t index, int32_t end)
{
    return index < end ? element_load(v->data, v->type, base + (int64_t)index * v->stride) : 0.0f;
}

HB_DEVICE float combine(float x, float y, bool add)
{
    return add ? add_rn(x, y) : mul_rn(x, y);
}

/* v along the lines: two values a thread. */
HB_DEVICE void combine_lines(float *acc, int count, const gemm_vector *v, int64_t base,
                             int32_t first, int32_t end, bool add)
{
    const float low = vector_load(v, base, first, end);
    const float high = vector_load(v, base, first + 8, end);
    int i;
    HB_UNROLL
    for (i = 0; i < count; i += 4) {
        acc[i + 0] = combine(acc[i + 0], low, add);
        acc[i + 1] = combine(acc[i + 1], low, add);
        acc[i + 2] = combine(acc[i + 2], high, add);
        acc[i + 3] = combine(acc[i + 3], high, add);
    }
}

/* v across: a value each two elements. */
HB_DEVICE void combine_across(float *acc, int count, const gemm_vector *v, int64_t base,
                              int32_t first, int32_t end, bool add)
{
    int i;
    HB_UNROLL
    for (i = 0; i < count; i += 4) {
        const float even = vector_load(v, base, first + i * 2, end);
        const float odd = vector_load(v, base, first + i * 2 + 1, end);
        acc[i + 0] = combine(acc[i + 0], even, add);
        acc[i + 1] = combine(acc[i + 1], odd, add);
        acc[i + 2] = combine(acc[i + 2], even, add);
        acc[i + 3] = combine(acc[i + 3], odd, add);
    }
}

/* A vector along D's rows or its columns. */
HB_DEVICE void combine_vector(float *acc, int count, const gemm_vector *v, int64_t group,
                              const fragment_place *at, bool of_rows, bool across_rows, bool add)
{
    const int64_t base = group * v->group_stride;
    const int32_t first = of_rows ? at->row : at->column;
    const int32_t end = of_rows ? at->row_end : at->column_end;
    if (v->data == NULL) {
        return;
    }
    if (of_rows == across_rows) {
        combine_across(acc, count, v, base, first, end, add);
    } else {
        combine_lines(acc, count, v, base, first, end, add);
    }
}

/* The row and column of element i of a fragment. */
HB_DEVICE int32_t element_row(const fragment_place *at, int i, bool across_rows)
{
    return at->row + (across_rows ? i / 4 * 8 + i % 2 : i % 4 / 2 * 8);
}

HB_DEVICE int32_t element_column(const fragment_place *at, int i, bool across_rows)
{
    return at->column + (across_rows ? i % 4 / 2 * 8 : i / 4 * 8 + i % 2);
}

/* acc = fma_rn(beta, C, acc) */
HB_DEVICE void add_c(const gemm_epilogue *e, float *acc, int count, int32_t plane,
                     const fragment_place *at, bool across_rows)
{
    const int64_t base = plane * e->c.plane_stride;
    int i;
    HB_UNROLL
    for (i = 0; i < count; i++) {
        const int32_t row = element_row(at, i, across_rows);
        const int32_t column = element_column(at, i, across_rows);
        if (row_is_owned(at, row) && column < at->column_end) {
            const float old = element_load_c(e->c.data, e->c.type, base + row * e->c.ld + column);
            acc[i] = fma_rn(e->beta, old, acc[i]);
        }
    }
}

HB_DEVICE void apply_terms(const gemm_params *p, const work_item *w, float *acc, int count,
                           const fragment_place *at, bool across_rows)
{
    const gemm_epilogue *e = &p->epilogue;
    const int32_t of_row_scale = e->row_scale_by_group ? w->group : w->plane;
    int i;
    combine_vector(acc, count, &e->row_scale, of_row_scale, at, true, across_rows, false);
    combine_vector(acc, count, &e->column_scale, w->group, at, false, across_rows, false);
    combine_vector(acc, count, &e->channel_scale, w->group, at, false, across_rows, false);
    if (e->has_alpha) {
        const float alpha =
            e->alpha_pointer != NULL ? global_load_f32_nc(e->alpha_pointer) : e->alpha;
        HB_UNROLL
        for (i = 0; i < count; i++) {
            acc[i] = mul_rn(acc[i], alpha);
        }
    }
    if (e->c.data != NULL) {
        add_c(e, acc, count, w->plane, at, across_rows);
    }
    combine_vector(acc, count, &e->bias, w->group, at, false, across_rows, true);
}

/* ---- stores ---------------------------------------------------------------------------------- */

HB_DEVICE uint32_t convert_pair(float low, float high, int32_t type)
{
    return type == ELEMENT_BF16 ? cvt_bf16x2(low, high) : cvt_f16x2(low, high);
}

/* One element, if it is inside.  d: of the plane. */
HB_DEVICE void store_element(const gemm_matrix *d, int64_t base, const fragment_place *at,
                             int32_t row, int32_t column, float x)
{
    const int64_t index = base + row * d->ld + column;
    if (column >= at->column_end || !row_is_owned(at, row)) {
        return;
    }
    if (d->type == ELEMENT_F32) {
        global_store_f32((float *)d->data + index, x);
    } else {
        global_store_u16((uint16_t *)d->data + index,
                         d->type == ELEMENT_BF16 ? cvt_bf16(x) : cvt_f16(x));
    }
}

/* Columns `column` (even) and the next of row `row`. */
HB_DEVICE void store_two(const gemm_matrix *d, int64_t base, const fragment_place *at, int32_t row,
                         int32_t column, float x, float y)
{
    const int64_t index = base + row * d->ld + column;
    if (d->vectors == 0 || column + 1 >= at->column_end) {
        store_element(d, base, at, row, column, x);
        store_element(d, base, at, row, column + 1, y);
    } else if (row_is_owned(at, row)) {
        if (d->type == ELEMENT_F32) {
            global_store_u32x2((float *)d->data + index, bits_of_f32(x), bits_of_f32(y));
        } else {
            global_store_u32((uint32_t *)((uint16_t *)d->data + index),
                             convert_pair(x, y, d->type));
        }
    }
}

/*
 * 4 x 4 transpose among four neighbouring lanes: lane q gives word[j] to lane j and receives, as
 * word[i], what lane i had for it.  Two rounds of exchanges, by lane bit 0 and by lane bit 1.
 */
HB_DEVICE void transpose_quad(uint32_t word[4])
{
    const uint32_t q = lane_index() % 4u;
    const bool odd = (q & 1u) != 0, high = (q & 2u) != 0;
    uint32_t a, b;
    a = shuffle_xor_u32(odd ? word[0] : word[1], 1);
    b = shuffle_xor_u32(odd ? word[2] : word[3], 1);
    if (odd) {
        word[0] = a;
        word[2] = b;
    } else {
        word[1] = a;
        word[3] = b;
    }
    a = shuffle_xor_u32(high ? word[0] : word[2], 2);
    b = shuffle_xor_u32(high ? word[1] : word[3], 2);
    if (high) {
        word[0] = a;
        word[1] = b;
    } else {
        word[2] = a;
        word[3] = b;
    }
}

/* Four groups of eight columns of one row, `first` on being lane 0's: lane q stores group q. */
HB_DEVICE void store_groups(uint16_t *line, bool owned, int32_t first, int32_t end,
                            uint32_t word[4])
{
    const int32_t column = first + (int32_t)(lane_index() % 4u) * 8;
    transpose_quad(word);
    if (owned && column < end) {
        global_store_u32x4(line + column, word[0], word[1], word[2], word[3]);
    }
}

/*
 * Lines are rows, D is of 16 bits (type, a constant here) and takes 16-byte stores: 16 elements of
 * a thread are 32 columns of two rows, which four lanes hold.
 */
HB_DEVICE void store_lines_16(const gemm_matrix *d, int64_t base, const float *acc, int count,
                              const fragment_place *at, int32_t type)
{
    const int32_t quad = at->column - (int32_t)(lane_index() % 4u) * 2;
    const bool owned = row_is_owned(at, at->row), owned8 = row_is_owned(at, at->row + 8);
    uint16_t *line = (uint16_t *)d->data + base + at->row * d->ld;
    uint16_t *line8 = line + 8 * d->ld;
    int i, j;
    HB_UNROLL
    for (i = 0; i + 16 <= count; i += 16) {
        uint32_t low[4], high[4];
        HB_UNROLL
        for (j = 0; j < 4; j++) {
            low[j] = convert_pair(acc[i + 4 * j + 0], acc[i + 4 * j + 1], type);
            high[j] = convert_pair(acc[i + 4 * j + 2], acc[i + 4 * j + 3], type);
        }
        store_groups(line, owned, quad + i * 2, at->column_end, low);
        store_groups(line8, owned8, quad + i * 2, at->column_end, high);
    }
    HB_UNROLL
    for (i = count / 16 * 16; i < count; i += 4) {
        const int32_t column = at->column + i * 2;
        if (owned && column < at->column_end) {
            global_store_u32((uint32_t *)(line + column),
                             convert_pair(acc[i + 0], acc[i + 1], type));
        }
        if (owned8 && column < at->column_end) {
            global_store_u32((uint32_t *)(line8 + column),
                             convert_pair(acc[i + 2], acc[i + 3], type));
        }
    }
}

/* Lines are rows, D is whatever it is. */
HB_DEVICE void store_lines(const gemm_matrix *d, int64_t base, const float *acc, int count,
                           const fragment_place *at)
{
    int i;
    if (d->vectors == 2 && d->type == ELEMENT_BF16) {
        store_lines_16(d, base, acc, count, at, ELEMENT_BF16);
        return;
    }
    if (d->vectors == 2 && d->type == ELEMENT_F16) {
        store_lines_16(d, base, acc, count, at, ELEMENT_F16);
        return;
    }
    HB_UNROLL
    for (i = 0; i < count; i += 4) {
        store_two(d, base, at, at->row, at->column + i * 2, acc[i + 0], acc[i + 1]);
        store_two(d, base, at, at->row + 8, at->column + i * 2, acc[i + 2], acc[i + 3]);
    }
}

/* Lines are columns, D is of bf16. */
HB_DEVICE void store_places_bf16(const gemm_matrix *d, int64_t base, const float *acc, int count,
                                 const fragment_place *at)
{
    uint16_t *column = (uint16_t *)d->data + base + at->row * d->ld + at->column;
    const bool low = at->column < at->column_end, high = at->column + 8 < at->column_end;
    int i;
    HB_UNROLL
    for (i = 0; i < count; i += 2) {
        const int32_t row = i / 4 * 8;
        uint16_t *to = column + row * d->ld + i % 4 / 2 * 8;
        if ((i % 4 == 0 ? low : high) && at->row + row < at->row_end) {
            global_store_u16(to, cvt_bf16(acc[i]));
        }
        if ((i % 4 == 0 ? low : high) && at->row + row + 1 < at->row_end) {
            global_store_u16(to + d->ld, cvt_bf16(acc[i + 1]));
        }
    }
}

/*
 * Sums of the calling thread to D.  acc[count], count a multiple of 4, is used up; at: its first
 * element.  All lanes of the warp take part.  across_rows: a constant, see FRAGMENT.
 */
HB_DEVICE void epilogue(const gemm_params *p, const work_item *w, float *acc, int count,
                        int32_t row, int32_t column, bool across_rows)
{
    const gemm_matrix *d = &p->epilogue.d;
    int64_t base = w->plane * d->plane_stride;
    fragment_place at;
    int i;
    fragment_place_set(&at, p, w, row, column);
    if (HB_LIKELY(p->flags & GEMM_D_PLAIN)) {
        if (across_rows) {
            store_places_bf16(d, base, acc, count, &at);
        } else {
            store_lines_16(d, base, acc, count, &at, ELEMENT_BF16);
        }
        return;
    }
    base += w->split * p->split_stride;
    at.labels = p->groups.labels;
    if (p->epilogue.has_terms) {
        apply_terms(p, w, acc, count, &at, across_rows);
    }
    if (!across_rows) {
        store_lines(d, base, acc, count, &at);
        return;
    }
    HB_UNROLL
    for (i = 0; i < count; i++) {
        store_element(d, base, &at, element_row(&at, i, true), element_column(&at, i, true),
                      acc[i]);
    }
}

#endif
