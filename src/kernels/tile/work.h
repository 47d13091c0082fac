/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of D a block computes next.
 *
 * One warp, the scheduler, walks the tiles of all groups and writes those of its block into a small
 * ring in shared memory; every other warp that needs to know takes them from there.  So the group
 * arithmetic, which reads sizes that only the device knows, stands in one place and costs no
 * registers where sums are held.
 *
 * ORDER.  Tiles are numbered group by group, in a group split by split, in a split by bands of
 * WORK_BAND rows of tiles, in a band column by column: blocks that run at the same time read few
 * rows of A and of B.  Block b of the grid takes tiles b, b + blocks of the grid, ...
 *
 * RANGES, MASKED.  32 groups at a time, one a lane: sizes are read, clamped as halfbyte_groups
 * says, and counted by a prefix sum over the warp.
 */
#ifndef HALFBYTE_KERNELS_TILE_WORK_H
#define HALFBYTE_KERNELS_TILE_WORK_H

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/group_rows.h"

/* A tile.  Rows [row, row_end) of it exist, which may be more than the tile has; columns from
 * `column` to n. */
typedef struct work_item {
    int32_t group; /* matrix of B */
    int32_t plane; /* matrix of A and D */
    int32_t row;
    int32_t row_end;
    int32_t column;
    int32_t split;
    int32_t first_block; /* of the 128-k blocks that are summed: [first_block, end_block) */
    int32_t end_block;
} work_item;

#ifndef WORK_SLOTS
#define WORK_SLOTS 4 /* of the ring, unless a kernel needs more */
#endif
#define WORK_BAND 16
#define WORK_BYTES (WORK_SLOTS * (32u + 16u))

/* One side's place in the ring of items: slots of 32 bytes, then full and empty barriers. */
typedef struct work_ring {
    smem_addr slots;
    uint32_t slot;
    uint32_t parity;
} work_ring;

HB_DEVICE work_ring work_ring_at(smem_addr memory)
{
    work_ring w;
    w.slots = memory;
    w.slot = 0;
    w.parity = 0;
    return w;
}

HB_DEVICE smem_addr work_full(const work_ring *w)
{
    return w->slots + WORK_SLOTS * 32u + w->slot * 8u;
}

HB_DEVICE smem_addr work_empty(const work_ring *w)
{
    return w->slots + WORK_SLOTS * 40u + w->slot * 8u;
}

/* By one thread, before the block barrier.  `takers`: warps that call work_take(). */
HB_DEVICE void work_ring_init(smem_addr memory, uint32_t takers)
{
    uint32_t s;
    for (s = 0; s < WORK_SLOTS; s++) {
        mbarrier_init(memory + WORK_SLOTS * 32u + s * 8u, 1);
        mbarrier_init(memory + WORK_SLOTS * 40u + s * 8u, takers);
    }
    fence_mbarrier_init();
}

HB_DEVICE void work_ring_advance(work_ring *w)
{
    w->slot++;
    if (w->slot == WORK_SLOTS) {
        w->slot = 0;
        w->parity ^= 1u;
    }
}

/* Waits for the next item, which stays where it is: is there one?  The whole warp calls; by a vote,
 * so that the answer is uniform to the compiler too. */
HB_DEVICE bool work_await(const work_ring *w)
{
    mbarrier_wait(work_full(w), w->parity);
    return vote_any((int32_t)smem_load_u32(w->slots + w->slot * 32u) >= 0);
}

/* Takes an item that has been waited for.  Otherwise as work_take(). */
HB_DEVICE bool work_take_awaited(work_ring *w, work_item *item)
{
    const smem_addr slot = w->slots + w->slot * 32u;
    uint32_t low[4], high[4];
    smem_load_u32x4(slot, low);
    smem_load_u32x4(slot + 16u, high);
    warp_sync(); /* all lanes have loaded before one says so */
    if (elect_one()) {
        mbarrier_arrive(work_empty(w));
    }
    work_ring_advance(w);
    item->group = (int32_t)low[0];
    item->plane = (int32_t)low[1];
    item->row = (int32_t)low[2];
    item->row_end = (int32_t)low[3];
    item->column = (int32_t)high[0];
    item->split = (int32_t)high[1];
    item->first_block = (int32_t)high[2];
    item->end_block = (int32_t)high[3];
    return item->group >= 0;
}

/*
 * A warp takes its next tile; false: there is none left.  The whole warp calls, converged, and all
 * its lanes get the item.  Where one lane alone works on the item, a warp_sync() must follow its
 * work: else the others would wait here in a loop that takes issue slots from it.
 */
HB_DEVICE bool work_take(work_ring *w, work_item *item)
{
    mbarrier_wait(work_full(w), w->parity);
    return work_take_awaited(w, item);
}

/* ---- the scheduler --------------------------------------------------------------------------- */

/* The whole warp calls; lane 0 writes. */
HB_DEVICE void work_put(work_ring *w, const work_item *item)
{
    if (lane_index() == 0) {
        const smem_addr slot = w->slots + w->slot * 32u;
        mbarrier_wait(work_empty(w), w->parity ^ 1u);
        smem_store_u32x4(slot, (uint32_t)item->group, (uint32_t)item->plane, (uint32_t)item->row,
                         (uint32_t)item->row_end);
        smem_store_u32x4(slot + 16u, (uint32_t)item->column, (uint32_t)item->split,
                         (uint32_t)item->first_block, (uint32_t)item->end_block);
        mbarrier_arrive(work_full(w));
    }
    work_ring_advance(w);
}

HB_DEVICE uint32_t work_rounded_up(uint32_t count, uint32_t unit)
{
    return (count + unit - 1) / unit;
}

/* Tile `index` of a group whose rows are [start, end). */
HB_DEVICE work_item work_tile(const gemm_params *p, uint32_t rows, uint32_t columns, uint32_t index,
                              int32_t group, int32_t start, int32_t end)
{
    const uint32_t high = work_rounded_up((uint32_t)(end - start), rows);
    const uint32_t wide = work_rounded_up((uint32_t)p->n, columns);
    const uint32_t split = p->k_splits > 1 ? index / (high * wide) : 0u;
    const uint32_t in_split = index - split * (high * wide);
    const uint32_t band = in_split / (WORK_BAND * wide);
    const uint32_t left = high - band * WORK_BAND;
    const uint32_t height = left < WORK_BAND ? left : WORK_BAND;
    const uint32_t in_band = in_split - band * (WORK_BAND * wide);
    const uint32_t column = in_band / height;
    const uint32_t row = band * WORK_BAND + (in_band - column * height);
    const uint32_t splits = (uint32_t)p->k_splits;
    const uint32_t longer = (uint32_t)p->k_blocks % splits, each = (uint32_t)p->k_blocks / splits;
    work_item item;
    item.group = group;
    item.plane = p->groups.kind == GEMM_MASKED ? group : 0;
    item.row = start + (int32_t)(row * rows);
    item.row_end = end;
    item.column = (int32_t)(column * columns);
    item.split = (int32_t)split;
    item.first_block = (int32_t)(split * each + (split < longer ? split : longer));
    item.end_block = item.first_block + (int32_t)(each + (split < longer ? 1u : 0u));
    return item;
}

/* A walk over the tiles of rows x columns, from `tile` on every block_count()th, by one whole warp:
 * 32 groups at a time, a lane for each. */
typedef struct work_walk {
    uint32_t tile;       /* comes next; counted over all groups */
    uint32_t before;     /* tiles of the groups before lane 0's */
    uint32_t all;        /* of these 32 groups */
    uint32_t upto;       /* of this lane's group and of those of the lanes below */
    uint32_t start, end; /* rows of this lane's group */
    uint32_t taken;      /* of group_rows() */
    int64_t base;        /* lane 0's group */
} work_walk;

/* The 32 groups from w->base on. */
HB_DEVICE void work_walk_groups(const gemm_params *p, uint32_t rows, uint32_t columns, work_walk *w)
{
    const uint32_t wide = work_rounded_up((uint32_t)p->n, columns) * (uint32_t)p->k_splits;
    group_rows(&p->groups, (uint32_t)p->m, w->base + lane_index(), &w->taken, &w->start, &w->end);
    w->upto = work_rounded_up(w->end - w->start, rows) * wide;
    if (p->groups.kind == GEMM_DENSE) {
        w->upto = work_rounded_up((uint32_t)p->m, rows) * wide; /* lane 0's, for all */
    } else {
        w->upto = lanes_sum(w->upto, 0x7fffffffu);
    }
    w->all = shuffle_u32(w->upto, 31);
}

/* Tile w->tile, one of these groups'. */
HB_DEVICE work_item work_walk_tile(const gemm_params *p, uint32_t rows, uint32_t columns,
                                   const work_walk *w)
{
    const uint32_t index = w->tile - w->before;
    const uint32_t lane = vote_count(w->upto <= index);
    const uint32_t below = shuffle_u32(w->upto, (lane - 1u) & 31u);
    return work_tile(p, rows, columns, index - (lane == 0 ? 0u : below), (int32_t)(w->base + lane),
                     (int32_t)shuffle_u32(w->start, lane), (int32_t)shuffle_u32(w->end, lane));
}

/* The item that ends the others' work. */
HB_DEVICE work_item work_no_tile(void)
{
    work_item none;
    none.group = -1;
    none.plane = none.row = none.row_end = none.column = none.split = 0;
    none.first_block = none.end_block = 0;
    return none;
}

HB_DEVICE work_walk work_walk_from(uint32_t tile)
{
    work_walk w;
    w.tile = tile;
    w.before = w.all = w.upto = w.start = w.end = w.taken = 0;
    w.base = 0;
    return w;
}

/* Tiles of rows x columns, from `tile` on every block_count()th, by one whole warp; then the item
 * that ends the others' work. */
HB_DEVICE void work_schedule_from(const gemm_params *p, uint32_t rows, uint32_t columns,
                                  work_ring w, uint32_t tile)
{
    work_walk walk = work_walk_from(tile);
    work_item item;
    for (; walk.base < p->groups.count; walk.base += 32) {
        work_walk_groups(p, rows, columns, &walk);
        for (; walk.tile - walk.before < walk.all; walk.tile += block_count()) {
            item = work_walk_tile(p, rows, columns, &walk);
            work_put(&w, &item);
        }
        walk.before += walk.all;
    }
    item = work_no_tile();
    work_put(&w, &item);
}

/* The same one by one, for a warp that has other work between them: the next tile, from
 * work_walk_before(tile) on; without one, work_no_tile() and false. */
HB_DEVICE work_walk work_walk_before(uint32_t tile)
{
    work_walk w = work_walk_from(tile);
    w.base = -32;
    return w;
}

HB_DEVICE bool work_walk_next(const gemm_params *p, uint32_t rows, uint32_t columns, work_walk *w,
                              work_item *item)
{
    while (w->tile - w->before >= w->all) {
        w->before += w->all;
        w->base += 32;
        if (w->base >= p->groups.count) {
            *item = work_no_tile();
            return false;
        }
        work_walk_groups(p, rows, columns, w);
    }
    *item = work_walk_tile(p, rows, columns, w);
    w->tile += block_count();
    return true;
}

/* All tiles of this block. */
HB_DEVICE void work_schedule(const gemm_params *p, uint32_t rows, uint32_t columns, work_ring w)
{
    work_schedule_from(p, rows, columns, w, block_index());
}

/* By every thread, before it touches what other grids write. */
HB_DEVICE void gemm_wait_for_grids(const gemm_params *p)
{
    grid_dependency_wait();
    if (p->flags & GEMM_LAUNCH_DEPENDENTS) {
        grid_launch_dependents();
    }
}

/* By all threads, when barriers and constants are written: makes them known to the block and waits
 * for the grids before this one. */
HB_DEVICE void gemm_begin(const gemm_params *p)
{
    block_sync();
    gemm_wait_for_grids(p);
}

/* The same where warps begin apart, by a named barrier: each joins when it has done its part. */
#define START_BARRIER 3
HB_DEVICE void gemm_join(const gemm_params *p, uint32_t threads)
{
    barrier_sync(START_BARRIER, threads);
    gemm_wait_for_grids(p);
}

#endif
