/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main loop of gemm_fp8_ahead.h, whose parameters it uses: chains of wgmma, one issued ahead
 * of the one that is promoted, and their scales.
 */
#ifndef HALFBYTE_KERNELS_GEMM_FP8_CHAINS_H
#define HALFBYTE_KERNELS_GEMM_FP8_CHAINS_H

#include "kernels/tile/ring.h"
#include "kernels/tile/wgmma_chain.h"

/* A consumer thread's place and its sums.  Every fragment index is a constant. */
typedef struct consumer {
    ring ahead; /* at the stage that comes next */
    smem_addr stages;
    smem_addr a_offset; /* of the warpgroup's rows in a stage */
    smem_addr scales;   /* of row g of the warp's 16, stage 0 */
    smem_addr b_scales; /* of segment 0, stage 0 */
    smem_addr stage;    /* that the chains are issued from */
    float *partial[2];
    float *acc;
} consumer;

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

/* The scales of a chain that a thread needs. */
#define CHAIN_SEGMENTS                                                                             \
    ((GEMM_CHAIN_N + SEGMENT - 9) / SEGMENT + 1) /* at most so many are touched */
typedef struct chain_scales {
    float low, high; /* of row g of the warp's 16, of row g + 8 */
    float b[CHAIN_SEGMENTS];
} chain_scales;

HB_DEVICE int first_segment(int chain)
{
    return chain * GEMM_CHAIN_N / SEGMENT;
}

HB_DEVICE int end_segment(int chain)
{
    return (chain * GEMM_CHAIN_N + chain_columns(chain) - 1) / SEGMENT + 1;
}

/* Before the wait for the chain: beside wgmma's operands a load takes 100 cycles and more. */
HB_DEVICE void load_scales(const consumer *c, int chain, chain_scales *to)
{
    const uint32_t at = stage_before(c, 1) * SCALE_BYTES;
    const int first = first_segment(chain);
    int i;
    if (chain == 0) {
        to->low = smem_load_f32(c->scales + at);
        to->high = smem_load_f32(c->scales + at + 32u);
    }
    HB_UNROLL
    for (i = first; i < end_segment(chain); i++) {
        to->b[i - first] = smem_load_f32(c->b_scales + at + (uint32_t)i * 4u);
    }
}

/* acc = fma_rn(partial, scale of A * scale of B, acc). */
HB_DEVICE void promote(float *acc, int chain, const float *partial, const chain_scales *scales)
{
    const int first = chain * GEMM_CHAIN_N;
    const float *sums = partial + (first - chain_start(chain)) / 2;
    float low = 0.0f, high = 0.0f;
    int i;
    acc += first / 2;
    HB_UNROLL
    for (i = 0; i < chain_columns(chain) / 2; i += 4) {
        const int column = first + i * 2;
        if (i == 0 || column % SEGMENT == 0) {
            const float b = scales->b[column / SEGMENT - first_segment(chain)];
            low = mul_rn(scales->low, b);
            high = mul_rn(scales->high, b);
        }
        acc[i + 0] = fma_rn(sums[i + 0], low, acc[i + 0]);
        acc[i + 1] = fma_rn(sums[i + 1], low, acc[i + 1]);
        acc[i + 2] = fma_rn(sums[i + 2], high, acc[i + 2]);
        acc[i + 3] = fma_rn(sums[i + 3], high, acc[i + 3]);
    }
}

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
            load_scales(c, chain, &scales);
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
            promote(c->acc, chain, c->partial[q % 2], &scales);
        }
    }
}

/* One block.  With three chains the last one has the partial accumulator that the next block's
 * first one needs. */
HB_DEVICE void block_alone(consumer *c, bool more)
{
#if GEMM_LAST_CHAIN_N == 0
    blocks_ahead(c, 1, more);
#else
    chain_scales scales;
    load_scales(c, 0, &scales);
    wgmma_wait(0);
    issue(c, 1, c->partial[1]);
    promote(c->acc, 0, c->partial[0], &scales);
    load_scales(c, 1, &scales);
    wgmma_wait(0);
    issue(c, 2, c->partial[0]);
    promote(c->acc, 1, c->partial[1], &scales);
    load_scales(c, 2, &scales);
    wgmma_wait(0);
    next_stage(c, more);
    ring_release_loaded(&c->ahead, stage_before(c, 2));
    promote(c->acc, 2, c->partial[0], &scales);
    issue(c, 0, c->partial[0]);
#endif
}

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
    HB_NO_UNROLL
    for (; left > 0; left--) {
        block_alone(c, more || left > 1);
    }
}

#endif
