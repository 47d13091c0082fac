/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warps of gemm_w4a8_expand.h that fill the ring: one says which tiles are the block's and
 * issues the copies, one fetches scales, two expand the weights.  The kernel defines the macros.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_EXPAND_WARPS_H
#define HALFBYTE_KERNELS_GEMM_W4A8_EXPAND_WARPS_H

#include "kernels/gemm_w4a8_scales.h"
#include "kernels/gemm_w4a8_tiles.h"
#include "kernels/tile/int4_atom.h"
#include "kernels/tile/ring.h"

/* Where things lie in shared memory. */
typedef struct layout {
    smem_addr stages;
    smem_addr staging;
    smem_addr scales;
    smem_addr factors;
    smem_addr work;
    smem_addr ring;
    smem_addr packed; /* barriers */
} layout;

HB_DEVICE layout layout_of_block(void)
{
    layout at;
    at.stages = smem_base();
    at.staging = at.stages + GEMM_STAGES * STAGE_BYTES; /* a multiple of 1,024 */
    at.scales = at.staging + PANELS * STAGING_BYTES;
    at.factors = at.scales + GEMM_STAGES * SCALE_BYTES;
    at.work = at.factors + WORK_SLOTS * FACTOR_BYTES;
    at.ring = at.work + WORK_BYTES;
    at.packed = at.ring + RING_BYTES(GEMM_STAGES);
    return at;
}

/* Factors of the tokens of the item in that slot, or behind so many others. */
HB_DEVICE smem_addr factors_of(const layout *at, uint32_t slot)
{
    return at->factors + slot % WORK_SLOTS * FACTOR_BYTES;
}

/* ---- the producer ---------------------------------------------------------------------------- */

/* One stage: the atoms, and the tokens of k block `block`.  One lane calls. */
HB_DEVICE void load_stage(const gemm_params *p, const layout *at, const ring *r,
                          const uint8_t *atoms, uint32_t panels, const token_rows *tokens,
                          int32_t block)
{
    const smem_addr stage = at->stages + r->stage * STAGE_BYTES;
    const smem_addr packed = at->packed + r->stage * 8u, full = r->full + r->stage * 8u;
    uint32_t panel;
    mbarrier_arrive_expect_tx(packed, panels * ATOM_BYTES);
    for (panel = 0; panel < panels; panel++) {
        bulk_load_hint(stage + panel * PANEL_BYTES + (PANEL_BYTES - ATOM_BYTES),
                       atoms + (int64_t)panel * p->k_blocks * ATOM_BYTES, ATOM_BYTES, packed,
                       p->b_policy);
    }
    mbarrier_arrive_expect_tx(full, BLOCK_K * (uint32_t)p->a_box_rows);
    tma_load_3d_hint(stage + A_BYTES, &p->a, full, block * BLOCK_K - p->k_offset, tokens->row,
                     tokens->plane, L2_EVICT_LAST);
}

/* The item is given back, and the next is to come.  Its slot is not written again before the
 * consumers have given it back too, who wait for what all lanes of this warp have yet to do. */
HB_DEVICE void item_done(work_ring *work)
{
    if (elect_one()) {
        mbarrier_arrive(work_empty(work));
    }
    work_ring_advance(work);
}

/* The k blocks of the item that comes next in `work`; past the last, its weights again.  issues:
 * for one lane. */
HB_DEVICE void produce_tile(const gemm_params *p, const layout *at, ring *r, work_ring *work,
                            bool issues)
{
    const int64_t panels = (p->n + 63) / 64;
    scale_tile tile;
    int32_t block;
    if (scale_tile_next(work, 0, &tile)) {
        const uint8_t *atoms =
            p->b_packed + (tile.group * panels + tile.column / 64) * p->k_blocks * ATOM_BYTES;
        const uint32_t exist = p->n - tile.column > 64 ? PANELS : 1u;
        const token_rows tokens = token_rows_of(&tile);
        HB_NO_UNROLL
        for (block = 0; issues && block < padded_blocks(0, p->k_blocks); block++) {
            ring_wait_empty(r);
            load_stage(p, at, r, atoms, exist, &tokens, block);
            atoms += block + 1 < p->k_blocks ? ATOM_BYTES : 0u;
            ring_advance(r);
        }
    }
    warp_sync(); /* the other lanes, too, have read the item */
    item_done(work);
}

/* One warp: says which tiles are the block's, one tile ahead, and keeps the ring full through all
 * of them without a pause. */
HB_DEVICE void produce(const gemm_params *p, const layout *at)
{
    ring r = ring_at(at->ring, GEMM_STAGES);
    work_ring said = work_ring_at(at->work), done = said;
    work_walk walk = work_walk_before(block_index());
    work_item item;
    const bool issues = elect_one();
    bool first = true, more;
    do {
        more = work_walk_next(p, TILE_TOKENS, TILE_ROWS, &walk, &item);
        work_put(&said, &item);
        if (!first) {
            produce_tile(p, at, &r, &done, issues);
        }
        first = false;
    } while (more);
}

/* ---- scales ---------------------------------------------------------------------------------- */

/* Loads the scales of k block `block`, if it exists, as they are stored, and moves on. */
HB_DEVICE void load_block_scales(const gemm_params *p, scale_rows *rows, int32_t block,
                                 uint32_t raw[TURN_LOADS])
{
    const gemm_scales *s = &p->b_scale;
    const int64_t here[TURN_GROUPS] = {0};
    const int64_t step = block % 4 == 3 ? s->stride_k4 - 3 * s->stride_k : s->stride_k;
    int i;
    if (block >= p->k_blocks) {
        return;
    }
    load_typed(p, rows, here, raw);
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        rows->row[i] += step * scale_bytes(s);
    }
}

/* One warp: scales of all rows, loaded while the stage of the block before is not yet free. */
HB_DEVICE void produce_row_scales(const gemm_params *p, const layout *at)
{
    ring r = ring_at(at->ring, GEMM_STAGES);
    work_ring work = work_ring_at(at->work);
    scale_tile tile;
    while (scale_tile_next(&work, 0, &tile)) {
        scale_rows rows = scale_rows_of(p, &tile);
        uint32_t raw[TURN_LOADS] = {0};
        int32_t block;
        item_done(&work);
        load_block_scales(p, &rows, 0, raw);
        HB_NO_UNROLL
        for (block = 0; block < padded_blocks(0, p->k_blocks); block++) {
            widen_scales(p, raw);
            ring_wait_empty(&r);
            store_scales(p, block, p->k_blocks, at->scales + r.stage * SCALE_BYTES, raw, false);
            load_block_scales(p, &rows, block + 1, raw);
            warp_sync();
            if (elect_one()) {
                mbarrier_arrive(r.full + r.stage * 8u); /* for the stores of all lanes */
            }
            ring_advance(&r);
        }
    }
}

/* ---- the expanding warps --------------------------------------------------------------------- */

#define STRIP_BYTES 2048u      /* 16 rows of a panel: what a warp of a warpgroup multiplies */
#define STRIP_WORDS_BYTES 512u /* of them packed, in either half of the atom */
#define UNITS 8                /* half strips, 16 rows x 64 k, of a panel: two of each strip */
#define UNITS_AHEAD 4
#if UNITS_AHEAD < UNITS / 2
#error "words of the second half would be overwritten before they are loaded"
#endif

/* The lane's words of unit u: those of a strip in one half of the atom.  mine: of unit 0. */
HB_DEVICE void unit_load(smem_addr mine, int u, uint32_t words[4])
{
    smem_load_u32x4(
        mine + (uint32_t)(u / 2) * STRIP_WORDS_BYTES + (uint32_t)(u % 2) * (ATOM_BYTES / 2), words);
}

/*
 * Fragments to unit u of the panel.  Four registers are the lane's share of the four 8 x 16-byte
 * matrices of a k32 step: rows 0 to 7 and 8 to 15, first 16 bytes and last.
 */
HB_DEVICE void unit_store(smem_addr panel, int u, const uint32_t a[8])
{
    const uint32_t lane = lane_index();
    const smem_addr row = panel + (uint32_t)(u / 2) * STRIP_BYTES + lane % 16u * 128u;
    const uint32_t chunk = (lane / 16u ^ lane % 8u) * 16u;
    int s;
    HB_UNROLL
    for (s = 0; s < 2; s++) {
        stmatrix_x4(row + (chunk ^ (uint32_t)(u % 2 * 2 + s) * 32u), a[4 * s], a[4 * s + 1],
                    a[4 * s + 2], a[4 * s + 3]);
    }
}

/*
 * A panel, in place.  f3: a constant.  Strips 0 and 1 become the half where no word lies; strips 2
 * and 3 the half where the words are, when every lane has loaded its last.
 *
 * Words are asked for UNITS_AHEAD units ahead.  One set of fragments: a store then waits for the
 * one before it.  Stores in a row keep the tensor core from its operands: with eight 12 % slower.
 */
HB_DEVICE void expand_panel(smem_addr panel, bool f3)
{
    const smem_addr mine = panel + (PANEL_BYTES - ATOM_BYTES) + lane_index() * 16u;
    uint32_t words[UNITS_AHEAD][4], a[8];
    int u;
    HB_UNROLL
    for (u = 0; u < UNITS_AHEAD; u++) {
        unit_load(mine, u, words[u]);
    }
    HB_UNROLL
    for (u = 0; u < UNITS; u++) {
        atom_decode_part(words[u % UNITS_AHEAD], 0, 4, f3, a);
        if (u + UNITS_AHEAD < UNITS) {
            unit_load(mine, u + UNITS_AHEAD, words[u % UNITS_AHEAD]);
        }
        if (u == UNITS / 2) {
            warp_sync();
        }
        unit_store(panel, u, a);
    }
}

/* A panel of weights, when its words are there. */
HB_DEVICE void expand_stage(const gemm_params *p, const layout *at, const ring *r, uint32_t half)
{
    const smem_addr panel = at->stages + r->stage * STAGE_BYTES + half * PANEL_BYTES;
    mbarrier_wait(at->packed + r->stage * 8u, r->parity);
    if (p->flags & GEMM_HOLDS_MINUS8) {
        expand_panel(panel, true);
    } else {
        expand_panel(panel, false);
    }
    fence_proxy_async();
    warp_sync();
    if (elect_one()) {
        mbarrier_arrive(r->full + r->stage * 8u);
    }
}

/* A warp: panel `half` of every k block, and the tokens' factors. */
HB_DEVICE void expand(const gemm_params *p, const layout *at, uint32_t half)
{
    ring r = ring_at(at->ring, GEMM_STAGES);
    work_ring work = work_ring_at(at->work);
    scale_tile tile;
    int32_t block;
    while (scale_tile_next(&work, half, &tile)) {
        if (half == 0 && p->epilogue.row_scale.data != NULL) {
            ring_wait_empty(&r);
            store_token_factors(p, &tile, factors_of(at, work.slot) - TILE_ROWS * 4u);
        }
        item_done(&work);
        HB_NO_UNROLL
        for (block = 0; block < padded_blocks(0, p->k_blocks); block++) {
            expand_stage(p, at, &r, half);
            ring_advance(&r);
        }
    }
}

#endif
