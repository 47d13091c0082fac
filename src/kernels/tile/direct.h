/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles, or at least a block's first, without the scheduler.
 *
 * In a dense problem whose k is one range every warp can tell its block's tiles by itself, so the
 * first copy does not wait until the scheduler has written, and the others have read, the first
 * work item.  All other problems go through the work ring.
 *
 * ORDER.  Down the rows of a column of tiles, then the next.  Block b takes tiles b, b + blocks of
 * the grid, ...: blocks that run at the same time read the same weights.
 *
 * RUNS.  Where all k blocks of a tile fit into the ring, whole tiles fill it and a column has many,
 * a block takes tiles that follow each other instead: they have the same rows of B, which stay
 * where they are in the ring (tile/producers.h).  Bit k of DIRECT_RUNS: tiles of k blocks fill the
 * ring; a kernel that takes runs defines it, and has direct_schedule_run().
 */
#ifndef HALFBYTE_KERNELS_TILE_DIRECT_H
#define HALFBYTE_KERNELS_TILE_DIRECT_H

#include "kernels/tile/work.h"

#ifndef DIRECT_RUNS
#define DIRECT_RUNS 0u
#endif

/* Does a block take a run of tiles? */
HB_DEVICE bool direct_runs(const gemm_params *p)
{
    return DIRECT_RUNS != 0 && p->direct_run > 0 && p->k_blocks < 32 &&
           (DIRECT_RUNS >> p->k_blocks & 1u) != 0;
}

/* The first tile of block `block`; behind the last block, the number of tiles. */
HB_DEVICE uint32_t direct_run_start(const gemm_params *p, uint32_t block)
{
    const uint32_t run = (uint32_t)p->direct_run;
    const uint32_t longer = (uint32_t)(p->direct_high * p->direct_wide) - run * block_count();
    return block * run + (block < longer ? block : longer);
}

HB_DEVICE uint32_t direct_first_tile(const gemm_params *p)
{
    return direct_runs(p) ? direct_run_start(p, block_index()) : block_index();
}

typedef struct direct_work {
    work_ring ring;
    uint32_t next; /* tile */
} direct_work;

HB_DEVICE bool work_is_direct(const gemm_params *p)
{
    return p->direct_high > 0;
}

HB_DEVICE direct_work direct_work_at(smem_addr memory)
{
    direct_work w;
    w.ring = work_ring_at(memory);
    w.next = block_index();
    return w;
}

/* A tile without rows and without k blocks. */
HB_DEVICE work_item work_nothing(void)
{
    work_item item;
    item.group = item.plane = item.split = 0;
    item.row = item.row_end = item.column = 0;
    item.first_block = item.end_block = 0;
    return item;
}

/* Tile `tile` of rows x columns; false: there is none. */
HB_DEVICE bool direct_tile(const gemm_params *p, uint32_t tile, uint32_t rows, uint32_t columns,
                           work_item *item)
{
    const uint32_t high = (uint32_t)p->direct_high;
    uint32_t column = tile;
    if (high > 1) {
        column /= high;
    }
    *item = work_nothing();
    item->row = (int32_t)((tile - column * high) * rows);
    item->row_end = p->m;
    item->column = (int32_t)(column * columns);
    item->end_block = p->k_blocks;
    return column < (uint32_t)p->direct_wide;
}

/* As work_take(), by the same warps, for tiles of rows x columns. */
HB_DEVICE bool direct_take(const gemm_params *p, direct_work *w, uint32_t rows, uint32_t columns,
                           work_item *item)
{
    const uint32_t tile = w->next;
    if (!work_is_direct(p)) {
        return work_take(&w->ring, item);
    }
    w->next += block_count();
    return direct_tile(p, tile, rows, columns, item);
}

/* As gemm_join(), by a warp that waits for nothing but the first work item: where it knows that, it
 * says that it has come and goes on. */
HB_DEVICE void direct_begin(const gemm_params *p, uint32_t threads, bool knows_first)
{
    if (!knows_first) {
        gemm_join(p, threads);
        return;
    }
    barrier_arrive(START_BARRIER, threads);
    gemm_wait_for_grids(p);
}

/*
 * For kernels that take all tiles from the ring: does a block know its first one without the
 * scheduler?  Where the tiles of a column are one band, the order here is that of work.h, by which
 * the scheduler goes; a run is scheduled by the order here.
 */
HB_DEVICE bool direct_first_is_known(const gemm_params *p)
{
    return work_is_direct(p) && (p->direct_high <= WORK_BAND || direct_runs(p));
}

/* Tiles of a run, by the scheduler's warp; then the item that ends the others' work. */
HB_DEVICE void direct_schedule_run(const gemm_params *p, uint32_t rows, uint32_t columns,
                                   work_ring w)
{
    const uint32_t end = direct_run_start(p, block_index() + 1);
    uint32_t tile = direct_run_start(p, block_index());
    work_item item;
    for (; tile < end; tile++) {
        (void)direct_tile(p, tile, rows, columns, &item);
        work_put(&w, &item);
    }
    item = work_no_tile();
    work_put(&w, &item);
}

/* A taker that has the first item by itself passes over it in the ring.  It need not be there yet:
 * its slot is free again when all takers have said so. */
HB_DEVICE void direct_pass_first(work_ring *w)
{
    if (elect_one()) {
        mbarrier_arrive(work_empty(w));
    }
    work_ring_advance(w);
}

/* A taker that has not waited at the start waits here before it comes to the ring; the warp that
 * has initialised the ring says so. */
#define DIRECT_RING_BARRIER 4
HB_DEVICE void direct_await_ring(void)
{
    barrier_sync(DIRECT_RING_BARRIER, 64);
}

HB_DEVICE void direct_ring_is_ready(void)
{
    barrier_arrive(DIRECT_RING_BARRIER, 64);
}

#if DIRECT_RUNS == 0 /* what follows goes by block_index() */
/* The tiles of a warp that is to begin at once: the first, where it is known, is worked out and
 * only later found in the ring too. */
typedef struct known_work {
    work_ring ring;
    bool works_out; /* the next tile */
    bool has_ahead; /* of the ring the tile that it had last */
} known_work;

HB_DEVICE known_work known_work_at(const gemm_params *p, smem_addr memory)
{
    known_work w;
    w.ring = work_ring_at(memory);
    w.works_out = direct_first_is_known(p);
    w.has_ahead = false;
    return w;
}

/* As work_take(). */
HB_DEVICE bool known_take(const gemm_params *p, known_work *w, uint32_t rows, uint32_t columns,
                          work_item *item)
{
    if (w->works_out) {
        w->works_out = false;
        w->has_ahead = true;
        return direct_tile(p, block_index(), rows, columns, item);
    }
    if (w->has_ahead) {
        w->has_ahead = false;
        direct_await_ring();
        direct_pass_first(&w->ring);
    }
    return work_take(&w->ring, item);
}

/* Puts the first tile, where it is known, into the ring, by one whole warp before the block's
 * barrier; lane 0 has initialised the ring, and a warp with known_work may be waiting for it.
 * There is a tile for every block: no more are launched (blocks_of(), gemm_launch.c). */
HB_DEVICE void known_put_first(const gemm_params *p, smem_addr memory, uint32_t rows,
                               uint32_t columns)
{
    if (direct_first_is_known(p)) {
        work_ring first = work_ring_at(memory);
        work_item item;
        if (direct_tile(p, block_index(), rows, columns, &item)) {
            work_put(&first, &item);
        }
        direct_ring_is_ready();
    }
}

/* The scheduler of a kernel whose first tile known_put_first() may have put. */
HB_DEVICE void known_schedule(const gemm_params *p, smem_addr memory, uint32_t rows,
                              uint32_t columns)
{
    work_ring work = work_ring_at(memory);
    uint32_t tile = block_index();
    if (direct_first_is_known(p)) {
        work_ring_advance(&work);
        tile += block_count();
    }
    work_schedule_from(p, rows, columns, work, tile);
}
#endif

#endif
