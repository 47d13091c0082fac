/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP8 GEMM with block scales, for few tokens: D = A * B^T, A scaled 1x128, B scaled 128x128.
 *
 * With few tokens the time is that of reading the weights, so the weights take the side of the
 * tensor core that always has 64 rows and the tokens the other, and all the design is about bytes
 * in flight: a stage is 16 KB of weights, a block has as many stages as shared memory holds, and
 * one warpgroup is enough for the arithmetic.
 *
 *                 tokens ->                one block: 64 rows of B x TILE_TOKENS rows of A at a
 * time
 *               +-------------+
 *    rows of B  | 64          |            warps 0 .. 3   consumer: accumulate, promote, store D^T
 *    |          +-------------+            warp 4         producer: one thread issues all copies
 *    v                                     warp 5         scales: fetches them, 4 bytes a copy
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME         name of the kernel: that of the instance file and of its row in kernels.def
 * *   GEMM_TILE_TOKENS  8, 16, 32 or 64
 *   GEMM_STAGES       stages of the ring: shared memory is GEMM_SMEM_BYTES <= 232,448
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES, for each of its two k blocks in turn:
 *                                  B tile (64, 128) e4m3, 128-byte swizzle              8,192 bytes
 *                                  A tile (TILE_TOKENS, 128) e4m3, 128-byte swizzle
 *   GEMM_STAGES * STAGE_BYTES + s * SCALE_BYTES, for each of the two k blocks in turn:
 *                                  scales of A for the tile's tokens, then of B for its rows
 *   after them                     barriers of the ring
 *
 * SCALES and WAITS as in gemm_fp8_pipelined.h: block b + 1 is issued before block b is promoted,
 * into the other of two partial accumulators; a stage is released when its second block is
 * promoted, since the promotion loads the scales.
 *
 * RESULT: docs/numerics.md sections 4 to 6, the same bits as every other kernel: which operand is
 * on which side of the tensor core changes nothing, since the product of two scales commutes.
 */
#include "kernels/gemm_fp8_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/ring.h"

#ifndef GEMM_NAME
#error "define GEMM_NAME"
#endif
#if !defined(GEMM_TILE_TOKENS) || GEMM_TILE_TOKENS % 8 != 0 || GEMM_TILE_TOKENS > 64
#error "define GEMM_TILE_TOKENS as 8, 16, 32 or 64"
#endif
#ifndef GEMM_STAGES
#error "define GEMM_STAGES"
#endif

#define TILE_TOKENS GEMM_TILE_TOKENS
#define TILE_ROWS 64 /* of B: columns of D */
#define BLOCK_K 128
#define STAGE_BLOCKS 2
#define B_BYTES (TILE_ROWS * BLOCK_K)
#define A_BYTES (TILE_TOKENS * BLOCK_K)
#define BLOCK_BYTES (B_BYTES + A_BYTES)
#define STAGE_BYTES (STAGE_BLOCKS * BLOCK_BYTES)
#define CONSUMER_WARPS 4
#define GEMM_THREADS (CONSUMER_WARPS * 32 + 64)
#define BLOCK_SCALE_BYTES ((TILE_TOKENS + 4) * 4)
#define SCALE_BYTES (STAGE_BLOCKS * BLOCK_SCALE_BYTES)
#define GEMM_SMEM_BYTES (1024 + GEMM_STAGES * (STAGE_BYTES + SCALE_BYTES) + RING_BYTES(GEMM_STAGES))
#define FRAGMENT (TILE_TOKENS / 2)
#define UNROLL_BLOCKS 8 /* k blocks a trip of the main loop */

#if GEMM_SMEM_BYTES > 232448
#error "too many stages"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WGMMA JOIN(wgmma_e4m3_ss_n, GEMM_TILE_TOKENS)

HB_DEVICE uint32_t tiles_tokens(const gemm_fp8_params *p)
{
    return ((uint32_t)p->m + TILE_TOKENS - 1) / TILE_TOKENS;
}

HB_DEVICE uint32_t tiles_all(const gemm_fp8_params *p)
{
    return tiles_tokens(p) * (((uint32_t)p->n + TILE_ROWS - 1) / TILE_ROWS);
}

/* One thread: keeps the ring full.  The last stage may hold one block alone; its other half is read
 * outside the tensors, so it is zeros, costs no memory traffic and still counts its bytes. */
HB_DEVICE void produce(const gemm_fp8_params *p, smem_addr stages, ring r)
{
    uint32_t tile;
    int32_t block, i;
    if (p->k_blocks == 0) {
        return; /* the maps are empty too */
    }
    tma_prefetch_map(&p->a);
    tma_prefetch_map(&p->b);
    for (tile = block_index(); tile < tiles_all(p); tile += block_count()) {
        const int32_t token = (int32_t)(tile % tiles_tokens(p) * TILE_TOKENS);
        const int32_t row = (int32_t)(tile / tiles_tokens(p) * TILE_ROWS);
        for (block = 0; block < p->k_blocks; block += STAGE_BLOCKS) {
            const smem_addr stage = stages + r.stage * STAGE_BYTES;
            const smem_addr full = ring_acquire(&r, STAGE_BYTES);
            HB_UNROLL
            for (i = 0; i < STAGE_BLOCKS; i++) {
                const smem_addr at = stage + (uint32_t)i * BLOCK_BYTES;
                const int32_t k = (block + i) * BLOCK_K;
                tma_load_2d_hint(at, &p->b, full, k, row, L2_EVICT_FIRST);
                tma_load_2d_hint(at + B_BYTES, &p->a, full, k, token, L2_EVICT_LAST);
            }
            ring_advance(&r);
        }
    }
}

/* One warp: the scales of every block, as far ahead as the ring is long.  A tile's 64 rows of B lie
 * in one block of 128. */
HB_DEVICE void produce_scales(const gemm_fp8_params *p, smem_addr scales, ring r)
{
    const int32_t lane = (int32_t)lane_index();
    uint32_t tile;
    int32_t block, i, t;
    for (tile = block_index(); tile < tiles_all(p); tile += block_count()) {
        const int32_t token = (int32_t)(tile % tiles_tokens(p) * TILE_TOKENS);
        const int32_t row = (int32_t)(tile / tiles_tokens(p) * TILE_ROWS);
        const float *a = p->a_scale + token * p->a_scale_stride_m;
        const float *b = p->b_scale + row / 128 * p->b_scale_stride_n;
        for (block = 0; block < p->k_blocks; block += STAGE_BLOCKS) {
            ring_wait_empty(&r);
            for (i = 0; i < STAGE_BLOCKS && block + i < p->k_blocks; i++) {
                const smem_addr to =
                    scales + r.stage * SCALE_BYTES + (uint32_t)i * BLOCK_SCALE_BYTES;
                /* Tokens past the end have no scale; their sums are never stored. */
                for (t = lane; t < TILE_TOKENS && token + t < p->m; t += 32) {
                    cp_async_4(to + (uint32_t)t * 4u, a + t * p->a_scale_stride_m);
                }
                if (lane == 0) {
                    cp_async_4(to + TILE_TOKENS * 4u, b);
                }
                a += p->a_scale_stride_k;
                b += p->b_scale_stride_k;
            }
            cp_async_mbarrier_arrive_noinc(r.full + r.stage * 8u);
            ring_advance(&r);
        }
    }
}

/* partial (64, TILE_TOKENS) = B (64, 128) * A^T, a chain of four instructions from +0. */
HB_DEVICE void issue(float *partial, smem_addr block)
{
    const uint64_t desc_b = wgmma_desc(block, 0, 1024, SWIZZLE_128B);
    const uint64_t desc_a = wgmma_desc(block + B_BYTES, 0, 1024, SWIZZLE_128B);
    int step;
    wgmma_fence();
    HB_UNROLL
    for (step = 0; step < BLOCK_K / 32; step++) {
        WGMMA(partial, wgmma_desc_advance(desc_b, (uint32_t)step * 32u),
              wgmma_desc_advance(desc_a, (uint32_t)step * 32u), step != 0);
    }
    wgmma_commit();
}

/*
 * acc = fma_rn(partial, scale of A * scale of B, acc): of four elements, 0 and 2 belong to the
 * first token of a pair, 1 and 3 to the second.  scales: shared address of those of the block;
 * `pair`: byte offset of the thread's first pair of tokens.
 */
HB_DEVICE void promote(float *acc, const float *partial, smem_addr scales, uint32_t pair)
{
    const float rows = smem_load_f32(scales + TILE_TOKENS * 4u);
    int i;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i += 4) {
        uint32_t tokens[2];
        float first, second;
        smem_load_u32x2(scales + pair + (uint32_t)i * 8u, tokens);
        first = mul_rn(f32_of_bits(tokens[0]), rows);
        second = mul_rn(f32_of_bits(tokens[1]), rows);
        acc[i + 0] = fma_rn(partial[i + 0], first, acc[i + 0]);
        acc[i + 1] = fma_rn(partial[i + 1], second, acc[i + 1]);
        acc[i + 2] = fma_rn(partial[i + 2], first, acc[i + 2]);
        acc[i + 3] = fma_rn(partial[i + 3], second, acc[i + 3]);
    }
}

/*
 * A consumer thread's place: the stage that it issues from (`ahead`), the one that it promotes from
 * and gives back (`behind`), its accumulators.  Even blocks use partial[0], odd ones partial[1].
 */
typedef struct consumer {
    ring ahead;
    smem_addr stages;
    smem_addr stage; /* that `ahead` was at when it last moved */
    smem_addr scales;
    uint32_t pair;
    uint32_t behind;
    float *partial[2];
    float *acc;
} consumer;

/* Waits for the next stage and issues its even block. */
HB_DEVICE void issue_even(consumer *c)
{
    c->stage = c->stages + c->ahead.stage * STAGE_BYTES;
    ring_wait_full(&c->ahead);
    ring_advance(&c->ahead);
    issue(c->partial[0], c->stage);
}

HB_DEVICE void issue_odd(consumer *c)
{
    issue(c->partial[1], c->stage + BLOCK_BYTES);
}

HB_DEVICE void promote_block(consumer *c, uint32_t odd)
{
    promote(c->acc, c->partial[odd], c->scales + c->behind * SCALE_BYTES + odd * BLOCK_SCALE_BYTES,
            c->pair);
}

HB_DEVICE void release(consumer *c)
{
    ring_release_loaded(&c->ahead, c->behind);
    c->behind = c->behind + 1 == c->ahead.stages ? 0 : c->behind + 1;
}

/* Sums of one tile.  Begins and ends with no chain in flight. */
HB_DEVICE void sum_tile(const gemm_fp8_params *p, consumer *c)
{
    int32_t block = 0;
    int u;
    issue_even(c);
    HB_NO_UNROLL
    for (; block + UNROLL_BLOCKS < p->k_blocks; block += UNROLL_BLOCKS) {
        HB_UNROLL
        for (u = 0; u < UNROLL_BLOCKS; u += 2) {
            if (u == 0) {
                wgmma_wait(0); /* the chain from before the loop's edge: see WAITS */
                issue_odd(c);
            } else {
                issue_odd(c);
                wgmma_wait(1);
            }
            promote_block(c, 0);
            issue_even(c);
            wgmma_wait(1);
            promote_block(c, 1);
            release(c);
        }
    }
    HB_NO_UNROLL
    for (; block + 2 < p->k_blocks; block += 2) {
        wgmma_wait(0);
        issue_odd(c);
        promote_block(c, 0);
        wgmma_wait(0);
        issue_even(c);
        promote_block(c, 1);
        release(c);
    }
    /* The last one or two blocks. */
    wgmma_wait(0);
    if (block + 1 < p->k_blocks) {
        issue_odd(c);
        promote_block(c, 0);
        wgmma_wait(0);
        promote_block(c, 1);
    } else {
        promote_block(c, 0);
    }
    release(c);
}

/* D[token, column]: the accumulators are its transpose. */
HB_DEVICE void store_one(const gemm_fp8_params *p, int32_t token, int32_t column, float x)
{
    if (token < p->m && column < p->n) {
        global_store_u16(p->d + (int64_t)token * p->ldd + column, cvt_bf16(x));
    }
}

HB_DEVICE void consume(const gemm_fp8_params *p, smem_addr stages, smem_addr scales, ring r)
{
    FRAGMENT_F32(even, FRAGMENT);
    FRAGMENT_F32(odd, FRAGMENT);
    FRAGMENT_F32(acc, FRAGMENT);
    const uint32_t thread = thread_index();
    const int32_t row_in_tile = (int32_t)(thread / 32u * 16u + thread % 32u / 4u);
    const int32_t token_in_tile = (int32_t)(thread % 4u * 2u);
    consumer c;
    uint32_t tile;
    int i;
    c.ahead = r;
    c.stages = stages;
    c.stage = stages;
    c.scales = scales;
    c.pair = thread % 4u * 8u;
    c.behind = 0;
    c.partial[0] = even;
    c.partial[1] = odd;
    c.acc = acc;
    for (tile = block_index(); tile < tiles_all(p); tile += block_count()) {
        const int32_t token = (int32_t)(tile % tiles_tokens(p) * TILE_TOKENS) + token_in_tile;
        const int32_t column = (int32_t)(tile / tiles_tokens(p) * TILE_ROWS) + row_in_tile;
        HB_UNROLL
        for (i = 0; i < FRAGMENT; i++) {
            acc[i] = 0.0f;
        }
        if (p->k_blocks > 0) {
            sum_tile(p, &c);
        }
        HB_UNROLL
        for (i = 0; i < FRAGMENT; i += 4) {
            store_one(p, token + i * 2, column, acc[i + 0]);
            store_one(p, token + i * 2 + 1, column, acc[i + 1]);
            store_one(p, token + i * 2, column + 8, acc[i + 2]);
            store_one(p, token + i * 2 + 1, column + 8, acc[i + 3]);
        }
    }
}

KERNEL(GEMM_NAME, gemm_fp8_params, p, GEMM_THREADS)
{
    const smem_addr stages = smem_base();
    const smem_addr scales = stages + GEMM_STAGES * STAGE_BYTES;
    ring r = ring_at(scales + GEMM_STAGES * SCALE_BYTES, GEMM_STAGES);
    if (thread_index() == 0) {
        ring_init(&r, 1 + 32, CONSUMER_WARPS);
    }
    block_sync();
    grid_dependency_wait();
    if (warp_index() == CONSUMER_WARPS) {
        if (elect_one()) {
            produce(p, stages, r);
        }
    } else if (warp_index() == CONSUMER_WARPS + 1) {
        produce_scales(p, scales, r);
    } else {
        consume(p, stages, scales, r);
    }
}
