/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP8 GEMM for many tokens, dense and grouped: D = epilogue(A * B^T), B's scales one in 128 x 128.
 *
 * The promotion of one chain of wgmma runs under the next: a warpgroup has two partial accumulators
 * and always issues the next chain into the free one before it promotes the other, so the tensor
 * core does not wait for the fp32 units.  The next tile's first chain is issued before a tile is
 * stored.
 *
 *          n  ->                            one block: 128 x TILE_N of D at a time, persistent
 *        +-----------+-----------+
 *    m   | 64 rows, consumer 0   |          warps 4 .. 7
 *    |   +-----------+-----------+
 *    v   | 64 rows, consumer 1   |          warps 8 .. 11
 *        +-----------+-----------+
 *          chain 0     chain 1  (chain 2)   four instructions a k block each
 *          loads                            warp 0: one lane issues the copies of A and B
 *          scales                           warp 1: fetches the scales, 4 bytes a copy
 *          scheduler                        warp 2: says which tile is next
 *          sender                           warp 3: with GEMM_D_STAGED, has tiles of D carried away
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME          name of the kernel: that of the instance file and of its row in kernels.def
 *   GEMM_CHAIN_N       columns of chains 0 and 1, a multiple of 8
 *   GEMM_CHAINS        such chains: 2 (default), or 1 where it is short: what goes with a chain
 *                      takes longer than 100 columns of it
 *   GEMM_LAST_CHAIN_N  columns that chain 2 adds; 0 (default): there is none.  If fewer than
 *                      GEMM_CHAIN_N, chain 2 computes some of chain 1 again: with another shape of
 *                      wgmma on the same accumulators ptxas runs out of registers
 *   GEMM_D_STAGED      1: tiles of D go by way of shared memory (tile/store_down.h); by default
 *                      the threads store them
 *   GEMM_STAGES        of the ring: shared memory is GEMM_SMEM_BYTES <= 232,448
 *   GEMM_RUNS          1: where k is short and D high, a block takes runs of tiles (tile/direct.h);
 *                      GEMM_STAGES is even
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES     A tile (128, 128) e4m3, 128-byte swizzle
 *                                  B tile (TILE_N, 128) e4m3, 128-byte swizzle
 *   behind the stages              tiles of D on their way, of each warpgroup
 *                                  GEMM_STAGES x scales of A's rows, then of B's segments
 *                                  work items, barriers of the ring, of the tiles of D
 *
 * SCALES travel through the ring like the tiles, as far ahead (tile/scales.h).
 *
 * START.  A block finds neither instructions nor parameters in its caches, and each line comes from
 * L2.  So warps prepare apart and meet when they have; the one that loads makes the ring's barriers
 * itself.  Where the block's first tile is known (direct.h) it waits for nobody, and neither it nor
 * the scales ask the scheduler.  Parameters are touched ahead of their use.
 *
 * WAITS.  ptxas keeps an open wgmma group over a loop's back edge only if the wait for it is wait
 * 0, so the first wait of each trip is that; the others leave the chain just issued pending.
 *
 * RESULT: docs/numerics.md sections 4 to 6, the same bits as every other kernel.
 */
#ifndef GEMM_STAGES
#error "define GEMM_STAGES"
#endif
/* For short k: tiles of 1, 2 and of GEMM_STAGES k blocks fill a ring of an even number. */
#if defined(GEMM_RUNS) && GEMM_RUNS
#if GEMM_STAGES % 2 != 0
#error "with runs GEMM_STAGES is even"
#endif
#define DIRECT_RUNS (2u | 4u | 1u << GEMM_STAGES)
#endif

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/direct.h"
#include "kernels/tile/epilogue.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/store_down.h"
#include "kernels/tile/work.h"

#ifndef GEMM_NAME
#error "define GEMM_NAME"
#endif
#ifndef GEMM_CHAIN_N
#error "define GEMM_CHAIN_N"
#endif
#ifndef GEMM_CHAINS
#define GEMM_CHAINS 2
#endif
#ifndef GEMM_LAST_CHAIN_N
#define GEMM_LAST_CHAIN_N 0
#endif
#ifndef GEMM_D_STAGED
#define GEMM_D_STAGED 0
#endif
#define UNROLL_BLOCKS 4 /* k blocks a trip of the main loop */
#define WHOLE_TRIPS 0
#define PROMOTE_APART 1

#define TILE_M 128
#define TILE_N (GEMM_CHAINS * GEMM_CHAIN_N + GEMM_LAST_CHAIN_N)
#define CHAINS (GEMM_CHAINS + (GEMM_LAST_CHAIN_N != 0))
#define BLOCK_K 128
#define A_BYTES (TILE_M * BLOCK_K)
#define B_BYTES (TILE_N * BLOCK_K)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define CONSUMER_WARPS 8
#define GEMM_THREADS (128 + CONSUMER_WARPS * 32)

/* B's scale changes every 128 columns: columns of a tile that surely share one. */
#if TILE_N % 128 == 0
#define SEGMENT 128
#elif TILE_N % 64 == 0
#define SEGMENT 64
#elif TILE_N % 32 == 0
#define SEGMENT 32
#else
#define SEGMENT 16
#endif
#define SEGMENTS (TILE_N / SEGMENT)
#define SEGMENT_FLOATS ((SEGMENTS + 3) / 4 * 4)
#define SCALE_BYTES ((TILE_M + SEGMENT_FLOATS) * 4)
#define STAGING_BYTES (GEMM_D_STAGED * DOWN_STAGING_BYTES(TILE_N)) /* of a warpgroup, for D */
#define GEMM_SMEM_BYTES                                                                            \
    (1024 + GEMM_STAGES * STAGE_BYTES + 2 * STAGING_BYTES + GEMM_STAGES * SCALE_BYTES +            \
     WORK_BYTES + RING_BYTES(GEMM_STAGES) + GEMM_D_STAGED * DOWN_BARRIER_BYTES(2))

#if GEMM_SMEM_BYTES > 232448
#error "too many stages"
#endif
#if GEMM_D_STAGED && TILE_N % 64 != 0
#error "D's boxes have 64 columns"
#endif

/* The pool of 3 x 168 registers a thread, shared out by need: 40 + 2 x 232. */
#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS 232

#define CHAIN_COLUMNS GEMM_CHAIN_N
#define CHAIN_SCALES "kernels/gemm_fp8_chain_scales.h"

#include "kernels/tile/chains_ahead.h"
#include "kernels/tile/producers.h"

/* Where things lie in shared memory. */
typedef struct layout {
    smem_addr stages;
    smem_addr staging;
    smem_addr scales;
    smem_addr work;
    smem_addr ring;
    smem_addr sent; /* barriers of store_down.h: full, then empty */
} layout;

HB_DEVICE layout layout_of_block(void)
{
    layout at;
    at.stages = smem_base();
    at.staging = at.stages + GEMM_STAGES * STAGE_BYTES;
    at.scales = at.staging + 2 * STAGING_BYTES;
    at.work = at.scales + GEMM_STAGES * SCALE_BYTES; /* a multiple of 16 */
    at.ring = at.work + WORK_BYTES;
    at.sent = at.ring + RING_BYTES(GEMM_STAGES);
    return at;
}

/* ---- consumers ------------------------------------------------------------------------------- */

/* The rows of consumer warp `warp` of the block's tile `turn` to D. */
HB_DEVICE void store_tile(const gemm_params *p, const layout *at, const work_item *item,
                          const float *acc, uint32_t warp, uint32_t turn)
{
#if GEMM_D_STAGED
    const uint32_t group = warp / 4u;
    store_down(p, item, acc, TILE_N / 2, item->row + (int32_t)group * DOWN_ROWS, warp % 4u,
               at->staging + group * STAGING_BYTES, at->sent + group * 16u, turn & 1u);
#else
    const uint32_t lane = thread_index_anew() % 32u;
    const int32_t mine = item->row + (int32_t)(warp * 16u + lane / 4u);
    const int32_t pair = item->column + (int32_t)(lane % 4u * 2u);
    (void)at;
    (void)turn;
    if (HB_LIKELY(p->flags & GEMM_D_PLAIN)) {
        store_wide_plain(p, item, acc, TILE_N / 2, mine, pair);
    } else if (store_wide_is_usual(p)) {
        store_wide_usual(p, item, acc, TILE_N / 2, mine, pair);
    } else {
        store_wide_any(p, item, acc, TILE_N / 2, mine, pair);
    }
#endif
}

/* A warpgroup: its 64 rows of every tile of the block. */
HB_DEVICE void consume(const gemm_params *p, const layout *at, uint32_t warp)
{
    FRAGMENT_F32(partial0, GEMM_CHAIN_N / 2);
    FRAGMENT_F32(partial1, GEMM_CHAIN_N / 2);
    FRAGMENT_F32(acc, TILE_N / 2);
    work_ring work = work_ring_at(at->work);
    work_ring behind;
    work_item item;
    consumer c;
    bool works, more;
    uint32_t turn;
    parameter_touch((uint32_t)p->epilogue.d.ld);
    parameter_touch((uint32_t)p->m);
    c.ahead = ring_at(at->ring, GEMM_STAGES);
    c.stages = at->stages;
    c.a_offset = warp / 4u * (64u * BLOCK_K);
    c.scales = at->scales + (warp * 16u + lane_index() / 4u) * 4u;
    c.b_scales = at->scales + TILE_M * 4u;
    c.partial[0] = partial0;
    c.partial[1] = partial1;
    c.acc = acc;
    c.p = p;
    gemm_join(p, GEMM_THREADS);
    works = work_await(&work);
    next_stage(&c, works && p->k_blocks > 0);
    issue(&c, 0, partial0);
    HB_NO_UNROLL
    for (turn = 0; works; works = more, turn++) {
        behind = work;
        work_ring_advance(&behind);
        more = work_await(&behind);
        sum_tile(&c, p->k_blocks, more);
        work_take_awaited(&work, &item);
        store_tile(p, at, &item, acc, warp, turn);
    }
    wgmma_wait(0);
}

/* ---- the block ------------------------------------------------------------------------------- */

/* Producer warps whose way to the first tile is short: see START. */
HB_DEVICE void load_tiles(const gemm_params *p, const layout *at)
{
    const ring r = ring_at(at->ring, GEMM_STAGES);
    const bool knows_first = direct_first_is_known(p);
    if (elect_one()) {
        ring_init(&r, 1 + 32, CONSUMER_WARPS);
    }
    direct_begin(p, GEMM_THREADS, knows_first);
    produce_tiles(p, at->stages, r, work_ring_at(at->work), knows_first);
}

HB_DEVICE void fetch_scales(const gemm_params *p, const layout *at)
{
    parameter_touch((uint32_t)p->a_scale.stride_mn);
    parameter_touch((uint32_t)p->a_scale.mn_shift);
    parameter_touch((uint32_t)p->b_scale.mn_shift);
    gemm_join(p, GEMM_THREADS);
    produce_block_scales(p, at->scales, SCALE_BYTES, SEGMENT, SEGMENTS,
                         ring_at(at->ring, GEMM_STAGES), work_ring_at(at->work),
                         direct_first_is_known(p));
}

/* What the others need before they begin, then the scheduler. */
HB_DEVICE void prepare_and_schedule(const gemm_params *p, const layout *at)
{
    uint32_t stage;
    if (elect_one()) {
        if (p->k_blocks > 0) { /* else there are no maps */
            tma_prefetch_map(&p->a);
            tma_prefetch_map(&p->b);
        }
        work_ring_init(at->work, CONSUMER_WARPS + 2 + GEMM_D_STAGED);
#if GEMM_D_STAGED
        if (p->flags & GEMM_D_BOXES) {
            tma_prefetch_map(&p->d);
        }
        down_init(at->sent, 2);
#endif
    }
    for (stage = 0; stage < GEMM_STAGES; stage++) {
        const smem_addr scales = at->scales + stage * SCALE_BYTES;
        scales_prepare(&p->a_scale, scales, TILE_M, lane_index(), 32);
        scales_prepare(&p->b_scale, scales + TILE_M * 4u, SEGMENTS, lane_index(), 32);
    }
    if (direct_first_is_known(p)) {
        direct_ring_is_ready();
    }
    gemm_join(p, GEMM_THREADS);
    if (direct_runs(p)) {
        direct_schedule_run(p, TILE_M, TILE_N, work_ring_at(at->work));
    } else {
        work_schedule(p, TILE_M, TILE_N, work_ring_at(at->work));
    }
}

KERNEL(GEMM_NAME, gemm_params, p, GEMM_THREADS)
{
    const layout at = layout_of_block();
    const uint32_t warp = warp_index();
    if (warp >= 4) {
        setmaxnreg_inc(CONSUMER_REGISTERS);
        consume(p, &at, warp - 4u);
        return;
    }
    setmaxnreg_dec(PRODUCER_REGISTERS);
    if (HB_LIKELY(warp == 0)) { /* else a table of roles, which would come from L2 too */
        load_tiles(p, &at);
    } else if (warp == 1) {
        fetch_scales(p, &at);
    } else if (warp == 2) {
        prepare_and_schedule(p, &at);
    } else {
        gemm_join(p, GEMM_THREADS);
#if GEMM_D_STAGED
        down_send_tiles(p, at.staging, TILE_N, at.sent, work_ring_at(at.work));
#endif
    }
}
