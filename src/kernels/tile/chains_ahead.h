/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A main loop for many columns: chains of wgmma, one issued ahead of the one that is promoted.
 *
 * A stage of the ring is one k block: 128 rows of the side that always has 64 a warpgroup, A_BYTES,
 * and behind them TILE_N rows of the other side; rows of 128 bytes, 128-byte swizzle.
 *
 * Define before including: GEMM_CHAIN_N, GEMM_LAST_CHAIN_N, GEMM_STAGES (gemm_fp8_ahead.h says what
 * they are), CHAINS, CHAIN_COLUMNS, TILE_N, BLOCK_K, A_BYTES, STAGE_BYTES, UNROLL_BLOCKS (k blocks
 * a trip of the loop), WHOLE_TRIPS (1: all sums are of whole trips, and there is no code for the
 * rest, which takes registers), PROMOTE_APART (chain_is_issued(); it takes a register too), and
 * CHAIN_SCALES, a header with the type chain_scales and the functions load_chain_scales() and
 * promote_chain() (gemm_fp8_chain_scales.h).
 */
#ifndef HALFBYTE_KERNELS_TILE_CHAINS_AHEAD_H
#define HALFBYTE_KERNELS_TILE_CHAINS_AHEAD_H

#include "kernels/tile/ring.h"
#include "kernels/tile/wgmma_chain.h"

#if CHAINS * UNROLL_BLOCKS % 2 != 0
#error "a trip must end with the partial accumulators as it began"
#endif

/* A consumer thread's place and its sums.  Every fragment index is a constant. */
typedef struct consumer {
    ring ahead; /* at the stage that comes next */
    smem_addr stages;
    smem_addr a_offset; /* of the warpgroup's rows in a stage */
    smem_addr scales;   /* of row g of the warp's 16, stage 0 */
    smem_addr b_scales; /* FP8: of segment 0, stage 0 */
    smem_addr stage;    /* that the chains are issued from */
    float *partial[2];
    float *acc;
    const gemm_params *p;
} consumer;

/* ptxas puts the promotion behind a trip's first wait between the first instruction of the chain
 * just issued and its second, where the tensor core waits for it.  A condition that always holds
 * ends the basic block. */
HB_DEVICE bool chain_is_issued(const consumer *c)
{
    return !PROMOTE_APART || c->p->n > 0;
}

/* Moves on to the next stage, once its data are there; not `more`: there will be none. */
HB_DEVICE void next_stage(consumer *c, bool more)
{
    c->stage = c->stages + c->ahead.stage * STAGE_BYTES;
    if (more) {
        ring_wait_full(&c->ahead);
    }
    ring_advance(&c->ahead);
}

/* The stage `back` (1, 2) before the one that comes next. */
HB_DEVICE uint32_t stage_before(const consumer *c, uint32_t back)
{
    return c->ahead.stage >= back ? c->ahead.stage - back : c->ahead.stage + GEMM_STAGES - back;
}

/* Columns that a chain is promoted for. */
HB_DEVICE int chain_columns(int chain)
{
    return chain == 2 ? GEMM_LAST_CHAIN_N : GEMM_CHAIN_N;
}

/* The tile's column that a chain's first sums are of: chain 2 ends with the tile. */
HB_DEVICE int chain_start(int chain)
{
    return chain == 2 ? TILE_N - GEMM_CHAIN_N : chain * GEMM_CHAIN_N;
}

/* partial = A (64, 128) * B^T of GEMM_CHAIN_N columns: four instructions from +0. */
HB_DEVICE void issue(const consumer *c, int chain, float *partial)
{
    const smem_addr b = c->stage + A_BYTES + (uint32_t)chain_start(chain) * BLOCK_K;
    wgmma_fence();
    chain_issue(partial, c->stage + c->a_offset, b);
    wgmma_commit();
}

#include CHAIN_SCALES

/* `blocks` k blocks.  The first chain is in flight at the start, and that of the block after them
 * at the end; if there is none (not `more`), a chain over what lies in the next stage, whose sums
 * nobody reads. */
HB_DEVICE void blocks_ahead(consumer *c, int blocks, bool more)
{
    chain_scales scales;
    int u, chain;
    HB_UNROLL
    for (u = 0; u < blocks; u++) {
        HB_UNROLL
        for (chain = 0; chain < CHAINS; chain++) {
            const int q = u * CHAINS + chain;
            const bool last = chain == CHAINS - 1;
            load_chain_scales(c, chain, &scales);
            if (q == 0) {
                wgmma_wait(0);
            }
            if (last) {
                next_stage(c, u + 1 < blocks || more);
            }
            issue(c, last ? 0 : chain + 1, c->partial[(q + 1) % 2]);
            if (q != 0) {
                wgmma_wait(1);
            }
            if (last) { /* nobody of this warp reads the block's stage again */
                ring_release_loaded(&c->ahead, stage_before(c, 2));
            }
            if (q != 0 || chain_is_issued(c)) {
                promote_chain(c->acc, chain, c->partial[q % 2], &scales);
            }
        }
    }
}

#if !WHOLE_TRIPS
/* One block.  With one chain or three the last one has the partial accumulator that the next
 * block's first one needs. */
HB_DEVICE void block_alone(consumer *c, bool more)
{
#if CHAINS % 2 == 0
    blocks_ahead(c, 1, more);
#else
    chain_scales scales;
    int chain;
    HB_UNROLL
    for (chain = 0; chain < CHAINS; chain++) {
        const bool last = chain == CHAINS - 1;
        load_chain_scales(c, chain, &scales);
        wgmma_wait(0);
        if (last) {
            next_stage(c, more);
            ring_release_loaded(&c->ahead, stage_before(c, 2));
        } else {
            issue(c, chain + 1, c->partial[(chain + 1) % 2]);
        }
        promote_chain(c->acc, chain, c->partial[chain % 2], &scales);
    }
    issue(c, 0, c->partial[0]);
#endif
}
#endif

/* Sums of one tile; more: there is another one behind it. */
HB_DEVICE void sum_tile(consumer *c, int32_t blocks, bool more)
{
    int32_t left = blocks;
    int i;
    HB_UNROLL
    for (i = 0; i < TILE_N / 2; i++) {
        c->acc[i] = 0.0f;
    }
    HB_NO_UNROLL
    for (; left >= UNROLL_BLOCKS; left -= UNROLL_BLOCKS) {
        blocks_ahead(c, UNROLL_BLOCKS, more || left > UNROLL_BLOCKS);
    }
#if !WHOLE_TRIPS
    HB_NO_UNROLL
    for (; left > 0; left--) {
        block_alone(c, more || left > 1);
    }
#endif
}

#endif
