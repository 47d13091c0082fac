/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense FP8 GEMM: D = A * B^T, A scaled 1x128, B scaled 128x128, bf16 out.
 *
 * Written for clarity, as the pattern of the kernels to come: every rule that keeps an asynchronous
 * kernel right stands beside the line that obeys it.
 *
 *          n  ->                       one block: TILE_M x TILE_N of D at a time, persistent
 *        +---------+
 *    m   | 64 rows | consumer 0        warps 4 .. 7     accumulate in registers, promote, store
 *    |   +---------+
 *    v   | 64 rows | consumer 1        warps 8 .. 11
 *        +---------+
 *          producer                    warp 0 (1 .. 3 idle): one thread issues all copies
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME     name of the kernel: that of the instance file and of its row in kernels.def
 *   GEMM_STAGES   stages of the ring, 3 .. 6: shared memory is GEMM_SMEM_BYTES <= 232,448
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES     A tile (TILE_M, 128) e4m3, 128-byte swizzle      16,384 bytes
 *                                  B tile (TILE_N, 128) e4m3, 128-byte swizzle      16,384 bytes
 *   GEMM_STAGES * STAGE_BYTES      barriers of the ring
 *
 * RESULT: docs/numerics.md sections 4 to 6: per k block a chain of four wgmma from +0, then
 * acc = fma_rn(partial, mul_rn(sa, sb), acc).  What lies outside A and B is zero, which is neutral.
 */
#include "kernels/gemm_fp8_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/ring.h"

#ifndef GEMM_NAME
#error "define GEMM_NAME"
#endif
#if !defined(GEMM_STAGES) || GEMM_STAGES < 3 || GEMM_STAGES > 6
#error "define GEMM_STAGES as 3 .. 6"
#endif

#define TILE_M 128
#define TILE_N 128
#define BLOCK_K 128 /* bytes and e4m3 elements: one swizzled row of a tile */
#define A_BYTES (TILE_M * BLOCK_K)
#define B_BYTES (TILE_N * BLOCK_K)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define CONSUMER_WARPS 8
#define GEMM_THREADS (128 + CONSUMER_WARPS * 32)
#define GEMM_SMEM_BYTES (1024 + GEMM_STAGES * STAGE_BYTES + RING_BYTES(GEMM_STAGES))

/* The pool of 3 x 168 registers a thread, shared out by need: 40 + 2 x 232. */
#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS 232

/* Tiles in order of m first: blocks that run together read the same few columns of B. */
HB_DEVICE uint32_t tiles_m(const gemm_fp8_params *p)
{
    return ((uint32_t)p->m + TILE_M - 1) / TILE_M;
}

HB_DEVICE uint32_t tiles_all(const gemm_fp8_params *p)
{
    return tiles_m(p) * (((uint32_t)p->n + TILE_N - 1) / TILE_N);
}

/* One thread: keeps the ring full, through all tiles of the block without a pause between them. */
HB_DEVICE void produce(const gemm_fp8_params *p, smem_addr stages, ring r)
{
    uint32_t tile;
    int32_t block;
    if (p->k_blocks == 0) {
        return; /* the maps are empty too */
    }
    tma_prefetch_map(&p->a);
    tma_prefetch_map(&p->b);
    for (tile = block_index(); tile < tiles_all(p); tile += block_count()) {
        const int32_t row = (int32_t)(tile % tiles_m(p) * TILE_M);
        const int32_t column = (int32_t)(tile / tiles_m(p) * TILE_N);
        for (block = 0; block < p->k_blocks; block++) {
            const smem_addr stage = stages + r.stage * STAGE_BYTES;
            /* Boxes count whole, also where they hang over the edge. */
            const smem_addr full = ring_acquire(&r, STAGE_BYTES);
            tma_load_2d(stage, &p->a, full, block * BLOCK_K, row);
            tma_load_2d(stage + A_BYTES, &p->b, full, block * BLOCK_K, column);
            ring_advance(&r);
        }
    }
}

/* partial (64, TILE_N) = A (64, 128) * B^T (128, TILE_N), a chain of four instructions from +0. */
HB_DEVICE void multiply_block(float *partial, smem_addr a, smem_addr b)
{
    const uint64_t desc_a = wgmma_desc(a, 0, 1024, SWIZZLE_128B);
    const uint64_t desc_b = wgmma_desc(b, 0, 1024, SWIZZLE_128B);
    int step;
    wgmma_fence(); /* partial was read by the promotion before */
    HB_UNROLL
    for (step = 0; step < BLOCK_K / 32; step++) {
        wgmma_e4m3_ss_n128(partial, wgmma_desc_advance(desc_a, (uint32_t)step * 32u),
                           wgmma_desc_advance(desc_b, (uint32_t)step * 32u), step != 0);
    }
    wgmma_commit();
}

/* acc[i] = fma_rn(partial[i], scale of its row, acc[i]): of four elements, 0 and 1 belong to row g
 * of the warp's 16, 2 and 3 to row g + 8. */
HB_DEVICE void promote(float *acc, const float *partial, float scale_low, float scale_high)
{
    int i;
    HB_UNROLL
    for (i = 0; i < TILE_N / 2; i += 4) {
        acc[i + 0] = fma_rn(partial[i + 0], scale_low, acc[i + 0]);
        acc[i + 1] = fma_rn(partial[i + 1], scale_low, acc[i + 1]);
        acc[i + 2] = fma_rn(partial[i + 2], scale_high, acc[i + 2]);
        acc[i + 3] = fma_rn(partial[i + 3], scale_high, acc[i + 3]);
    }
}

/* Columns `column` and the next of row `row`, where they exist. */
HB_DEVICE void store_pair(const gemm_fp8_params *p, int32_t row, int32_t column, float x, float y)
{
    uint16_t *d = p->d + (int64_t)row * p->ldd + column;
    if (row >= p->m || column >= p->n) {
        return;
    }
    if (p->d_pairs && column + 1 < p->n) {
        global_store_u32((uint32_t *)d, cvt_bf16x2(x, y));
        return;
    }
    global_store_u16(d, cvt_bf16(x));
    if (column + 1 < p->n) {
        global_store_u16(d + 1, cvt_bf16(y));
    }
}

HB_DEVICE void store_tile(const gemm_fp8_params *p, const float *acc, int32_t row, int32_t column)
{
    int i;
    HB_UNROLL
    for (i = 0; i < TILE_N / 2; i += 4) {
        store_pair(p, row, column + i * 2, acc[i + 0], acc[i + 1]);
        store_pair(p, row + 8, column + i * 2, acc[i + 2], acc[i + 3]);
    }
}

/* A warpgroup: its 64 rows of every tile of the block. */
HB_DEVICE void consume(const gemm_fp8_params *p, smem_addr stages, ring r, uint32_t consumer)
{
    FRAGMENT_F32(partial, TILE_N / 2);
    FRAGMENT_F32(acc, TILE_N / 2);
    const uint32_t thread = thread_index() % 128u;
    const int32_t row_in_tile = (int32_t)(consumer * 64u + thread / 32u * 16u + thread % 32u / 4u);
    uint32_t tile;
    int32_t block;
    int i;
    for (tile = block_index(); tile < tiles_all(p); tile += block_count()) {
        const int32_t row = (int32_t)(tile % tiles_m(p) * TILE_M) + row_in_tile;
        const int32_t n_block = (int32_t)(tile / tiles_m(p));
        /* Rows past the end take the last row's scale; their sums are never stored. */
        const float *scale_low =
            p->a_scale + (int64_t)(row < p->m ? row : p->m - 1) * p->a_scale_stride_m;
        const float *scale_high =
            p->a_scale + (int64_t)(row + 8 < p->m ? row + 8 : p->m - 1) * p->a_scale_stride_m;
        const float *scale_b = p->b_scale + n_block * p->b_scale_stride_n;
        HB_UNROLL
        for (i = 0; i < TILE_N / 2; i++) {
            acc[i] = 0.0f;
        }
        for (block = 0; block < p->k_blocks; block++) {
            const smem_addr stage = stages + r.stage * STAGE_BYTES;
            const float sb = global_load_f32_nc(scale_b + block * p->b_scale_stride_k);
            const float low = global_load_f32_nc(scale_low + block * p->a_scale_stride_k);
            const float high = global_load_f32_nc(scale_high + block * p->a_scale_stride_k);
            ring_wait_full(&r);
            multiply_block(partial, stage + consumer * (64u * BLOCK_K), stage + A_BYTES);
            wgmma_wait(0); /* before partial is read, and before the stage is given back */
            ring_release(&r, r.stage);
            ring_advance(&r);
            promote(acc, partial, mul_rn(low, sb), mul_rn(high, sb));
        }
        store_tile(p, acc, row, n_block * TILE_N + (int32_t)(thread % 4u * 2u));
    }
}

KERNEL(GEMM_NAME, gemm_fp8_params, p, GEMM_THREADS)
{
    const smem_addr stages = smem_base();
    ring r = ring_at(stages + GEMM_STAGES * STAGE_BYTES, GEMM_STAGES);
    const uint32_t warpgroup = warp_index() / 4u;
    if (thread_index() == 0) {
        ring_init(&r, 1, CONSUMER_WARPS);
    }
    block_sync();
    if (warpgroup == 0) {
        setmaxnreg_dec(PRODUCER_REGISTERS);
        if (warp_index() == 0 && elect_one()) {
            produce(p, stages, r);
        }
    } else {
        setmaxnreg_inc(CONSUMER_REGISTERS);
        consume(p, stages, r, warpgroup - 1u);
    }
}
