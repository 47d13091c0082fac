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

/* The panels of 64 rows of the tile that exist. */
HB_DEVICE uint32_t panels_of(const gemm_params *p, const work_item *item)
{
    return p->n - item->column > 64 ? WARPGROUPS : 1u;
}

/* One stage, from `block` on; of its blocks, `count` exist.  The others get zeros for tokens, read
 * past the end of k, and keep the weights that are there: any word is a number. */
HB_DEVICE void load_stage(const gemm_params *p, const work_item *item, const uint8_t *weights,
                          smem_addr stage, smem_addr full, int32_t block, int32_t count)
{
    const uint32_t bytes = (uint32_t)count * ATOM_BYTES;
    uint32_t panel;
    int32_t i;
    for (panel = 0; bytes > 0 && panel < panels_of(p, item); panel++) {
        bulk_load_hint(stage + panel * PANEL_BYTES,
                       weights + ((int64_t)panel * p->k_blocks + block) * ATOM_BYTES, bytes, full,
                       L2_EVICT_FIRST);
    }
    HB_UNROLL
    for (i = 0; i < STAGE_BLOCKS; i++) {
        const int32_t k = (i < count ? block + i : p->k_blocks) * BLOCK_K - p->k_offset;
        tma_load_3d_hint(stage + WEIGHT_BYTES + (uint32_t)i * TOKEN_BYTES, &p->a, full, k,
                         item->row, item->plane, L2_EVICT_LAST);
    }
}

/* One warp, of which one lane makes the ring's barriers and issues: keeps the ring full, through
 * all tiles without a pause. */
HB_DEVICE void produce(const gemm_params *p, const layout *at)
{
    const bool issues = elect_one();
    const int64_t panels = (p->n + 63) / 64;
    ring r = ring_at(at->ring, GEMM_STAGES);
    known_work work = known_work_at(p, at->work);
    work_item item;
    int32_t i;
    if (issues) {
        ring_init(&r, 1 + SCALE_ARRIVALS + (p->a_scale.data != NULL ? 32 : 0), RING_TAKERS);
    }
    direct_begin(p, GEMM_THREADS, work.works_out);
    while (known_take(p, &work, TILE_TOKENS, TILE_ROWS, &item)) {
        const int64_t panel = item.group * panels + item.column / 64;
        const uint8_t *weights = p->b_packed + panel * p->k_blocks * ATOM_BYTES;
        const int32_t blocks = item.end_block - item.first_block;
        for (i = 0; issues && i < padded_blocks(0, blocks); i += STAGE_BLOCKS) {
            const int32_t left = blocks - i < 0 ? 0 : blocks - i;
            const int32_t count = left < STAGE_BLOCKS ? left : STAGE_BLOCKS;
            const uint32_t bytes = (uint32_t)count * ATOM_BYTES * panels_of(p, &item) +
                                   STAGE_BLOCKS * BLOCK_K * (uint32_t)p->a_box_rows;
            const smem_addr full = r.full + r.stage * 8u;
            ring_wait_empty(&r);
            fence_proxy_async(); /* the weights and the tokens there were read by ordinary loads */
            mbarrier_arrive_expect_tx(full, bytes);
            load_stage(p, &item, weights, at->stages + r.stage * STAGE_BYTES, full,
                       item.first_block + i, count);
            ring_advance(&r);
        }
        warp_sync();
    }
}

#endif
