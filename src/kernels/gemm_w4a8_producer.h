/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warp of the W4A8 kernels that brings weights and tokens.  The kernel defines `layout` and the
 * macros.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_PRODUCER_H
#define HALFBYTE_KERNELS_GEMM_W4A8_PRODUCER_H

#include "kernels/gemm_w4a8_tiles.h"
#include "kernels/tile/direct.h"
#include "kernels/tile/int4_atom.h"
#include "kernels/tile/ring.h"

/* What the copies of a tile's stages have in common. */
typedef struct stage_source {
    const uint8_t *weights; /* words of the next block of the first panel */
    int64_t panel;          /* bytes from there to the second's */
    uint32_t panels;        /* that exist */
    int32_t row, plane;     /* of A */
} stage_source;

HB_DEVICE stage_source stage_source_of(const gemm_params *p, const work_item *item)
{
    const int64_t panel = item->group * (int64_t)((p->n + 63) / 64) + item->column / 64;
    stage_source from;
    from.weights = p->b_packed + (panel * p->k_blocks + item->first_block) * ATOM_BYTES;
    from.panel = (int64_t)p->k_blocks * ATOM_BYTES;
    from.panels = p->n - item->column > 64 ? PANELS : 1u;
    from.row = item->row;
    from.plane = item->plane;
    return from;
}

/* One stage, from `block` on; of its blocks, `count` exist.  The others get zeros for tokens, read
 * past the end of k, and keep the weights that are there: any word is a number. */
HB_DEVICE void load_stage(const gemm_params *p, const stage_source *from, smem_addr stage,
                          smem_addr full, int32_t block, int32_t count)
{
    const uint32_t bytes = (uint32_t)count * ATOM_BYTES;
    int32_t i;
    mbarrier_arrive_expect_tx(full, bytes * from->panels +
                                        STAGE_BLOCKS * BLOCK_K * (uint32_t)p->a_box_rows);
    if (count > 0) {
        bulk_load_hint(stage, from->weights, bytes, full, p->b_policy);
        if (PANELS > 1 && from->panels > 1) {
            bulk_load_hint(stage + PANEL_BYTES, from->weights + from->panel, bytes, full,
                           p->b_policy);
        }
    }
    HB_UNROLL
    for (i = 0; i < STAGE_BLOCKS; i++) {
        const int32_t k = (i < count ? block + i : p->k_blocks) * BLOCK_K - p->k_offset;
        tma_load_3d_hint(stage + WEIGHT_BYTES + (uint32_t)i * TOKEN_BYTES, &p->a, full, k,
                         from->row, from->plane, L2_EVICT_LAST);
    }
}

#if SCALES_AHEAD
/*
 * Weights asked for first keep the way to memory busy for a microsecond, and the first scales would
 * come behind them.  So of the block's first tile, if it is known, this warp copies only so many
 * stages before the scale warps have asked for theirs.
 */
#define STAGES_BEFORE_SCALES (TILE_TOKENS == 16 ? 0 : 1)
#endif

/* One warp, of which one lane makes the ring's barriers and issues: keeps the ring full, through
 * all tiles without a pause.  All lanes walk along, so that what they know is the same for all to
 * the compiler too.  They meet at every stage, and behind a tile's last one in work_take(). */
HB_DEVICE void produce(const gemm_params *p, const layout *at)
{
    const bool issues = elect_one();
    ring r = ring_at(at->ring, GEMM_STAGES);
    known_work work = known_work_at(p, at->work);
    work_item item;
#if SCALES_AHEAD
    /* Stages; < 0: the scales have been asked for. */
    int32_t before = work.works_out ? STAGES_BEFORE_SCALES : -1;
#endif
    if (issues) {
        ring_init(&r, 1 + SCALE_ARRIVALS + (p->a_scale.data != NULL ? 32 : 0), RING_TAKERS);
    }
    warp_sync(); /* the other lanes wait for these barriers too */
    direct_begin(p, GEMM_THREADS, work.works_out);
    while (known_take(p, &work, TILE_TOKENS, TILE_ROWS, &item)) {
        stage_source from = stage_source_of(p, &item);
        int32_t left = item.end_block - item.first_block;
        int32_t trips = padded_blocks(0, left) / STAGE_BLOCKS;
        for (; trips > 0; trips--) {
            const int32_t count = left < STAGE_BLOCKS ? left : STAGE_BLOCKS;
#if SCALES_AHEAD
            if (before-- == 0) {
                barrier_sync(SCALES_BARRIER, SCALES_THREADS);
            }
#endif
            ring_wait_empty(&r);
            warp_sync(); /* a lane that had not waited yet would find the stage in use again */
            if (issues) {
                fence_proxy_async(); /* what is there was read by ordinary loads */
                load_stage(p, &from, at->stages + r.stage * STAGE_BYTES, r.full + r.stage * 8u,
                           item.end_block - left, count);
            }
            from.weights += STAGE_BLOCKS * ATOM_BYTES;
            left -= count;
            ring_advance(&r);
        }
    }
#if SCALES_AHEAD
    if (before >= 0) {
        barrier_sync(SCALES_BARRIER, SCALES_THREADS);
    }
#endif
}

#endif
