/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of the scale warps of kernels with room to have scales on their way (SCALES_AHEAD > 0),
 * part of gemm_w4a8_scales.h.
 *
 * A lane copies scales as they are, SCALES_AHEAD turns of its warp before it turns them into fp32,
 * in the next tiles too: nobody waits for memory.  They are copies and not loads, since ptxas gives
 * all loads of a loop one scoreboard: who wants the oldest waits for the newest too.  A group of
 * copies is a turn, and a lane reads what it has copied itself.  Where the block's first tile is
 * known its copies are on their way before the others have come together.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_SCALES_AHEAD_H
#define HALFBYTE_KERNELS_GEMM_W4A8_SCALES_AHEAD_H

#include "kernels/gemm_w4a8_scale_copies.h"
#include "kernels/gemm_w4a8_tiles.h"

/* From one turn of a warp to its next. */
#define TURNS_APART (SCALE_WARPS / PANELS)
#define BLOCKS_APART (TURNS_APART * TURN_BLOCKS)
#define TILES_AHEAD 3 /* that are begun by the copies and not yet stored, at most */
#define COPIED_TURN_BYTES (ROW_SCALES * COPIED_ROW_BYTES)

/* A warp waits for item t + TILES_AHEAD - 1 while it has not given back item t. */
#if TILES_AHEAD > WORK_SLOTS
#error "that item waits for this one's slot"
#endif
#if (TURNS_APART & (TURNS_APART - 1)) != 0
#error "a warp's first turn is counted modulo a power of two"
#endif
#if GEMM_GROUPS != 1
#error "a turn's offsets hold for one weight group a k block"
#endif
#if STAGE_BLOCKS != 2 && STAGE_BLOCKS != 4
#error "a turn has four groups"
#endif
#if GEMM_STAGES <= (TURNS_APART - 1) * TURN_STAGES
#error "a warp that passes over the others' turns must not miss a pass of the ring"
#endif

/* Where a warp's copies are. */
typedef struct scale_walk {
    work_ring work;   /* the next tile's item */
    scale_tile tile;  /* the one they are in */
    scale_rows rows;  /* in the turn that is copied next */
    int64_t step;     /* bytes from one turn of this warp to its next */
    int32_t block;    /* first k block of that turn */
    int32_t end;      /* of the tile's turns */
    int32_t whole;    /* last_copied() of the tile */
    uint32_t half;    /* of the tile's rows */
    uint32_t first;   /* of the next tile's turns, the first that is this warp's */
    uint32_t tiles;   /* begun, and not yet stored to the end */
    uint32_t turns;   /* copied, and not yet stored */
    uint32_t slot;    /* of the turn that is copied next */
    smem_addr copied; /* this lane's, of all turns */
    bool more;        /* there may be another item */
} scale_walk;

/* Of a tile's turns, the first that is this warp's; and for the next tile. */
HB_DEVICE int32_t first_turn(const scale_tile *tile, uint32_t *first)
{
    const int32_t blocks = padded_blocks(tile->first_block, tile->end_block);
    const uint32_t here = *first;
    *first = (here - (uint32_t)(blocks + TURN_BLOCKS - 1) / TURN_BLOCKS) % TURNS_APART;
    return (int32_t)here;
}

HB_DEVICE int32_t turns_end(const scale_tile *tile)
{
    return tile->first_block + padded_blocks(tile->first_block, tile->end_block);
}

/* Copies bring the turns that begin with a k block up to this one. */
HB_DEVICE int32_t last_copied(const gemm_params *p, const scale_tile *tile)
{
    const bool copies =
        (p->flags & (GEMM_SCALES_BY_FOUR | GEMM_SCALES_BY_WORD)) != 0 && tile->first_block % 4 == 0;
    return copies ? tile->end_block - TURN_BLOCKS : -1;
}

/* Begins with the tile that has been found. */
HB_DEVICE void walk_begin_tile(const gemm_params *p, scale_walk *w)
{
    const int32_t first = first_turn(&w->tile, &w->first);
    w->block = w->tile.first_block + first * TURN_BLOCKS;
    w->end = turns_end(&w->tile);
    w->whole = last_copied(p, &w->tile);
    w->step = TURNS_APART * turn_bytes(p);
    w->rows = scale_rows_of(p, &w->tile);
    next_scales(first * turn_bytes(p), &w->rows);
    work_ring_advance(&w->work);
    w->tiles++;
}

/* The block's first tile, if it is known. */
HB_DEVICE void walk_known_tile(const gemm_params *p, scale_walk *w)
{
    if (scale_tile_known(p, &w->work, w->half, &w->tile)) {
        walk_begin_tile(p, w);
        gemm_wait_for_grids(p);
    }
}

/* Copies the next turn.  The group is closed where there is nothing to copy too, so that groups
 * count turns. */
HB_DEVICE void copy_turn(const gemm_params *p, scale_walk *w)
{
    if (HB_LIKELY(w->block <= w->whole)) {
        const smem_addr to = w->copied + w->slot * COPIED_TURN_BYTES;
        const int32_t bytes = scale_bytes(&p->b_scale);
        if (HB_LIKELY((p->flags & GEMM_SCALES_BY_FOUR) && bytes == 2)) {
            copy_fours(&w->rows, 2, to);
        } else if (!(p->flags & GEMM_SCALES_BY_FOUR)) {
            copy_words(p, &w->rows, to);
        } else if (bytes == 4) {
            copy_fours(&w->rows, 4, to);
        } else {
            copy_fours(&w->rows, 1, to);
        }
    }
    cp_async_commit();
    next_scales(w->step, &w->rows);
    w->block += BLOCKS_APART;
    w->slot = w->slot + 1 == SCALES_AHEAD ? 0 : w->slot + 1;
    w->turns++;
}

/* Copies as many turns as may be on their way; afterwards there is at least one if the next tile
 * has any. */
HB_DEVICE void copy_ahead(const gemm_params *p, scale_walk *w)
{
    while (w->turns < SCALES_AHEAD) {
        if (HB_LIKELY(w->block < w->end)) {
            copy_turn(p, w);
        } else if (w->more && w->tiles < TILES_AHEAD) {
            w->more = scale_tile_next(&w->work, w->half, &w->tile);
            if (w->more) {
                walk_begin_tile(p, w);
            }
        } else {
            break;
        }
    }
}

/* The factors of a turn that is not copied, and lines of scales that are needed later. */
HB_DEVICE void fetch_loaded(const gemm_params *p, const scale_tile *tile, int32_t block,
                            uint32_t raw[TURN_LOADS])
{
    scale_tile here = *tile;
    scale_rows rows;
    int64_t offset[TURN_GROUPS];
    here.first_block = block;
    rows = scale_rows_of(p, &here);
    turn_offsets(p, block, offset);
    fetch_scales(p, &rows, offset, false, raw);
    if ((block - tile->first_block) % PREFETCHED_BLOCKS == 0) {
        prefetch_row_scales(p, tile, &rows, block, PREFETCHED_BLOCKS);
    }
}

/* The factors of the turn of `tile` that begins with k block `block`, the oldest that is copied.
 * whole: last_copied(). */
HB_DEVICE void fetch_turn(const gemm_params *p, const scale_tile *tile, const scale_walk *w,
                          int32_t block, int32_t whole, uint32_t raw[TURN_LOADS])
{
    const int32_t type = p->b_scale.type;
    const smem_addr from =
        w->copied + (w->slot + SCALES_AHEAD - w->turns) % SCALES_AHEAD * COPIED_TURN_BYTES;
    /* The usual, found by one test: its code is short where nothing rare is in between. */
    if (HB_LIKELY(block <= whole && type == ELEMENT_BF16 && (p->flags & GEMM_SCALES_BY_FOUR))) {
        load_fours(from, 2, raw);
        widen_as(ELEMENT_BF16, raw);
        factors_of_scales(p, raw);
        return;
    }
    if (block > whole) {
        fetch_loaded(p, tile, block, raw);
        return;
    }
    if (type == ELEMENT_BF16) {
        load_copied(p, from, 2, raw);
        widen_as(ELEMENT_BF16, raw);
    } else if (type == ELEMENT_F32) {
        load_copied(p, from, 4, raw);
    } else if (type == ELEMENT_E4M3) {
        load_copied(p, from, 1, raw);
        widen_as(ELEMENT_E4M3, raw);
    } else {
        load_copied(p, from, 2, raw);
        widen_as(ELEMENT_F16, raw);
    }
    factors_of_scales(p, raw);
}

/* Waits for the copies of the oldest turn. */
HB_DEVICE void await_turn(const scale_walk *w)
{
    if (HB_LIKELY(w->turns == SCALES_AHEAD)) {
        cp_async_wait(SCALES_AHEAD - 1);
    } else {
        cp_async_wait(0);
    }
}

/* Stores a turn's factors, and passes the stages of the others' turns behind it. */
HB_DEVICE void store_turn(const gemm_params *p, const scale_tile *tile, ring *r, int32_t block,
                          smem_addr scales, const uint32_t raw[TURN_LOADS], uint32_t half)
{
    const int32_t blocks = turns_end(tile) - block;
    int i;
    if (HB_LIKELY(block + TURN_BLOCKS <= tile->end_block)) {
        fill_turn(p, tile, r, block, blocks, scales, raw, half, true);
    } else {
        fill_turn(p, tile, r, block, blocks, scales, raw, half, false);
    }
    HB_UNROLL
    for (i = 1; i < TURNS_APART; i++) {
        skip_turn(r, blocks - i * TURN_BLOCKS);
    }
}

/* The next tile, whose item has been waited for by the copies (or, the known one, was there before
 * the warps met): the first k block of its turns that is this warp's; passes the others' before. */
HB_DEVICE int32_t store_begin_tile(const gemm_params *p, const work_ring *work, uint32_t half,
                                   uint32_t *first, ring *r, scale_tile *tile)
{
    int32_t before;
    int i;
    (void)scale_tile_read(work, half, tile);
    before = first_turn(tile, first);
    HB_UNROLL
    for (i = 0; i < TURNS_APART - 1; i++) {
        if (i < before) {
            skip_turn(r, turns_end(tile) - tile->first_block - i * TURN_BLOCKS);
        }
    }
    if (before == 0 && half == 0) {
        prefetch_token_scales(p, tile, tile->first_block);
    }
    return tile->first_block + before * TURN_BLOCKS;
}

HB_DEVICE scale_walk scale_walk_of(smem_addr scales, work_ring work, uint32_t warp)
{
    scale_walk w;
    int i;
    w.work = work;
    w.tile.slot = 0;
    w.tile.group = w.tile.column = w.tile.first_block = w.tile.end_block = 0;
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        w.rows.row[i] = NULL;
    }
    w.block = w.end = w.whole = 0;
    w.step = 0;
    w.half = PANELS == 2 ? warp : 0;
    w.first = PANELS == 2 ? 0 : warp;
    w.tiles = w.turns = w.slot = 0;
    w.copied = scales + GEMM_STAGES * SCALE_BYTES + warp * (SCALES_AHEAD * COPIED_TURN_BYTES) +
               lane_index() * 16u;
    w.more = false;
    return w;
}

/* Scale warp number `warp`. */
HB_DEVICE void produce_scales(const gemm_params *p, smem_addr scales, ring r, work_ring work,
                              uint32_t warp)
{
    scale_walk walk = scale_walk_of(scales, work, warp);
    scale_tile tile = walk.tile; /* that is stored */
    uint32_t first = walk.first;
    int32_t block = 0, whole = 0;
    bool in_tile = false, joined = false, looks = true;
    scales_touch(p);
    walk_known_tile(p, &walk);
    for (;;) {
        if (looks) {
            copy_ahead(p, &walk);
        }
        if (!HB_LIKELY(joined)) {
            if (direct_first_is_known(p)) {
                barrier_arrive(SCALES_BARRIER, SCALES_THREADS);
            }
            gemm_join(p, GEMM_THREADS);
            walk.more = joined = true;
            looks = walk.tiles == 0; /* else no item is waited for before a turn is stored */
            continue;
        }
        looks = true;
        if (!HB_LIKELY(in_tile)) {
            if (walk.tiles == 0) {
                break;
            }
            block = store_begin_tile(p, &work, walk.half, &first, &r, &tile);
            whole = last_copied(p, &tile);
            in_tile = true;
        }
        if (HB_LIKELY(block < turns_end(&tile))) {
            uint32_t raw[TURN_LOADS];
            await_turn(&walk);
            fetch_turn(p, &tile, &walk, block, whole, raw);
            walk.turns--;
            if (walk.half == 0 && (block - tile.first_block) % PREFETCHED_BLOCKS == 0) {
                prefetch_token_scales(p, &tile, block + PREFETCHED_BLOCKS);
            }
            store_turn(p, &tile, &r, block, scales, raw, walk.half);
            block += BLOCKS_APART;
        }
        if (block >= turns_end(&tile)) {
            warp_sync(); /* all lanes have read the item before one says so */
            if (elect_one()) {
                mbarrier_arrive(work_empty(&work));
            }
            work_ring_advance(&work);
            walk.tiles--;
            in_tile = false;
        }
    }
}

#endif
