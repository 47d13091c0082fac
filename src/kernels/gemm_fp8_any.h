/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP8 GEMM, any scales, dense and grouped: D = epilogue(A * B^T).
 *
 * Written for clarity, as the pattern of the other kernels: every rule that keeps an asynchronous
 * kernel right stands beside the line that obeys it.  It serves every FP8 problem; the others are
 * faster at theirs.
 *
 *          n  ->                       one block: TILE_M x TILE_N of D at a time, persistent
 *        +---------+
 *    m   | 64 rows | consumer 0        warps 4 .. 7     accumulate in registers, promote, store
 *    |   +---------+
 *    v   | 64 rows | consumer 1        warps 8 .. 11
 *        +---------+
 *          producer                    warp 0: one lane issues the copies of A and B
 *          scales                      warp 1: fetches the scales, 4 bytes a copy
 *          scheduler                   warp 2: says which tile is next (3 idle)
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME     name of the kernel: that of the instance file and of its row in kernels.def
 *   GEMM_STAGES   stages of the ring, 3 .. 6: shared memory is GEMM_SMEM_BYTES <= 232,448
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES     A tile (TILE_M, 128) e4m3, 128-byte swizzle      16,384 bytes
 *                                  B tile (TILE_N, 128) e4m3, 128-byte swizzle      16,384 bytes
 *   behind the stages              GEMM_STAGES x TILE_M scales of A
 *                                  GEMM_STAGES x TILE_N scales of B (128X128: the first counts)
 *                                  barriers of the ring, work items
 *
 * RESULT: docs/numerics.md sections 4 to 6: per k block a chain of four wgmma from +0, then
 * acc = fma_rn(partial, mul_rn(sa, sb), acc).  What lies outside A and B is zero, which is neutral;
 * a tile of A may reach into the next group's rows, whose sums are not stored.
 */
#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/epilogue.h"

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
#define SCALES_BYTES ((TILE_M + TILE_N) * 4)
#define GEMM_SMEM_BYTES                                                                            \
    (1024 + GEMM_STAGES * (STAGE_BYTES + SCALES_BYTES) + RING_BYTES(GEMM_STAGES) + WORK_BYTES)

/* The pool of 3 x 168 registers a thread, shared out by need: 40 + 2 x 232. */
#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS 232

#define CHAIN_COLUMNS TILE_N

#include "kernels/tile/producers.h"
#include "kernels/tile/wgmma_chain.h"

/* Where things lie in shared memory. */
typedef struct layout {
    smem_addr stages;
    smem_addr a_scales;
    smem_addr b_scales;
    smem_addr ring;
    smem_addr work;
} layout;

HB_DEVICE layout layout_of_block(void)
{
    layout at;
    at.stages = smem_base();
    at.a_scales = at.stages + GEMM_STAGES * STAGE_BYTES;
    at.b_scales = at.a_scales + GEMM_STAGES * TILE_M * 4;
    at.ring = at.b_scales + GEMM_STAGES * TILE_N * 4;
    at.work = at.ring + RING_BYTES(GEMM_STAGES);
    return at;
}

/* One warp: the scales of every block, as far ahead as the ring is long. */
HB_DEVICE void produce_scales(const gemm_params *p, const layout *at)
{
    ring r = ring_at(at->ring, GEMM_STAGES);
    work_ring work = work_ring_at(at->work);
    work_item item;
    int32_t block;
    while (work_take(&work, &item)) {
        const uint32_t columns = p->b_scale.mn_shift == 0 ? TILE_N : 1;
        for (block = item.first_block; block < item.end_block; block++) {
            ring_wait_empty(&r);
            scales_copy(&p->a_scale, scales_of_block(&p->a_scale, item.plane, block),
                        at->a_scales + r.stage * (TILE_M * 4), item.row, 1, TILE_M, item.row_end);
            scales_copy(&p->b_scale, scales_of_block(&p->b_scale, item.group, block),
                        at->b_scales + r.stage * (TILE_N * 4), item.column, 1, columns, p->n);
            cp_async_mbarrier_arrive_noinc(r.full + r.stage * 8u);
            ring_advance(&r);
        }
    }
}

/*
 * acc[i] = fma_rn(partial[i], scale, acc[i]): of four elements, 0 and 1 belong to row g of the
 * warp's 16, 2 and 3 to row g + 8.  b_scales: of the tile's columns; `step`: 4 for one a column, 0
 * for one in all; pair: this thread's first column.
 */
HB_DEVICE void promote(float *acc, const float *partial, float low, float high, smem_addr b_scales,
                       uint32_t pair, uint32_t step)
{
    int i;
    HB_UNROLL
    for (i = 0; i < TILE_N / 2; i += 4) {
        const smem_addr even = b_scales + (pair + (uint32_t)i * 2u) * step;
        const float s0 = smem_load_f32(even), s1 = smem_load_f32(even + step);
        acc[i + 0] = fma_rn(partial[i + 0], mul_rn(low, s0), acc[i + 0]);
        acc[i + 1] = fma_rn(partial[i + 1], mul_rn(low, s1), acc[i + 1]);
        acc[i + 2] = fma_rn(partial[i + 2], mul_rn(high, s0), acc[i + 2]);
        acc[i + 3] = fma_rn(partial[i + 3], mul_rn(high, s1), acc[i + 3]);
    }
}

/* A warpgroup: its 64 rows of every tile of the block. */
HB_DEVICE void consume(const gemm_params *p, const layout *at, uint32_t consumer)
{
    FRAGMENT_F32(partial, TILE_N / 2);
    FRAGMENT_F32(acc, TILE_N / 2);
    const uint32_t thread = thread_index() % 128u;
    const uint32_t row = consumer * 64u + thread / 32u * 16u + thread % 32u / 4u;
    const uint32_t pair = thread % 4u * 2u;
    const uint32_t b_step = p->b_scale.mn_shift == 0 ? 4u : 0u;
    ring r = ring_at(at->ring, GEMM_STAGES);
    work_ring work = work_ring_at(at->work);
    work_item item;
    int32_t left;
    int i;
    while (work_take(&work, &item)) {
        /* By way of a shuffle: the ring's state is then the same for all lanes to the compiler too.
         */
        left = (int32_t)shuffle_u32((uint32_t)(item.end_block - item.first_block), 0);
        HB_UNROLL
        for (i = 0; i < TILE_N / 2; i++) {
            acc[i] = 0.0f;
        }
        HB_NO_UNROLL
        for (; left > 0; left--) {
            const smem_addr stage = at->stages + r.stage * STAGE_BYTES;
            const smem_addr a_scales = at->a_scales + r.stage * (TILE_M * 4u) + row * 4u;
            ring_wait_full(&r);
            wgmma_fence(); /* partial was read by the promotion before */
            chain_issue(partial, stage + consumer * (64u * BLOCK_K), stage + A_BYTES);
            wgmma_commit();
            wgmma_wait(0); /* before partial is read, and before the stage is given back */
            promote(acc, partial, smem_load_f32(a_scales), smem_load_f32(a_scales + 32u),
                    at->b_scales + r.stage * (TILE_N * 4u), pair, b_step);
            ring_release_loaded(&r, r.stage);
            ring_advance(&r);
        }
        epilogue(p, &item, acc, TILE_N / 2, item.row + (int32_t)row, item.column + (int32_t)pair,
                 false);
    }
}

KERNEL(GEMM_NAME, gemm_params, p, GEMM_THREADS)
{
    const layout at = layout_of_block();
    const uint32_t warp = warp_index();
    if (thread_index() == 0) {
        const ring r = ring_at(at.ring, GEMM_STAGES);
        ring_init(&r, 1 + 32, CONSUMER_WARPS);
        work_ring_init(at.work, CONSUMER_WARPS + 2);
    }
    scales_prepare(&p->a_scale, at.a_scales, GEMM_STAGES * TILE_M, thread_index(), GEMM_THREADS);
    scales_prepare(&p->b_scale, at.b_scales, GEMM_STAGES * TILE_N, thread_index(), GEMM_THREADS);
    gemm_begin(p);
    if (warp >= 4) {
        setmaxnreg_inc(CONSUMER_REGISTERS);
        consume(p, &at, warp / 4u - 1u);
        return;
    }
    setmaxnreg_dec(PRODUCER_REGISTERS);
    if (warp == 0) {
        produce_tiles(p, at.stages, ring_at(at.ring, GEMM_STAGES), work_ring_at(at.work), false);
    } else if (warp == 1) {
        produce_scales(p, &at);
    } else if (warp == 2) {
        work_schedule(p, TILE_M, TILE_N, work_ring_at(at.work));
    }
}
