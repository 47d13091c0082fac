/* SPDX-License-Identifier: Apache-2.0 */
/*
 * W4A8 GEMM for many tokens, dense and grouped: D = epilogue(A * B^T), B int4 packed.
 *
 * Two warps expand the weights of a k block to e4m3 in shared memory, in the place where the packed
 * words have arrived, and the consumers run the main loop of the FP8 kernels over them
 * (tile/chains_ahead.h): they neither decode nor hold fragments of weights, and have registers for
 * the sums of 256 tokens.
 *
 *                 tokens ->                one block: 128 rows of B x TILE_N rows of A
 *               +-------------+
 *    rows of B  | 64          |            warp 0          scheduler and producer
 *    |          +-------------+            warp 1          scales of the rows
 *    v          | 64          |            warps 2, 3      expand a panel of 64 rows each
 *               +-------------+            warps 4 .. 11   consumers
 *            chain 0, 1 (, 2)              four instructions a k block each
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME, GEMM_CHAIN_N, GEMM_LAST_CHAIN_N, GEMM_STAGES   as for gemm_fp8_ahead.h; columns are
 *                                                            tokens
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES     two panels of 64 rows x 128 e4m3, 128-byte swizzle; a packed
 *                                  atom arrives in the second half of its panel
 *                                  tokens: (TILE_N, 128) e4m3, 128-byte swizzle
 *   behind the stages              staging of D (tile/store_across.h)
 *                                  GEMM_STAGES x factors of the rows (gemm_w4a8_scales.h)
 *                                  factors of the tokens, WORK_SLOTS times
 *                                  work items, barriers of the ring, `packed` barriers
 *
 * BARRIERS of a stage
 *   packed[s]  the bytes of the weights; an expanding warp waits
 *   full[s]    the bytes of the tokens, an arrival of the scale warp and of each expanding warp;
 *              the consumers wait
 *   empty[s]   the consumer warps; the producer, the scale warp and, before a tile's factors, an
 *              expanding warp wait
 *
 * FACTORS OF THE TOKENS have a place for each slot of the ring of items.  They are written when the
 * tile's first stage is free, over those of WORK_SLOTS tiles before.  That stage was given back
 * GEMM_STAGES blocks before, by warps that have stored all tiles before the one they summed; and a
 * tile has two blocks at least.  For the same reason sums are not empty (gemm_select.c).
 *
 * EPILOGUE.  Nothing becomes of a sum but the factor of its token and a 16-bit number: other terms
 * take registers, and the next tile's first chain is in flight.
 *
 * A block past an odd number of them adds nothing: its tokens are zeros, read past the end of k,
 * and its factors -0 (gemm_w4a8_scales.h).
 *
 * RESULT: docs/numerics.md sections 3 to 6, the same bits as every other kernel.
 */
#define GROUP_AT_ONCE 1 /* tile/group_rows.h */

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/direct.h"
#include "kernels/tile/epilogue.h"
#include "kernels/tile/int4_atom.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/store_across.h"
#include "kernels/tile/work.h"

#if !defined(GEMM_NAME) || !defined(GEMM_CHAIN_N) || !defined(GEMM_STAGES)
#error "define the parameters"
#endif
#ifndef GEMM_LAST_CHAIN_N
#define GEMM_LAST_CHAIN_N 0
#endif
#define UNROLL_BLOCKS 2 /* k blocks a trip of the main loop */
#define WHOLE_TRIPS 1
#define PROMOTE_APART 0

#define TILE_ROWS 128
#define TILE_N (2 * GEMM_CHAIN_N + GEMM_LAST_CHAIN_N)
#define TILE_TOKENS TILE_N
#define CHAINS (GEMM_LAST_CHAIN_N == 0 ? 2 : 3)
#define CHAIN_COLUMNS GEMM_CHAIN_N
#define BLOCK_K 128
#define FRAGMENT (TILE_N / 2)
#define PIECE (GEMM_CHAIN_N / 2) /* of the sums, stored at a time */
#define PANELS 2
#define PANEL_BYTES 8192u /* 64 rows of e4m3 */
#define A_BYTES (PANELS * PANEL_BYTES)
#define TOKEN_BYTES (TILE_N * BLOCK_K)
#define STAGE_BYTES (A_BYTES + TOKEN_BYTES)
#define CONSUMER_WARPS 8
#define GEMM_THREADS (128 + CONSUMER_WARPS * 32)

/* For gemm_w4a8_scales.h: one weight group a stage, whose scales one warp fetches. */
#define STAGE_BLOCKS 1
#define UNROLL UNROLL_BLOCKS
#define GEMM_GROUPS 1
#define GEMM_TOKEN_SCALES 0
#define SCALES_AHEAD 0
#define ROW_SCALES (TILE_ROWS / 32)
#define TURN_STAGES 1
#define GROUP_SCALE_BYTES (TILE_ROWS * 4u)
#define SCALE_BYTES GROUP_SCALE_BYTES
#define FACTOR_GROUP 0
#define FACTOR_BYTES (TILE_N * 4u)

#define STAGING_BYTES ACROSS_STAGING_BYTES(GEMM_CHAIN_N) /* of a warpgroup, for D */
#define GEMM_SMEM_BYTES                                                                            \
    (1024 + GEMM_STAGES * (STAGE_BYTES + SCALE_BYTES) + PANELS * STAGING_BYTES +                   \
     WORK_SLOTS * FACTOR_BYTES + WORK_BYTES + RING_BYTES(GEMM_STAGES) + GEMM_STAGES * 8u)

#if GEMM_SMEM_BYTES > 232448
#error "too many stages"
#endif
#if GEMM_STAGES > 2 * (WORK_SLOTS - 1)
#error "factors of tokens would be overwritten before they are used"
#endif

/* The pool of 3 x 168 registers a thread, shared out by need: 56 + 2 x 224. */
#define PRODUCER_REGISTERS 56
#define CONSUMER_REGISTERS 224

#define CHAIN_SCALES "kernels/gemm_w4a8_chain_scales.h"

#include "kernels/gemm_w4a8_expand_warps.h"
#include "kernels/gemm_w4a8_token_factors.h"
#include "kernels/tile/chains_ahead.h"

/* ---- consumers ------------------------------------------------------------------------------- */

/* The warpgroup's 64 columns of the item behind `tiles` others to D. */
HB_DEVICE void store_tile(const gemm_params *p, const layout *at, const work_item *item, float *acc,
                          uint32_t warpgroup, uint32_t tiles)
{
    const uint32_t thread = thread_index_anew() % 128u;
    if (p->epilogue.row_scale.data != NULL) {
        scale_tokens(acc, factors_of(at, tiles) + thread % 4u * 8u);
    }
    across_claim(1u + warpgroup);
    store_across_pieces(p, item, acc, FRAGMENT, PIECE, item->column + (int32_t)warpgroup * 64,
                        at->staging + warpgroup * STAGING_BYTES, 1u + warpgroup, thread);
}

/* Is there an item behind `tiles` others? */
HB_DEVICE bool await_tile(const layout *at, uint32_t tiles)
{
    const work_ring work = work_ring_after(at->work, tiles);
    return work_await(&work);
}

/* A warpgroup: its 64 rows of weights of every tile of the block. */
HB_DEVICE void consume(const gemm_params *p, const layout *at, uint32_t warp)
{
    FRAGMENT_F32(partial0, GEMM_CHAIN_N / 2);
    FRAGMENT_F32(partial1, GEMM_CHAIN_N / 2);
    FRAGMENT_F32(acc, FRAGMENT);
    work_item item;
    consumer c;
    bool more;
    uint32_t tiles;
    c.ahead = ring_at(at->ring, GEMM_STAGES);
    c.stages = at->stages;
    c.a_offset = warp / 4u * PANEL_BYTES;
    c.scales = at->scales + warp * 64u + lane_index() / 4u * 8u;
    c.partial[0] = partial0;
    c.partial[1] = partial1;
    c.acc = acc;
    c.p = p;
    more = await_tile(at, 0);
    next_stage(&c, more);
    issue(&c, 0, partial0);
    HB_NO_UNROLL
    for (tiles = 0; more; tiles++) {
        more = await_tile(at, tiles + 1);
        sum_tile(&c, padded_blocks(0, p->k_blocks), more);
        item = take_summed(at->work, tiles);
        store_tile(p, at, &item, acc, warp / 4u, tiles);
    }
    wgmma_wait(0);
    across_end();
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* By one lane of the warp that loads, which then waits for nobody: it says itself which tiles are
 * the block's. */
HB_DEVICE void barriers_init(const layout *at)
{
    const ring r = ring_at(at->ring, GEMM_STAGES);
    uint32_t s;
    for (s = 0; s < GEMM_STAGES; s++) {
        mbarrier_init(at->packed + s * 8u, 1);
    }
    ring_init(&r, 2 + PANELS, CONSUMER_WARPS);
    work_ring_init(at->work, CONSUMER_WARPS + 2 + PANELS);
}

KERNEL(GEMM_NAME, gemm_params, p, GEMM_THREADS)
{
    const layout at = layout_of_block();
    const uint32_t warp = warp_index();
    if (warp >= 4) {
        setmaxnreg_inc(CONSUMER_REGISTERS);
        parameter_touch((uint32_t)p->epilogue.d.ld);
        gemm_join(p, GEMM_THREADS);
        consume(p, &at, warp - 4u);
        return;
    }
    setmaxnreg_dec(PRODUCER_REGISTERS);
    if (warp == 0) {
        if (elect_one()) {
            barriers_init(&at);
        }
        warp_sync(); /* all lanes wait at them */
        direct_begin(p, GEMM_THREADS, true);
        produce(p, &at);
    } else if (warp == 1) {
        scales_touch(p);
        gemm_join(p, GEMM_THREADS);
        produce_row_scales(p, &at);
    } else {
        gemm_join(p, GEMM_THREADS);
        expand(p, &at, warp - 2u);
    }
}
