/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of D by the copy engine, under the next tile's products.
 *
 * Stores straight from registers keep their warp until they are on their way, and all blocks burst
 * at the same time.  Here a warp puts its 16 rows into shared memory of its own, one lane a row
 * asks the copy engine to carry it away, and the warp goes on.  A copy is one row, so rows of other
 * groups and rows past the end are safe, and no tensor map is needed.
 *
 * STAGING of a warp: 16 rows of STORE_ROW_BYTES(columns); the 16 bytes between rows spread the
 * eight rows that one stmatrix writes over all banks.
 *
 * ORDER.  The copies of the tile before have read the staging (bulk_wait_read by the lanes that
 * issued them) before any lane writes it again; every lane's writes are made known to the copy
 * engine (fence_proxy_async) before a lane issues.
 */
#ifndef HALFBYTE_KERNELS_TILE_STORE_ROWS_H
#define HALFBYTE_KERNELS_TILE_STORE_ROWS_H

#include "kernels/tile/epilogue.h"

#define STORE_ROW_BYTES(columns) ((columns)*2u + 16u)
#define STORE_STAGING_BYTES(columns) (16u * STORE_ROW_BYTES(columns)) /* of a warp */

/* Can D be stored so?  If not: epilogue().  Uniform over the grid. */
HB_DEVICE bool store_rows_serves(const gemm_params *p)
{
    return p->epilogue.d.vectors == 2 && p->epilogue.d.type != ELEMENT_F32 &&
           p->groups.labels == NULL;
}

/* Before a warp's first store_rows_put() of a tile: the staging is free. */
HB_DEVICE void store_rows_begin(void)
{
    bulk_wait_read(0);
    warp_sync();
}

/*
 * acc[count] (count a multiple of 8, terms applied), columns first .. first + 2 * count - 1 of the
 * warp's 16 rows, into its staging.
 */
HB_DEVICE void store_rows_put(const float *acc, int count, smem_addr staging, uint32_t row_bytes,
                              uint32_t first, int32_t type)
{
    /* Matrix lane / 8: rows 0 .. 7 or 8 .. 15, the first or the second eight columns. */
    const uint32_t lane = lane_index();
    const smem_addr at = staging + (lane % 16u) * row_bytes + (first + lane / 16u * 8u) * 2u;
    int i;
    HB_UNROLL
    for (i = 0; i < count; i += 8) {
        stmatrix_x4(at + (uint32_t)i * 4u, convert_pair(acc[i + 0], acc[i + 1], type),
                    convert_pair(acc[i + 2], acc[i + 3], type),
                    convert_pair(acc[i + 4], acc[i + 5], type),
                    convert_pair(acc[i + 6], acc[i + 7], type));
    }
}

/* After the last put: sends the warp's rows off.  row: of the warp's first; column, columns: the
 * tile's first column of D and its width. */
HB_DEVICE void store_rows_send(const gemm_params *p, const work_item *w, smem_addr staging,
                               uint32_t row_bytes, int32_t row, int32_t column, int32_t columns)
{
    const gemm_matrix *d = &p->epilogue.d;
    const int32_t mine = row + (int32_t)lane_index();
    const int32_t left = p->n - column;
    fence_proxy_async();
    warp_sync();
    if (lane_index() < 16u && mine < w->row_end && left > 0) {
        const int64_t index = w->plane * d->plane_stride + mine * d->ld + column;
        bulk_store((uint16_t *)d->data + index, staging + lane_index() * row_bytes,
                   (uint32_t)(left < columns ? left : columns) * 2u);
    }
    bulk_commit();
}

/* When a warp has stored its last tile: shared memory outlives the copies out of it. */
HB_DEVICE void store_rows_end(void)
{
    bulk_wait_read(0);
}

#endif
