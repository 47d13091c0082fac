/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP8 GEMM with block scales, for many tokens: D = A * B^T, A scaled 1x128, B scaled 128x128.
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
 *          producer                         warp 0 (1 .. 3 idle): one thread issues all copies
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME     name of the kernel: that of the instance file and of its row in kernels.def
 *   GEMM_CHAIN_N  columns of a chain: 32, 64, 96 or 128; TILE_N is twice that
 *   GEMM_STAGES   stages of the ring: shared memory is GEMM_SMEM_BYTES <= 232,448
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES     A tile (128, 128) e4m3, 128-byte swizzle
 *                                  B tile (TILE_N, 128) e4m3, 128-byte swizzle
 *   GEMM_STAGES * STAGE_BYTES      barriers of the ring
 *
 * WAITS.  ptxas keeps an open wgmma group over a loop's back edge only if the wait for it is wait
 * 0, so the first wait of each trip is that; the others leave the chain just issued pending.  A
 * stage is released after the wait that covers its second chain.
 *
 * RESULT: docs/numerics.md sections 4 to 6, the same bits as every other kernel.
 */
#include "kernels/gemm_fp8_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/store_bf16.h"

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
#define GEMM_SMEM_BYTES (1024 + GEMM_STAGES * STAGE_BYTES + RING_BYTES(GEMM_STAGES))
#define CHAIN_FRAGMENT (GEMM_CHAIN_N / 2)
#define SEGMENTS (TILE_N / 64)
#define UNROLL_BLOCKS 4 /* k blocks a trip of the main loop */

#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS 232

#if GEMM_CHAIN_N % 32 != 0 || GEMM_CHAIN_N > 128
#error "GEMM_CHAIN_N must be a multiple of 32, at most 128"
#endif
#if GEMM_SMEM_BYTES > 232448
#error "too many stages"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WGMMA JOIN(wgmma_e4m3_ss_n, GEMM_CHAIN_N)

HB_DEVICE uint32_t tiles_m(const gemm_fp8_params *p)
{
    return ((uint32_t)p->m + TILE_M - 1) / TILE_M;
}

HB_DEVICE uint32_t tiles_all(const gemm_fp8_params *p)
{
    return tiles_m(p) * (((uint32_t)p->n + TILE_N - 1) / TILE_N);
}

/*
 * Tile `index` in an order that keeps what blocks read at the same time small: bands of GROUP_M
 * rows of tiles, each band column by column.
 */
#define GROUP_M 16
HB_DEVICE void tile_at(const gemm_fp8_params *p, uint32_t index, int32_t *row, int32_t *column)
{
    const uint32_t tiles_n = ((uint32_t)p->n + TILE_N - 1) / TILE_N;
    const uint32_t band = index / (GROUP_M * tiles_n);
    const uint32_t first = band * GROUP_M;
    const uint32_t left = tiles_m(p) - first;
    const uint32_t height = left < GROUP_M ? left : GROUP_M;
    const uint32_t in_band = index - band * (GROUP_M * tiles_n);
    *row = (int32_t)((first + in_band % height) * TILE_M);
    *column = (int32_t)(in_band / height * TILE_N);
}

/* One thread: keeps the ring full, through all tiles of the block without a pause between them. */
HB_DEVICE void produce(const gemm_fp8_params *p, smem_addr stages, ring r)
{
    uint32_t tile;
    int32_t block, row, column;
    if (p->k_blocks == 0) {
        return; /* the maps are empty too */
    }
    tma_prefetch_map(&p->a);
    tma_prefetch_map(&p->b);
    for (tile = block_index(); tile < tiles_all(p); tile += block_count()) {
        tile_at(p, tile, &row, &column);
        for (block = 0; block < p->k_blocks; block++) {
            const smem_addr stage = stages + r.stage * STAGE_BYTES;
            const smem_addr full = ring_acquire(&r, STAGE_BYTES);
            tma_load_2d(stage, &p->a, full, block * BLOCK_K, row);
            tma_load_2d(stage + A_BYTES, &p->b, full, block * BLOCK_K, column);
            ring_advance(&r);
        }
    }
}

/*
 * The scales that a consumer thread needs, block after block.  B's change every 128 columns and a
 * tile begins at a multiple of 64, so each SEGMENT of 64 columns has one.
 */
typedef struct scale_cursor {
    const float *a;              /* of row g of the warp's 16, next block to load */
    const float *b;              /* of segment 0 */
    int32_t a_high;              /* elements from `a` to row g + 8 */
    int32_t b_segment[SEGMENTS]; /* elements from `b` to each segment's; [0] is 0 */
} scale_cursor;

/* The scales of one k block, loaded a block ahead of their use. */
typedef struct block_scales {
    float low, high;
    float b[SEGMENTS];
} block_scales;

HB_DEVICE scale_cursor scales_begin(const gemm_fp8_params *p, int32_t row, int32_t column)
{
    scale_cursor s;
    /* Rows and columns past the end take the last one's scale; their sums are never stored. */
    const int32_t low = row < p->m ? row : p->m - 1;
    const int32_t high = row + 8 < p->m ? row + 8 : p->m - 1;
    const int32_t last = (p->n - 1) / 128 - column / 128;
    int i;
    s.a = p->a_scale + low * p->a_scale_stride_m;
    s.a_high = (int32_t)((high - low) * p->a_scale_stride_m);
    s.b = p->b_scale + column / 128 * p->b_scale_stride_n;
    HB_UNROLL
    for (i = 0; i < SEGMENTS; i++) {
        const int32_t block = (column % 128 + i * 64) / 128;
        s.b_segment[i] = (int32_t)((block < last ? block : last) * p->b_scale_stride_n);
    }
    return s;
}

HB_DEVICE block_scales scales_next(const gemm_fp8_params *p, scale_cursor *s)
{
    block_scales loaded;
    int i;
    loaded.low = global_load_f32_nc(s->a);
    loaded.high = global_load_f32_nc(s->a + s->a_high);
    HB_UNROLL
    for (i = 0; i < SEGMENTS; i++) {
        loaded.b[i] = global_load_f32_nc(s->b + s->b_segment[i]);
    }
    s->a += p->a_scale_stride_k;
    s->b += p->b_scale_stride_k;
    return loaded;
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

/* A consumer's place in the ring: `ahead` is the stage it issues from, `behind` the one it gives
 * back. */
typedef struct consumer_ring {
    ring ahead;
    uint32_t behind;
} consumer_ring;

HB_DEVICE smem_addr stage_next(consumer_ring *c, smem_addr stages)
{
    const smem_addr stage = stages + c->ahead.stage * STAGE_BYTES;
    ring_wait_full(&c->ahead);
    return stage;
}

HB_DEVICE void stage_release(consumer_ring *c)
{
    if (elect_one()) {
        mbarrier_arrive(c->ahead.empty + c->behind * 8u);
    }
    c->behind = c->behind + 1 == c->ahead.stages ? 0 : c->behind + 1;
}

/* What the accumulators of a warpgroup are; every index is a constant after unrolling. */
typedef struct accumulators {
    float *partial[2];
    float *acc[2];
} accumulators;

/*
 * The second chain of the block at `stage` is issued, the first promoted under it; `scales` are the
 * block's.  On entry the first chain is in flight, alone.
 */
HB_DEVICE void second_chain(const accumulators *t, smem_addr stage, uint32_t a_offset,
                            const block_scales *scales, bool wait_first)
{
    if (wait_first) {
        wgmma_wait(0);
        issue(t->partial[1], stage + a_offset, stage + A_BYTES + CHAIN_BYTES);
    } else {
        issue(t->partial[1], stage + a_offset, stage + A_BYTES + CHAIN_BYTES);
        wgmma_wait(1);
    }
    promote(t->acc[0], t->partial[0], scales, 0);
}

/* Sums of one tile.  Returns with no chain in flight. */
HB_DEVICE void sum_tile(const gemm_fp8_params *p, smem_addr stages, uint32_t a_offset,
                        consumer_ring *c, scale_cursor *scales, const accumulators *t)
{
    block_scales now = scales_next(p, scales), next = now;
    smem_addr stage = stage_next(c, stages);
    int32_t block = 0;
    int u;
    issue(t->partial[0], stage + a_offset, stage + A_BYTES);
    ring_advance(&c->ahead);
    HB_NO_UNROLL
    for (; block + UNROLL_BLOCKS < p->k_blocks; block += UNROLL_BLOCKS) {
        HB_UNROLL
        for (u = 0; u < UNROLL_BLOCKS; u++) {
            next = scales_next(p, scales);
            second_chain(t, stage, a_offset, &now, u == 0);
            stage = stage_next(c, stages);
            issue(t->partial[0], stage + a_offset, stage + A_BYTES);
            ring_advance(&c->ahead);
            wgmma_wait(1); /* the second chain is done: its stage has no reader left */
            stage_release(c);
            promote(t->acc[1], t->partial[1], &now, 1);
            now = next;
        }
    }
    HB_NO_UNROLL
    for (; block + 1 < p->k_blocks; block++) {
        next = scales_next(p, scales);
        second_chain(t, stage, a_offset, &now, true);
        wgmma_wait(0);
        stage_release(c);
        stage = stage_next(c, stages);
        issue(t->partial[0], stage + a_offset, stage + A_BYTES);
        ring_advance(&c->ahead);
        promote(t->acc[1], t->partial[1], &now, 1);
        now = next;
    }
    /* The last block stands apart: were its issue a branch of the loop, ptxas would see a way out
     * with a chain in flight and put in a wait of its own. */
    second_chain(t, stage, a_offset, &now, true);
    wgmma_wait(0);
    stage_release(c);
    promote(t->acc[1], t->partial[1], &now, 1);
}

/* A warpgroup: its 64 rows of every tile of the block. */
HB_DEVICE void consume(const gemm_fp8_params *p, smem_addr stages, ring r, uint32_t consumer)
{
    FRAGMENT_F32(partial0, CHAIN_FRAGMENT);
    FRAGMENT_F32(partial1, CHAIN_FRAGMENT);
    FRAGMENT_F32(acc0, CHAIN_FRAGMENT);
    FRAGMENT_F32(acc1, CHAIN_FRAGMENT);
    const uint32_t thread = thread_index() % 128u;
    const int32_t row_in_tile = (int32_t)(consumer * 64u + thread / 32u * 16u + thread % 32u / 4u);
    accumulators t;
    consumer_ring c;
    uint32_t index;
    int32_t row, column;
    int i;
    t.partial[0] = partial0;
    t.partial[1] = partial1;
    t.acc[0] = acc0;
    t.acc[1] = acc1;
    c.ahead = r;
    c.behind = 0;
    for (index = block_index(); index < tiles_all(p); index += block_count()) {
        tile_at(p, index, &row, &column);
        row += row_in_tile;
        HB_UNROLL
        for (i = 0; i < CHAIN_FRAGMENT; i++) {
            acc0[i] = 0.0f;
            acc1[i] = 0.0f;
        }
        if (p->k_blocks > 0) {
            scale_cursor scales = scales_begin(p, row, column);
            sum_tile(p, stages, consumer * (64u * BLOCK_K), &c, &scales, &t);
        }
        store_bf16(p, acc0, CHAIN_FRAGMENT, row, column);
        store_bf16(p, acc1, CHAIN_FRAGMENT, row, column + GEMM_CHAIN_N);
    }
}

KERNEL(GEMM_NAME, gemm_fp8_params, p, GEMM_THREADS)
{
    const smem_addr stages = smem_base();
    ring r = ring_at(stages + GEMM_STAGES * STAGE_BYTES, GEMM_STAGES);
    const uint32_t warpgroup = warp_index() / 4u;
    if (thread_index() == 0) {
        ring_init(&r, CONSUMER_WARPS);
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
