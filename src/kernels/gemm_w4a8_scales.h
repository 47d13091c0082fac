/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales along k of the W4A8 kernels: from global memory, any layout and type, to fp32 in a stage
 * of the ring.
 *
 * A warp loads a few stages' scales into registers before it waits for the first of them to be
 * free, so the loads run as far ahead as the ring is long; SCALE_WARPS share the work.  What they
 * read is mostly a line that nobody has read yet, so lines are asked for another 32 blocks ahead.
 * With SCALES_AHEAD scales are copied first, and waited for later (gemm_w4a8_scales_ahead.h).
 *
 * A stage holds, for each of its k blocks and each weight group in it,
 *   TILE_ROWS    factors of the weights' rows: with scales of A the scale itself, else
 *                mul_rn(scale, 512), and 512 where the weights have none along k
 *                (rows g and g + 8 of each 16 stand side by side, as a thread wants them; a lane
 *                of a scale warp loads just these)
 *   TILE_TOKENS  scales of A, one a token, if A has scales along k
 *
 * A group that does not exist (the last atom may end before its groups do, the last stage before
 * its blocks do) has the factors -0 and 1: its products are +0, and acc + +0 * -0 is acc, whatever
 * acc is.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_SCALES_H
#define HALFBYTE_KERNELS_GEMM_W4A8_SCALES_H

#include "kernels/gemm_params.h"
#include "kernels/gemm_w4a8_scale_loads.h"
#include "kernels/gemm_w4a8_tiles.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/direct.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/work.h"

/* One stage's, from `block` on (whole: a constant, all its groups exist), to its place in shared
 * memory. */
HB_DEVICE void store_scales(const gemm_params *p, int32_t block, int32_t end_block, smem_addr to,
                            const uint32_t raw[STAGE_LOADS], bool whole)
{
    const smem_addr mine = to + lane_index() * 8u;
    int q, i;
    HB_UNROLL
    for (q = 0; q < STAGE_GROUPS; q++) {
        const bool exists =
            whole || (block + q / GEMM_GROUPS < end_block && group_at(p, block, q) < p->k_groups);
        HB_UNROLL
        for (i = 0; i < ROW_SCALES; i += 2) {
            smem_store_u32x2(mine + (uint32_t)q * GROUP_SCALE_BYTES + (uint32_t)i * 128u,
                             exists ? raw[q * ROW_SCALES + i] : 0x80000000u,
                             exists ? raw[q * ROW_SCALES + i + 1] : 0x80000000u);
        }
    }
}

#include "kernels/gemm_w4a8_token_scales.h"

/* Asks for lines of the weights' scales that are needed `distance` blocks after k block `now`, the
 * first of the turn: a lane for a block of its own.  Where the scales of a block are neighbours,
 * that is their line. */
HB_DEVICE void prefetch_row_scales(const gemm_params *p, const scale_tile *tile,
                                   const scale_rows *rows, int32_t now, int32_t distance)
{
    const gemm_scales *b = &p->b_scale;
    const int32_t mine = now + distance + (int32_t)lane_index();
    if (b->data != NULL && mine < tile->end_block) {
        const int64_t ahead =
            scale_offset(b, mine * groups_of(p)) - scale_offset(b, now * groups_of(p));
        prefetch_l2(rows->row[0] + ahead * scale_bytes(b));
    }
}

/* The same for those of the tokens from k block `block` on. */
HB_DEVICE void prefetch_token_scales(const gemm_params *p, const scale_tile *tile, int32_t block)
{
    const gemm_scales *a = &p->a_scale;
    const int32_t mine = block + (int32_t)lane_index();
    if (a->data != NULL && mine < tile->end_block) {
        const token_rows of_a = token_rows_of(tile);
        prefetch_l2((const float *)a->data + of_a.plane * a->group_stride +
                    of_a.row * a->stride_mn + scale_offset(a, mine));
    }
}

/* Waits for the stage and fills it. */
HB_DEVICE void fill_scales(const gemm_params *p, const scale_tile *tile, const ring *r,
                           int32_t block, smem_addr to, const uint32_t raw[STAGE_LOADS],
                           uint32_t half, bool whole)
{
    const smem_addr full = r->full + r->stage * 8u;
    ring_wait_empty(r);
    store_scales(p, block, tile->end_block, to + half * 256u, raw, whole);
#if GEMM_TOKEN_SCALES != 0
    if (half == 0 && p->a_scale.data != NULL) {
        copy_token_scales(p, tile, block, to);
        cp_async_mbarrier_arrive_noinc(full); /* when this lane's copies are there */
    }
#endif
    if (half == 0 && block + STAGE_BLOCKS >= tile->end_block &&
        p->epilogue.row_scale.data != NULL) {
        store_token_factors(p, tile, to + (uint32_t)FACTOR_GROUP * GROUP_SCALE_BYTES);
    }
    warp_sync();
    if (elect_one()) {
        mbarrier_arrive(full); /* for the stores of all lanes */
    }
}

/* The tile of an item that has been waited for; false: there is none. */
HB_DEVICE bool scale_tile_read(const work_ring *work, uint32_t half, scale_tile *tile)
{
    tile->slot = work->slots + work->slot * 32u;
    tile->group = uniform_load(tile->slot);
    tile->column = uniform_load(tile->slot + 16u) + (int32_t)half * 64;
    tile->first_block = uniform_load(tile->slot + 24u);
    tile->end_block = uniform_load(tile->slot + 28u);
    return tile->group >= 0;
}

/* The block's first tile, if it is known without the ring; then `work` is still before its item. */
HB_DEVICE bool scale_tile_known(const gemm_params *p, const work_ring *work, uint32_t half,
                                scale_tile *tile)
{
    work_item item;
    if (!direct_first_is_known(p)) {
        return false;
    }
    (void)direct_tile(p, block_index(), TILE_TOKENS, TILE_ROWS, &item);
    tile->slot = work->slots;
    tile->group = 0;
    tile->column = item.column + (int32_t)half * 64;
    tile->first_block = item.first_block;
    tile->end_block = item.end_block;
    return true;
}

/* Waits for the next tile; false: there is none. */
HB_DEVICE bool scale_tile_next(const work_ring *work, uint32_t half, scale_tile *tile)
{
    mbarrier_wait(work_full(work), work->parity);
    return scale_tile_read(work, half, tile);
}

/* A turn of this warp: all stages whose scales are in raw. */
HB_DEVICE void fill_turn(const gemm_params *p, const scale_tile *tile, ring *r, int32_t block,
                         int32_t blocks, smem_addr scales, const uint32_t raw[TURN_LOADS],
                         uint32_t half, bool whole)
{
    int j;
    HB_UNROLL
    for (j = 0; j < TURN_STAGES; j++) {
        if (whole || j * STAGE_BLOCKS < blocks) {
            fill_scales(p, tile, r, block + j * STAGE_BLOCKS, scales + r->stage * SCALE_BYTES,
                        raw + j * STAGE_LOADS, half, whole);
            ring_advance(r);
        }
    }
}

/* Past the stages of another warp's turn. */
HB_DEVICE void skip_turn(ring *r, int32_t blocks)
{
    int j;
    HB_UNROLL
    for (j = 0; j < TURN_STAGES; j++) {
        if (j * STAGE_BLOCKS < blocks) {
            ring_advance(r);
        }
    }
}

#if SCALES_AHEAD
#include "kernels/gemm_w4a8_scales_ahead.h"
#elif defined(SCALE_WARPS)
/* Scales of the first turn of the block's first tile, if that is known and whole: they are on their
 * way before the others have come together.  widen_scales() is still to come. */
HB_DEVICE bool load_early(const gemm_params *p, const work_ring *work, uint32_t half,
                          uint32_t raw[TURN_LOADS])
{
    scale_tile tile;
    scale_rows rows;
    int64_t offset[TURN_GROUPS];
    if (GEMM_GROUPS != 1 || !scale_tile_known(p, work, half, &tile) ||
        TURN_BLOCKS > tile.end_block) {
        return false;
    }
    gemm_wait_for_grids(p);
    rows = scale_rows_of(p, &tile);
    turn_offsets(p, 0, offset);
    load_typed(p, &rows, offset, raw);
    return true;
}

/* Scale warp number `warp`. */
HB_DEVICE void produce_scales(const gemm_params *p, smem_addr scales, ring r, work_ring work,
                              uint32_t warp)
{
    const uint32_t half = PANELS == 2 ? warp : 0;
    uint32_t raw[TURN_LOADS] = {0};
    scale_tile tile;
    bool mine = PANELS == 2 || warp == 0;
    bool early;
    int32_t i;
    scales_touch(p);
    early = mine && load_early(p, &work, half, raw);
    gemm_join(p, GEMM_THREADS);
    if (early) {
        widen_scales(p, raw);
    }
    while (scale_tile_next(&work, half, &tile)) {
        scale_rows rows = scale_rows_of(p, &tile);
        const int32_t blocks = padded_blocks(tile.first_block, tile.end_block);
        const int64_t turn = turn_bytes(p);
        const bool fours = scales_by_four(p, &tile);
        int64_t offset[TURN_GROUPS];
        turn_offsets(p, tile.first_block, offset);
        for (i = 0; i < blocks; i += TURN_BLOCKS) {
            const int32_t block = tile.first_block + i;
            if (!mine) {
                skip_turn(&r, blocks - i);
            } else if (GEMM_GROUPS == 1 && block + TURN_BLOCKS <= tile.end_block) {
                if (!early) {
                    fetch_scales(p, &rows, offset, fours, raw);
                }
                early = false;
                if (i == 0) {
                    prefetch_row_scales(p, &tile, &rows, block, 0);
                    prefetch_token_scales(p, &tile, block);
                }
                if (i % PREFETCHED_BLOCKS == 0) {
                    prefetch_row_scales(p, &tile, &rows, block, PREFETCHED_BLOCKS);
                    prefetch_token_scales(p, &tile, block + PREFETCHED_BLOCKS);
                }
                fill_turn(p, &tile, &r, block, blocks - i, scales, raw, half, true);
            } else {
                int64_t exact[TURN_GROUPS];
                turn_offsets(p, block, exact);
                fetch_scales(p, &rows, exact, false, raw);
                fill_turn(p, &tile, &r, block, blocks - i, scales, raw, half, false);
            }
            next_scales(turn, &rows);
            mine = PANELS == 2 || !mine;
        }
        warp_sync(); /* all lanes have read the item before one says so */
        if (elect_one()) {
            mbarrier_arrive(work_empty(&work));
        }
        work_ring_advance(&work);
    }
}
#endif

#endif
