/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a wide fragment to D: what epilogue.h does, for kernels that hold so many sums that its
 * code, unrolled over all of them, would be too long.
 *
 * The usual D (bf16 or fp16 without terms, aligned) has straight code, and so has the commonest of
 * it (GEMM_D_PLAIN), found by one test.  All else goes through epilogue() a piece at a time: a
 * piece is picked out of the registers by predicated moves, so that there is one copy of that code.
 *
 * Lines of the fragment are rows of D (epilogue.h, FRAGMENT).
 */
#ifndef HALFBYTE_KERNELS_TILE_STORE_WIDE_H
#define HALFBYTE_KERNELS_TILE_STORE_WIDE_H

#include "kernels/tile/epilogue.h"

/* Is D the usual one?  Uniform over the grid. */
HB_DEVICE bool store_wide_is_usual(const gemm_params *p)
{
    return p->epilogue.d.vectors == 2 && p->epilogue.d.type != ELEMENT_F32 &&
           p->groups.labels == NULL && !p->epilogue.has_terms;
}

/* D with GEMM_D_PLAIN.  count: a multiple of 8. */
HB_DEVICE void store_wide_plain(const gemm_params *p, const work_item *w, const float *acc,
                                int count, int32_t row, int32_t column)
{
    const gemm_matrix *d = &p->epilogue.d;
    fragment_place at;
    fragment_place_set(&at, p, w, row, column);
    store_lines_16(d, w->plane * d->plane_stride, acc, count, &at, ELEMENT_BF16);
}

/* The usual D.  count: a multiple of 8. */
HB_DEVICE void store_wide_usual(const gemm_params *p, const work_item *w, const float *acc,
                                int count, int32_t row, int32_t column)
{
    const gemm_matrix *d = &p->epilogue.d;
    const int64_t base = w->plane * d->plane_stride + w->split * p->split_stride;
    fragment_place at;
    fragment_place_set(&at, p, w, row, column);
    if (d->type == ELEMENT_BF16) {
        store_lines_16(d, base, acc, count, &at, ELEMENT_BF16);
    } else {
        store_lines_16(d, base, acc, count, &at, ELEMENT_F16);
    }
}

/* Any D.  piece: 16 if that divides count, else 8. */
#define STORE_WIDE_PIECE(count) ((count) % 16 == 0 ? 16 : 8)
HB_DEVICE void store_wide_any(const gemm_params *p, const work_item *w, const float *acc, int count,
                              int32_t row, int32_t column)
{
    const int piece = STORE_WIDE_PIECE(count);
    int first, i, j;
    HB_NO_UNROLL
    for (first = 0; first < count; first += piece) {
        float part[16];
        HB_UNROLL
        for (j = 0; j < piece; j++) {
            part[j] = acc[j];
        }
        HB_UNROLL
        for (i = piece; i < count; i += piece) {
            HB_UNROLL
            for (j = 0; j < piece; j++) {
                part[j] = first == i ? acc[i + j] : part[j];
            }
        }
        epilogue(p, w, part, piece, row, column + first * 2, false);
    }
}

#endif
