/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producer warps of the FP8 kernels whose stage is one k block: a tile of A (rows, 128), behind it
 * one of B (columns, 128), and the block's scales elsewhere.  Each warp walks the block's tiles by
 * itself and is ahead of the consumers by as much as the ring holds.
 *
 * knows_first: the warp makes the block's first tile without the work ring (direct.h).
 *
 * Define TILE_M, TILE_N, A_BYTES, B_BYTES and STAGE_BYTES before including.
 */
#ifndef HALFBYTE_KERNELS_TILE_PRODUCERS_H
#define HALFBYTE_KERNELS_TILE_PRODUCERS_H

#include "kernels/tile/direct.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/scales.h"
#include "kernels/tile/work.h"

/*
 * One warp, of which one lane issues: both tiles of every k block, through all tiles of D without a
 * pause between them.  With knows_first it has not waited for the block's start.
 *
 * In a run (direct.h) a stage gets the same k block of every tile, so B's part of it holds what the
 * tile needs when all stages have had its columns once.
 */
HB_DEVICE void produce_tiles(const gemm_params *p, smem_addr stages, ring r, work_ring work,
                             bool knows_first)
{
    const bool issues = elect_one();
    bool first = knows_first;
    work_item item = work_nothing();
    int32_t column = -1, block;
    uint32_t had = 0; /* stages, of these columns */
    if (first) {      /* there is a tile for every block */
        (void)direct_tile(p, direct_first_tile(p), TILE_M, TILE_N, &item);
    }
    while (first || work_take(&work, &item)) {
        had = item.column == column ? had : 0u;
        column = item.column;
        for (block = item.first_block; issues && block < item.end_block; block++) {
            const bool stays = direct_runs(p) && had >= r.stages;
            const smem_addr stage = stages + r.stage * STAGE_BYTES;
            /* Boxes count whole, also where they hang over the edge. */
            const uint32_t bytes = (uint32_t)p->a_box_rows * 128u + (stays ? 0u : B_BYTES);
            const smem_addr full = ring_acquire(&r, bytes);
            tma_load_3d(stage, &p->a, full, block * 128, item.row, item.plane);
            if (!stays) {
                tma_load_3d_hint(stage + A_BYTES, &p->b, full, block * 128, item.column, item.group,
                                 p->b_policy);
                had++;
            }
            ring_advance(&r);
        }
        warp_sync();
        if (first) {
            direct_await_ring();
            direct_pass_first(&work);
            first = false;
        }
    }
}

/*
 * One warp, for B with one scale in 128 x 128: stage s gets, at scales + s * stride, the TILE_M
 * scales of A's rows and behind them `segments` of B, one for each `segment` columns of the tile.
 * What a block costs this warp is taken from the consumers that share its scheduler, so addresses
 * are worked out once a tile.
 */
HB_DEVICE void produce_block_scales(const gemm_params *p, smem_addr scales, uint32_t stride,
                                    int32_t segment, int32_t segments, ring r, work_ring work,
                                    bool knows_first)
{
    const int32_t lane = (int32_t)lane_index();
    const int64_t rows32 = 32 * p->a_scale.stride_mn;
    bool first = knows_first;
    work_item item = work_nothing();
    int32_t block;
    int i;
    if (first) {
        (void)direct_tile(p, direct_first_tile(p), TILE_M, TILE_N, &item);
        direct_pass_first(&work);
    }
    for (; first || work_take(&work, &item); first = false) {
        const int32_t row = item.row + lane, column = item.column + lane * segment;
        const int32_t rows = p->a_scale.data != NULL ? item.row_end - row : 0;
        const bool loads_b = p->b_scale.data != NULL && lane < segments && column < p->n;
        const float *a =
            scales_of_block(&p->a_scale, item.plane, item.first_block) + row * p->a_scale.stride_mn;
        const float *b = scales_of_block(&p->b_scale, item.group, item.first_block) +
                         column / 128 * p->b_scale.stride_mn;
        for (block = item.first_block; block < item.end_block; block++) {
            const smem_addr to = scales + r.stage * stride + (uint32_t)lane * 4u;
            ring_wait_empty(&r);
            /* What lies past the end of A and B has no scale; its sums are never stored. */
            HB_UNROLL
            for (i = 0; i < TILE_M / 32; i++) {
                if (i * 32 < rows) {
                    cp_async_4(to + (uint32_t)i * 128u, a + i * rows32);
                }
            }
            if (loads_b) {
                cp_async_4(to + TILE_M * 4u, b);
            }
            cp_async_mbarrier_arrive_noinc(r.full + r.stage * 8u);
            ring_advance(&r);
            a += p->a_scale.stride_k;
            b += p->b_scale.stride_k;
        }
    }
}

#endif
