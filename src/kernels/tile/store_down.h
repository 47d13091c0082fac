/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums whose lines are rows of D, to D by the copy engine: a warp leaves its 16 rows in shared
 * memory (stmatrix) and goes on with its next tile while boxes of eight rows x 64 columns travel,
 * by the map of D, which also cuts off what lies past the tensor.
 *
 * Each warp has a staging of its own, so it waits for nobody but itself.  What the map cannot do is
 * stored by the lanes: a warp's rows at a group's end, any other D (store_wide.h).
 *
 * STAGING of a warp, at a multiple of 1,024 bytes: panels of 64 columns, each 16 rows of 128 bytes,
 * 128-byte swizzle.
 */
#ifndef HALFBYTE_KERNELS_TILE_STORE_DOWN_H
#define HALFBYTE_KERNELS_TILE_STORE_DOWN_H

#include "kernels/tile/store_wide.h"

#define DOWN_PANEL_BYTES 2048u
#define DOWN_STAGING_BYTES(columns) ((columns) / 64 * DOWN_PANEL_BYTES) /* columns % 64 == 0 */

/* acc[count] into the staging; type: a constant.  Matrix lane / 8 of an instruction: of 16 rows the
 * first or the second eight, of 16 columns likewise. */
HB_DEVICE void down_put(const float *acc, int count, smem_addr staging, int32_t type)
{
    const uint32_t lane = lane_index();
    const smem_addr at = staging + lane % 16u * 128u + ((lane / 16u ^ lane % 8u) * 16u);
    int i;
    HB_UNROLL
    for (i = 0; i < count; i += 8) {
        const uint32_t panel = (uint32_t)i / 32u, pair = (uint32_t)i % 32u / 8u;
        stmatrix_x4(
            (at + panel * DOWN_PANEL_BYTES) ^ pair * 32u,
            convert_pair(acc[i + 0], acc[i + 1], type), convert_pair(acc[i + 2], acc[i + 3], type),
            convert_pair(acc[i + 4], acc[i + 5], type), convert_pair(acc[i + 6], acc[i + 7], type));
    }
}

/* By one lane: the staging to rows [row, row + 16) and `columns` columns of D. */
HB_DEVICE void down_send(const gemm_params *p, const work_item *w, int32_t row, int columns,
                         smem_addr staging)
{
    int i;
    HB_UNROLL
    for (i = 0; i < columns / 64 * 2; i++) {
        const int32_t column = w->column + i / 2 * 64, first = row + i % 2 * 8;
        if (column < p->n && first < w->row_end) {
            tma_store_3d(&p->d, staging + (uint32_t)i * (DOWN_PANEL_BYTES / 2), column * 2, first,
                         w->plane);
        }
    }
    bulk_commit();
}

/*
 * acc[count], a thread's sums of the warp's rows from `row` on, to D.  With GEMM_D_BOXES D is of 16
 * bits and has no labels.  The caller calls down_end() after its last tile.
 *
 * ORDER.  The lane that issued the copies of the tile before waits until they have read the
 * staging, and the others for it; every lane's writes are made known to the copy engine before that
 * lane issues.
 */
HB_DEVICE void store_down(const gemm_params *p, const work_item *w, const float *acc, int count,
                          int32_t row, smem_addr staging)
{
    const int32_t mine = row + (int32_t)(lane_index() / 4u);
    const int32_t pair = w->column + (int32_t)(lane_index() % 4u * 2u);
    const bool whole = w->row_end == p->m || w->row_end - row >= 16;
    if ((p->flags & GEMM_D_BOXES) && !p->epilogue.has_terms && whole) {
        bulk_wait_read(0);
        warp_sync();
        if (p->epilogue.d.type == ELEMENT_BF16) {
            down_put(acc, count, staging, ELEMENT_BF16);
        } else {
            down_put(acc, count, staging, ELEMENT_F16);
        }
        fence_proxy_async();
        warp_sync();
        if (elect_one()) {
            down_send(p, w, row, count * 2, staging);
        }
    } else if (store_wide_is_usual(p)) {
        store_wide_usual(p, w, acc, count, mine, pair);
    } else {
        store_wide_any(p, w, acc, count, mine, pair);
    }
}

/* After the last tile: shared memory outlives the copies out of it. */
HB_DEVICE void down_end(void)
{
    bulk_wait_read(0);
}

#endif
