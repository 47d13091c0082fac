/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP8 GEMM for many tokens, dense and grouped: D = epilogue(A * B^T), B's scales one in 128 x 128.
 *
 * The promotion of one chain of wgmma runs under the next: a warpgroup has two partial accumulators
 * and always issues the next chain into the free one before it promotes the other, so the tensor
 * core never waits for the fp32 units (98-99.6 % of its cycles in the loop, measured; docs/notes/).
 *
 *          n  ->                            one block: 128 x TILE_N of D at a time, persistent
 *        +-----------+-----------+
 *    m   | 64 rows, consumer 0   |          warps 4 .. 7
 *    |   +-----------+-----------+
 *    v   | 64 rows, consumer 1   |          warps 8 .. 11
 *        +-----------+-----------+
 *          chain 0     chain 1              TILE_N / 2 columns each, four instructions a k block
 *          producer                         warp 0: one lane issues the copies of A and B
 *          scales                           warp 1: fetches the scales, 4 bytes a copy
 *          scheduler                        warp 2 (3 idle): says which tile is next
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME     name of the kernel: that of the instance file and of its row in kernels.def
 *   GEMM_CHAIN_N  columns of a chain: 32, 64 or 96; TILE_N is twice that
 *   GEMM_STAGES   stages of the ring: shared memory is GEMM_SMEM_BYTES <= 232,448
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES     A tile (128, 128) e4m3, 128-byte swizzle
 *                                  B tile (TILE_N, 128) e4m3, 128-byte swizzle
 *   GEMM_STAGES * STAGE_BYTES + s * SCALE_BYTES
 *                                  scales of A for the tile's 128 rows, then of B for its segments
 *   behind them                    barriers of the ring, work items
 *
 * SCALES.  With few exceptions a k block's scales are a line of memory that nobody has read yet, so
 * they travel through the ring like the tiles, as far ahead.  They come by 4-byte cp.async, which
 * takes any stride: each lane's arrival on the full barrier is made by its copies' completion.
 *
 * WAITS.  ptxas keeps an open wgmma group over a loop's back edge only if the wait for it is wait
 * 0, so the first wait of each trip is that; the others leave the chain just issued pending.  A
 * stage is released after the wait that covers its second chain.
 *
 * RESULT: docs/numerics.md sections 4 to 6, the same bits as every other kernel.
 */
#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/epilogue.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/scales.h"
#include "kernels/tile/work.h"

#ifndef GEMM_NAME
#error "define GEMM_NAME"
#endif
#ifndef GEMM_CHAIN_N
#error "define GEMM_CHAIN_N"
#endif
#ifndef GEMM_STAGES
#error "define GEMM_STAGES"
#endif

#define TILE_M 128
#define TILE_N (2 * GEMM_CHAIN_N)
#define BLOCK_K 128
#define A_BYTES (TILE_M * BLOCK_K)
#define B_BYTES (TILE_N * BLOCK_K)
#define CHAIN_BYTES (GEMM_CHAIN_N * BLOCK_K)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define CONSUMER_WARPS 8
#define GEMM_THREADS (128 + CONSUMER_WARPS * 32)
#define GEMM_SMEM_BYTES                                                                            \
    (1024 + GEMM_STAGES * (STAGE_BYTES + SCALE_BYTES) + RING_BYTES(GEMM_STAGES) + WORK_BYTES)
#define CHAIN_FRAGMENT (GEMM_CHAIN_N / 2)
#define SEGMENTS (TILE_N / 64)
#define SCALE_BYTES ((TILE_M + (SEGMENTS + 3) / 4 * 4) * 4)
#define UNROLL_BLOCKS 4 /* k blocks a trip of the main loop */

#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS 232

#if GEMM_CHAIN_N % 32 != 0 || GEMM_CHAIN_N > 96
#error "GEMM_CHAIN_N must be a multiple of 32, at most 96"
#endif
#if GEMM_SMEM_BYTES > 232448
#error "too many stages"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WGMMA JOIN(wgmma_e4m3_ss_n, GEMM_CHAIN_N)

/* Where things lie in shared memory. */
typedef struct layout {
    smem_addr stages;
    smem_addr scales;
    smem_addr ring;
    smem_addr work;
} layout;

HB_DEVICE layout layout_of_block(void)
{
    layout at;
    at.stages = smem_base();
    at.scales = at.stages + GEMM_STAGES * STAGE_BYTES;
    at.ring = at.scales + GEMM_STAGES * SCALE_BYTES;
    at.work = at.ring + RING_BYTES(GEMM_STAGES);
    return at;
}

/* One warp, of which one lane issues: keeps the ring full, through all tiles of the block without a
 * pause between them. */
HB_DEVICE void produce(const gemm_params *p, const layout *at)
{
    const bool issues = elect_one();
    ring r = ring_at(at->ring, GEMM_STAGES);
    work_ring work = work_ring_at(at->work);
    work_item item;
    int32_t block;
    while (work_take(&work, &item)) {
        for (block = item.first_block; issues && block < item.end_block; block++) {
            const smem_addr stage = at->stages + r.stage * STAGE_BYTES;
            const smem_addr full = ring_acquire(&r, STAGE_BYTES);
            tma_load_3d(stage, &p->a, full, block * BLOCK_K, item.row, item.plane);
            tma_load_3d(stage + A_BYTES, &p->b, full, block * BLOCK_K, item.column, item.group);
            ring_advance(&r);
        }
        warp_sync();
    }
}

/*
 * One warp: the scales of every block, as far ahead as the ring is long.  B's change every 128
 * columns and a tile begins at a multiple of 64, so each SEGMENT of 64 columns has one.  What a
 * block costs this warp is taken from the consumers that share its scheduler, so addresses are
 * worked out once a tile.
 */
HB_DEVICE void produce_scales(const gemm_params *p, const layout *at)
{
    const int32_t lane = (int32_t)lane_index();
    const int64_t rows32 = 32 * p->a_scale.stride_mn;
    const bool has_a = p->a_scale.data != NULL, has_b = p->b_scale.data != NULL;
    ring r = ring_at(at->ring, GEMM_STAGES);
    work_ring work = work_ring_at(at->work);
    work_item item;
    int32_t block;
    int i;
    while (work_take(&work, &item)) {
        const int32_t row = item.row + lane, column = item.column + lane * 64;
        const bool loads_b = has_b && lane < SEGMENTS && column < p->n;
        const float *a =
            scales_of_block(&p->a_scale, item.plane, item.first_block) + row * p->a_scale.stride_mn;
        const float *b = scales_of_block(&p->b_scale, item.group, item.first_block) +
                         column / 128 * p->b_scale.stride_mn;
        const int32_t rows = has_a ? item.row_end - row : 0;
        for (block = item.first_block; block < item.end_block; block++) {
            const smem_addr to = at->scales + r.stage * SCALE_BYTES + (uint32_t)lane * 4u;
            ring_wait_empty(&r);
            /* What lies past the end of A and B has no scale; its sums are never stored. */
            HB_UNROLL
            for (i = 0; i < TILE_M / 32; i++) {
                if (i * 32 < rows) {
                    cp_async_4(to + (uint32_t)i * 128u, a + i * rows32);
                }
            }
            if (loads_b) {
                cp_async_4(to + TILE_M * 4u, b);
            }
            cp_async_mbarrier_arrive_noinc(r.full + r.stage * 8u);
            ring_advance(&r);
            a += p->a_scale.stride_k;
            b += p->b_scale.stride_k;
        }
    }
}

/* partial (64, GEMM_CHAIN_N) = A (64, 128) * B^T, a chain of four instructions from +0. */
HB_DEVICE void issue(float *partial, smem_addr a, smem_addr b)
{
    const uint64_t desc_a = wgmma_desc(a, 0, 1024, SWIZZLE_128B);
    const uint64_t desc_b = wgmma_desc(b, 0, 1024, SWIZZLE_128B);
    int step;
    wgmma_fence();
    HB_UNROLL
    for (step = 0; step < BLOCK_K / 32; step++) {
        WGMMA(partial, wgmma_desc_advance(desc_a, (uint32_t)step * 32u),
              wgmma_desc_advance(desc_b, (uint32_t)step * 32u), step != 0);
    }
    wgmma_commit();
}

/* The scales of one k block that a thread needs. */
typedef struct block_scales {
    float low, high; /* of row g of the warp's 16, of row g + 8 */
    float b[SEGMENTS];
} block_scales;

/* Chain h of a block: acc = fma_rn(partial, scale of A * scale of B, acc). */
HB_DEVICE void promote(float *acc, const float *partial, const block_scales *scales, int h)
{
    int i;
    HB_UNROLL
    for (i = 0; i < CHAIN_FRAGMENT; i += 4) {
        const int segment = (h * GEMM_CHAIN_N + i * 2) / 64;
        const float low = mul_rn(scales->low, scales->b[segment]);
        const float high = mul_rn(scales->high, scales->b[segment]);
        acc[i + 0] = fma_rn(partial[i + 0], low, acc[i + 0]);
        acc[i + 1] = fma_rn(partial[i + 1], low, acc[i + 1]);
        acc[i + 2] = fma_rn(partial[i + 2], high, acc[i + 2]);
        acc[i + 3] = fma_rn(partial[i + 3], high, acc[i + 3]);
    }
}

/*
 * A consumer thread's place: the stage that it issues from (`ahead`), the one that it promotes from
 * and gives back (`behind`), its accumulators.  Every fragment index is a constant.
 */
typedef struct consumer {
    ring ahead;
    smem_addr stages;
    smem_addr a_offset; /* of the warpgroup's rows in a stage */
    smem_addr scales;   /* of row g of the warp's 16, stage 0 */
    smem_addr b_scales; /* of segment 0, stage 0 */
    smem_addr stage;    /* that `ahead` was at when it last moved */
    uint32_t behind;
    block_scales now, next; /* of the block that is promoted, and of the one issued */
    float *partial[2];
    float *acc[2];
} consumer;

/* Waits for the next stage, issues its first chain and loads its scales. */
HB_DEVICE void first_chain(consumer *c)
{
    const uint32_t at = c->ahead.stage * SCALE_BYTES;
    int i;
    c->stage = c->stages + c->ahead.stage * STAGE_BYTES;
    ring_wait_full(&c->ahead);
    ring_advance(&c->ahead);
    c->next.low = smem_load_f32(c->scales + at);
    c->next.high = smem_load_f32(c->scales + at + 32u);
    HB_UNROLL
    for (i = 0; i < SEGMENTS; i++) {
        c->next.b[i] = smem_load_f32(c->b_scales + at + (uint32_t)i * 4u);
    }
    issue(c->partial[0], c->stage + c->a_offset, c->stage + A_BYTES);
}

HB_DEVICE void second_chain(consumer *c)
{
    issue(c->partial[1], c->stage + c->a_offset, c->stage + A_BYTES + CHAIN_BYTES);
}

/* After the wait that covers a block's second chain: nobody of this warp reads its stage again. */
HB_DEVICE void release(consumer *c)
{
    ring_release_loaded(&c->ahead, c->behind);
    c->behind = c->behind + 1 == c->ahead.stages ? 0 : c->behind + 1;
}

/* Promotes the second chain of a block; the next block's scales become the current ones. */
HB_DEVICE void promote_second(consumer *c)
{
    promote(c->acc[1], c->partial[1], &c->now, 1);
    c->now = c->next;
}

/* Sums of one tile.  Begins and ends with no chain in flight. */
HB_DEVICE void sum_tile(consumer *c, int32_t blocks)
{
    int32_t block = 0;
    int u;
    first_chain(c);
    c->now = c->next;
    HB_NO_UNROLL
    for (; block + UNROLL_BLOCKS < blocks; block += UNROLL_BLOCKS) {
        HB_UNROLL
        for (u = 0; u < UNROLL_BLOCKS; u++) {
            if (u == 0) {
                wgmma_wait(0); /* the chain from before the loop's edge: see WAITS */
                second_chain(c);
            } else {
                second_chain(c);
                wgmma_wait(1);
            }
            promote(c->acc[0], c->partial[0], &c->now, 0);
            first_chain(c);
            wgmma_wait(1);
            release(c);
            promote_second(c);
        }
    }
    HB_NO_UNROLL
    for (; block + 1 < blocks; block++) {
        wgmma_wait(0);
        second_chain(c);
        promote(c->acc[0], c->partial[0], &c->now, 0);
        wgmma_wait(0);
        release(c);
        first_chain(c);
        promote_second(c);
    }
    /* The last block stands apart: were its issue a branch of the loop, ptxas would see a way out
     * with a chain in flight and put in a wait of its own. */
    wgmma_wait(0);
    second_chain(c);
    promote(c->acc[0], c->partial[0], &c->now, 0);
    wgmma_wait(0);
    release(c);
    promote_second(c);
}

/* A warpgroup: its 64 rows of every tile of the block. */
HB_DEVICE void consume(const gemm_params *p, const layout *at, uint32_t warpgroup)
{
    FRAGMENT_F32(partial0, CHAIN_FRAGMENT);
    FRAGMENT_F32(partial1, CHAIN_FRAGMENT);
    FRAGMENT_F32(acc0, CHAIN_FRAGMENT);
    FRAGMENT_F32(acc1, CHAIN_FRAGMENT);
    const uint32_t thread = thread_index() % 128u;
    const uint32_t row_in_tile = warpgroup * 64u + thread / 32u * 16u + thread % 32u / 4u;
    work_ring work = work_ring_at(at->work);
    work_item item;
    consumer c;
    int i;
    c.ahead = ring_at(at->ring, GEMM_STAGES);
    c.stages = at->stages;
    c.a_offset = warpgroup * (64u * BLOCK_K);
    c.scales = at->scales + row_in_tile * 4u;
    c.b_scales = at->scales + TILE_M * 4u;
    c.stage = at->stages;
    c.behind = 0;
    c.partial[0] = partial0;
    c.partial[1] = partial1;
    c.acc[0] = acc0;
    c.acc[1] = acc1;
    while (work_take(&work, &item)) {
        const int32_t row = item.row + (int32_t)row_in_tile;
        const int32_t column = item.column + (int32_t)(thread % 4u * 2u);
        HB_UNROLL
        for (i = 0; i < CHAIN_FRAGMENT; i++) {
            acc0[i] = 0.0f;
            acc1[i] = 0.0f;
        }
        if (item.end_block > item.first_block) {
            sum_tile(&c, item.end_block - item.first_block);
        }
        epilogue(p, &item, acc0, CHAIN_FRAGMENT, row, column, false);
        epilogue(p, &item, acc1, CHAIN_FRAGMENT, row, column + GEMM_CHAIN_N, false);
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
    if (p->a_scale.data == NULL || p->b_scale.data == NULL) {
        /* Ones everywhere: the copies overwrite those that the problem has. */
        const gemm_scales none = {NULL, 0, 0, 0, 0, 0, 0};
        scales_prepare(&none, at.scales, GEMM_STAGES * SCALE_BYTES / 4, GEMM_THREADS);
    }
    block_sync();
    grid_dependency_wait();
    if (p->flags & GEMM_LAUNCH_DEPENDENTS) {
        grid_launch_dependents();
    }
    if (warp >= 4) {
        setmaxnreg_inc(CONSUMER_REGISTERS);
        consume(p, &at, warp / 4u - 1u);
        return;
    }
    setmaxnreg_dec(PRODUCER_REGISTERS);
    if (warp == 0) {
        produce(p, &at);
    } else if (warp == 1) {
        produce_scales(p, &at);
    } else if (warp == 2) {
        work_schedule(p, TILE_M, TILE_N, work_ring_at(at.work));
    }
}
