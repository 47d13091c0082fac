/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of the scale warps of kernels that have the registers for it (SCALES_AHEAD), part of
 * gemm_w4a8_scales.h: a turn's scales are loaded before those of the warp's turn before it are
 * stored, so that nobody waits for a load.  It takes registers that larger tiles do not have.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_SCALES_AHEAD_H
#define HALFBYTE_KERNELS_GEMM_W4A8_SCALES_AHEAD_H

#include "kernels/gemm_w4a8_tiles.h"

/* From one turn of a warp to its next. */
#define TURNS_APART SCALE_WARPS
#if PANELS != 1
#error "a turn has all rows of a tile"
#endif
#if (TURNS_APART & (TURNS_APART - 1)) != 0
#error "a warp's first turn is counted modulo a power of two"
#endif
#if GEMM_GROUPS != 1
#error "a turn's offsets hold for one weight group a k block"
#endif
#if GEMM_STAGES <= (TURNS_APART - 1) * TURN_STAGES
#error "a warp that passes over the others' turns must not miss a pass of the ring"
#endif

/* A warp's place among the turns of a tile. */
typedef struct scale_walk {
    scale_rows rows; /* in the turn that is loaded next */
    int64_t offset[TURN_GROUPS];
    bool fours;   /* scales_by_four() */
    int64_t step; /* bytes from one turn of this warp to the next */
} scale_walk;

/* Of the tile's turns, number `first` is this warp's first. */
HB_DEVICE scale_walk scale_walk_of(const gemm_params *p, const scale_tile *tile, int32_t first)
{
    const int64_t turn = turn_bytes(p);
    scale_walk w;
    int i;
    w.rows = scale_rows_of(p, tile);
    w.step = TURNS_APART * turn;
    w.fours = scales_by_four(p, tile);
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        w.rows.row[i] += first * turn;
    }
    turn_offsets(p, tile->first_block, w.offset);
    return w;
}

/* Loads the turn that begins with k block `block`, and moves on. */
HB_DEVICE void load_turn(const gemm_params *p, const scale_tile *tile, scale_walk *w, int32_t block,
                         uint32_t raw[TURN_LOADS])
{
    int i;
    if (block >= tile->end_block) {
        return;
    }
    if (block + TURN_BLOCKS <= tile->end_block) {
        load_typed(p, &w->rows, w->offset, w->fours, raw);
        if ((block - tile->first_block) % PREFETCHED_BLOCKS == 0) {
            prefetch_scales(p, tile, &w->rows, block, PREFETCHED_BLOCKS);
        }
    } else {
        int64_t exact[TURN_GROUPS];
        turn_offsets(p, block, exact);
        load_typed(p, &w->rows, exact, false, raw);
    }
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        w->rows.row[i] += w->step;
    }
}

/* Stores that turn, and passes the stages of the others' turns behind it. */
HB_DEVICE void store_turn(const gemm_params *p, const scale_tile *tile, ring *r, int32_t block,
                          int32_t end, smem_addr scales, bool fours, uint32_t raw[TURN_LOADS])
{
    const bool whole = block + TURN_BLOCKS <= tile->end_block;
    int i;
    widen_scales(p, whole && fours, raw);
    if (whole) {
        fill_turn(p, tile, r, block, end - block, scales, raw, 0, true);
    } else {
        fill_turn(p, tile, r, block, end - block, scales, raw, 0, false);
    }
    HB_UNROLL
    for (i = 1; i < TURNS_APART; i++) {
        skip_turn(r, end - block - i * TURN_BLOCKS);
    }
}

/* All turns of a tile that are this warp's, of which the first is `first`. */
HB_DEVICE void fill_tile_scales(const gemm_params *p, const scale_tile *tile, ring *r,
                                smem_addr scales, int32_t first)
{
    const int32_t apart = TURNS_APART * TURN_BLOCKS;
    const int32_t end = tile->first_block + padded_blocks(tile->first_block, tile->end_block);
    int32_t block = tile->first_block + first * TURN_BLOCKS;
    scale_walk walk = scale_walk_of(p, tile, first);
    uint32_t even[TURN_LOADS], odd[TURN_LOADS];
    int i;
    load_turn(p, tile, &walk, block, even);
    if (first == 0) {
        prefetch_scales(p, tile, &walk.rows, block + apart, -apart);
    }
    HB_UNROLL
    for (i = 0; i < TURNS_APART - 1; i++) {
        if (i < first) {
            skip_turn(r, end - tile->first_block - i * TURN_BLOCKS);
        }
    }
    HB_NO_UNROLL
    for (; block < end; block += 2 * apart) {
        load_turn(p, tile, &walk, block + apart, odd);
        store_turn(p, tile, r, block, end, scales, walk.fours, even);
        if (block + apart < end) {
            load_turn(p, tile, &walk, block + 2 * apart, even);
            store_turn(p, tile, r, block + apart, end, scales, walk.fours, odd);
        }
    }
}

/* Scale warp number `warp`. */
HB_DEVICE void produce_scales(const gemm_params *p, smem_addr scales, ring r, work_ring work,
                              uint32_t warp)
{
    uint32_t first = warp; /* its first turn of the next tile */
    scale_tile tile;
    while (scale_tile_next(&work, 0, &tile)) {
        const int32_t blocks = padded_blocks(tile.first_block, tile.end_block);
        const uint32_t turns = (uint32_t)(blocks + TURN_BLOCKS - 1) / TURN_BLOCKS;
        fill_tile_scales(p, &tile, &r, scales, (int32_t)first);
        first = (first - turns) % TURNS_APART;
        warp_sync(); /* all lanes have read the item before one says so */
        if (elect_one()) {
            mbarrier_arrive(work_empty(&work));
        }
        work_ring_advance(&work);
    }
}

#endif
