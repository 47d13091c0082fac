/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the consumers of the W4A8 kernels take their tiles, and how long a tile's sum is.
 *
 * A trip of the main loop is UNROLL k blocks.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_TILES_H
#define HALFBYTE_KERNELS_GEMM_W4A8_TILES_H

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/work.h"

/* Two scale warps: of 64 rows' scales each takes every second turn, of 128 rows' each half the rows
 * of every turn.  Four, of 64 rows: every fourth turn. */
#define SCALE_ARRIVALS PANELS /* at a stage */

/* Named barrier: the scale warps have asked for the block's first scales; the loader waits. */
#define SCALES_BARRIER 5
#define SCALES_THREADS (32 + SCALE_WARPS * 32)

/* A tile's k blocks, filled up to whole trips. */
HB_DEVICE int32_t padded_blocks(int32_t first_block, int32_t end_block)
{
    return (end_block - first_block + UNROLL - 1) / UNROLL * UNROLL;
}

/* The consumers' place in the ring of work items, from the number of tiles they have done. */
HB_DEVICE work_ring work_ring_after(smem_addr memory, uint32_t tiles)
{
    work_ring work = work_ring_at(memory);
    work.slot = tiles % WORK_SLOTS;
    work.parity = tiles / WORK_SLOTS % 2u;
    return work;
}

/*
 * Trips of the sum of a tile that has been waited for, -1 if there is no tile.  By way of a
 * shuffle, which tells the compiler that all lanes have the same: the loop's state then lives in
 * uniform registers.
 */
HB_DEVICE int32_t awaited_trips(smem_addr memory, uint32_t tiles)
{
    const work_ring work = work_ring_after(memory, tiles);
    const smem_addr slot = work.slots + work.slot * 32u;
    uint32_t high[4];
    int32_t trips;
    smem_load_u32x4(slot + 16u, high);
    trips = ((int32_t)(high[3] - high[2]) + UNROLL - 1) / UNROLL;
    trips = (int32_t)smem_load_u32(slot) < 0 ? -1 : trips;
    return (int32_t)shuffle_u32((uint32_t)trips, 0);
}

/* Waits for the next tile, once; its trips. */
HB_DEVICE int32_t next_trips(smem_addr memory, uint32_t tiles)
{
    const work_ring work = work_ring_after(memory, tiles);
    mbarrier_wait(work_full(&work), work.parity);
    return awaited_trips(memory, tiles);
}

/* Takes the tile that next_trips() has seen.  After its sum, so that it costs no registers before.
 */
HB_DEVICE work_item take_summed(smem_addr memory, uint32_t tiles)
{
    const work_ring work = work_ring_after(memory, tiles);
    const smem_addr slot = work.slots + work.slot * 32u;
    uint32_t low[4], high[4];
    work_item item;
    smem_load_u32x4(slot, low);
    smem_load_u32x4(slot + 16u, high);
    warp_sync(); /* all lanes have loaded before one says so */
    if (elect_one()) {
        mbarrier_arrive(work_empty(&work));
    }
    item.group = (int32_t)low[0];
    item.plane = (int32_t)low[1];
    item.row = (int32_t)low[2];
    item.row_end = (int32_t)low[3];
    item.column = (int32_t)high[0];
    item.split = (int32_t)high[1];
    item.first_block = (int32_t)high[2];
    item.end_block = (int32_t)high[3];
    return item;
}

#endif
