/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums whose lines are rows of D, to D by the copy engine: a warpgroup leaves its 64 rows in shared
 * memory (stmatrix) and goes on with its next tile; another warp, the sender, has boxes of 64 rows
 * x 64 columns carried away by the map of D, which also cuts off what lies past the tensor.  The
 * engine takes 32 bytes a clock and some 100 clocks a box: so boxes are large, and it is no
 * consumer that waits for it.
 *
 * What the map cannot do is stored by the lanes: the last rows of a group, any other D
 * (store_wide.h).
 *
 * STAGING of a warpgroup (DOWN_ROWS rows), at a multiple of 1,024 bytes: panels of 64 columns, each
 * 64 rows of 128 bytes, 128-byte swizzle.
 *
 * BARRIERS of each warpgroup: full (an arrival of each of its warps, when the staging is written)
 * and empty (the sender's, when it has been read), one phase a tile.
 */
#ifndef HALFBYTE_KERNELS_TILE_STORE_DOWN_H
#define HALFBYTE_KERNELS_TILE_STORE_DOWN_H

#include "kernels/tile/store_wide.h"

#define DOWN_PANEL_BYTES (DOWN_ROWS * 128u)
#define DOWN_STAGING_BYTES(columns) ((columns) / 64 * DOWN_PANEL_BYTES) /* columns % 64 == 0 */
#define DOWN_BARRIER_BYTES(groups) ((groups)*16u)

/* acc[count] into the warp's part of the staging; type: a constant.  Matrix lane / 8 of an
 * instruction: of 16 rows the first or the second eight, of 16 columns likewise. */
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

/* Do boxes take the warpgroup's rows from `row` on?  With GEMM_D_BOXES D is of 16 bits and has no
 * labels. */
HB_DEVICE bool down_takes(const gemm_params *p, const work_item *w, int32_t row)
{
    return (p->flags & GEMM_D_BOXES) && !p->epilogue.has_terms &&
           (w->row_end == p->m || w->row_end - row >= DOWN_ROWS);
}

/* By one thread, before the block barrier.  groups: consumer warpgroups. */
HB_DEVICE void down_init(smem_addr barriers, uint32_t groups)
{
    uint32_t i;
    for (i = 0; i < groups; i++) {
        mbarrier_init(barriers + i * 16u, 4);
        mbarrier_init(barriers + i * 16u + 8u, 1);
    }
    fence_mbarrier_init();
}

/*
 * A consumer warp, `warp` of its warpgroup: acc[count], a thread's sums of its 16 of the rows from
 * `row` on, on their way to D.  staging, barriers: the warpgroup's; parity: 0 in the block's first
 * tile, then alternating.
 *
 * ORDER.  The staging is free, and so are the barriers, for which every tile waits; every lane's
 * writes are made known to the copy engine; one lane says so for its warp.
 */
HB_DEVICE void store_down(const gemm_params *p, const work_item *w, const float *acc, int count,
                          int32_t row, uint32_t warp, smem_addr staging, smem_addr barriers,
                          uint32_t parity)
{
    const smem_addr part = staging + warp * (DOWN_PANEL_BYTES / 4); /* rows 16 * warp on */
    const int32_t mine = row + (int32_t)(warp * 16u + lane_index() / 4u);
    const int32_t pair = w->column + (int32_t)(lane_index() % 4u * 2u);
    mbarrier_wait(barriers + 8u, parity ^ 1u);
    if (down_takes(p, w, row)) {
        if (p->epilogue.d.type == ELEMENT_BF16) {
            down_put(acc, count, part, ELEMENT_BF16);
        } else {
            down_put(acc, count, part, ELEMENT_F16);
        }
        fence_proxy_async();
    } else if (store_wide_is_usual(p)) {
        store_wide_usual(p, w, acc, count, mine, pair);
    } else {
        store_wide_any(p, w, acc, count, mine, pair);
    }
    warp_sync();
    if (elect_one()) {
        mbarrier_arrive(barriers);
    }
}

/* By one lane of the sender: a warpgroup's staging to rows [row, row + 64) and `columns` columns.
 * One box at a time: loads of the next tiles queue behind it. */
HB_DEVICE void down_send(const gemm_params *p, const work_item *w, int32_t row, int columns,
                         smem_addr staging)
{
    int i;
    for (i = 0; i < columns / 64; i++) {
        const int32_t column = w->column + i * 64;
        if (column < p->n && row < w->row_end) {
            tma_store_3d(&p->d, staging + (uint32_t)i * DOWN_PANEL_BYTES, column * 2, row,
                         w->plane);
            bulk_commit();
            bulk_wait_read(0);
        }
    }
}

/* The sender, one warp of which one lane issues: tiles of D of two warpgroups, 64 rows and
 * `columns` columns each.  Returns when all of the staging has been read. */
HB_DEVICE void down_send_tiles(const gemm_params *p, smem_addr staging, int columns,
                               smem_addr barriers, work_ring work)
{
    const bool sends = elect_one();
    uint32_t parity = 0, i;
    work_item item;
    while (work_take(&work, &item)) {
        for (i = 0; sends && i < 2; i++) {
            const int32_t row = item.row + (int32_t)i * DOWN_ROWS;
            mbarrier_wait(barriers + i * 16u, parity);
            if (down_takes(p, &item, row)) {
                down_send(p, &item, row, columns,
                          staging + i * DOWN_STAGING_BYTES((uint32_t)columns));
            }
            mbarrier_arrive(barriers + i * 16u + 8u);
        }
        parity ^= 1u;
        warp_sync();
    }
}

#endif
