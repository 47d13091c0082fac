/* SPDX-License-Identifier: Apache-2.0 */
/*
 * W4A8 GEMM for few tokens where few SMs have a tile, dense and grouped: D = epilogue(A * B^T).
 *
 * As gemm_w4a8.h, but for the consumers: two or three warpgroups share one tile of 64 rows of
 * weights and take turns along k.  One alone spends on a k block twice the time in which its bytes
 * arrive and more, most of it waiting for itself: for words, for the tensor core, for sums.
 *
 *               k ->                       one block: 64 rows of B x TILE_TOKENS rows of A
 *               +-----+-----+-----+-----+
 *    64 rows    |  0  |  1  |  0  |  1  |    warps 0 .. 3   producer, scheduler, two for scales
 *               +-----+-----+-----+-----+    warps 4 .. 7   consumer 0: even turns
 *                 turns of 4 k blocks        warps 8 .. 11  consumer 1: odd turns
 *                                            warps 12, 13   with 16 tokens: two more for scales
 *                                            or 12 .. 15    consumer 2: each has every third turn
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME          name of the kernel: that of the instance file and of its row in kernels.def
 *   GEMM_TILE_TOKENS   16 or 32
 *   GEMM_CONSUMERS     2, or with 16 tokens 3: with long k
 *   GEMM_STAGE_BLOCKS  k blocks of 128 a stage: 2 or 4
 *   GEMM_TURN_STAGES   stages a turn
 *   GEMM_STAGES        stages of the ring: shared memory is GEMM_SMEM_BYTES <= 232,448
 *   GEMM_SCALES_AHEAD  turns of a scale warp whose scales are on their way
 * (gemm_w4a8_scales_ahead.h)
 *
 * SHARED MEMORY, from smem_base()
 *   stages             as in gemm_w4a8.h, of 64 rows
 *   behind the stages  staging of D of each warpgroup (tile/store_across.h)
 *                      acc between two turns (gemm_w4a8_turns_loop.h)
 *                      scales (gemm_w4a8_scales.h)
 *                      barriers of the ring and of the baton, work items
 *
 * START.  Warps prepare apart and meet when they have.  Where a dense problem's first tile is known
 * (tile/direct.h) the warp that loads waits for nobody, and the scheduler has put the tile into the
 * work ring before the others meet.  While the first copies are on their way the consumers run the
 * epilogue once for a tile without rows, to have its instructions at hand.
 *
 * RESULT: docs/numerics.md sections 3 to 6, the same bits as every other kernel.
 */
#if GEMM_SCALES_AHEAD > 0
#define WORK_SLOTS 8 /* scales are some tiles ahead of the sums, and their copies of them */
#endif

#define GROUP_AT_ONCE 1 /* tile/group_rows.h */

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/direct.h"
#include "kernels/tile/epilogue.h"
#include "kernels/tile/int4_atom.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/store_across.h"
#include "kernels/tile/work.h"

#ifndef GEMM_CONSUMERS
#define GEMM_CONSUMERS 2
#endif
#if !defined(GEMM_NAME) || !defined(GEMM_TILE_TOKENS) || !defined(GEMM_STAGE_BLOCKS) ||            \
    !defined(GEMM_TURN_STAGES) || !defined(GEMM_STAGES) || !defined(GEMM_SCALES_AHEAD)
#error "define the parameters"
#endif

#define GEMM_GROUPS 1       /* weight groups a k block */
#define GEMM_TOKEN_SCALES 2 /* scales of A along k: both with and without */
#define TILE_ROWS 64
#define TILE_TOKENS GEMM_TILE_TOKENS
#define STAGE_BLOCKS GEMM_STAGE_BLOCKS
#define UNROLL (GEMM_TURN_STAGES * STAGE_BLOCKS) /* k blocks a turn, the trip of the main loop */
#define BLOCK_K 128
#define FRAGMENT (TILE_TOKENS / 2)
#define PANELS 1 /* of 64 rows */
#define CONSUMERS GEMM_CONSUMERS
#define CONSUMER_WARPS (CONSUMERS * 4)
/* With 16 tokens the scales of a k block take two warps as long as two consumers take for the
 * block: two more, behind the consumers.  With three consumers there is no room for them. */
#define SCALE_WARPS (TILE_TOKENS == 16 && CONSUMERS == 2 ? 4 : 2)
#define SCALES_AHEAD GEMM_SCALES_AHEAD
#define GEMM_THREADS ((2 + CONSUMER_WARPS + SCALE_WARPS) * 32)
#define RING_TAKERS 4 /* warps that give a stage back */
/* Named barriers of the warpgroups' stagings: others have 3 to 5. */
#define STORE_BARRIER(which) ((which) < 2 ? 1u + (which) : 6u)
#define IS_CONSUMER(warp) ((warp) >= 4 && (SCALE_WARPS == 2 || (warp) < 4 + CONSUMER_WARPS))
#define SCALE_WARP(warp) ((warp) - (SCALE_WARPS == 2 || (warp) < 4 ? 2u : CONSUMER_WARPS + 2u))

#define PANEL_BYTES (STAGE_BLOCKS * ATOM_BYTES)
#define WEIGHT_BYTES PANEL_BYTES
#define TOKEN_BYTES (TILE_TOKENS * BLOCK_K) /* of a k block */
#define STAGE_BYTES (WEIGHT_BYTES + STAGE_BLOCKS * TOKEN_BYTES)
#define GROUP_SCALE_BYTES ((TILE_ROWS + TILE_TOKENS) * 4u)
#define SCALE_BYTES (STAGE_BLOCKS * GROUP_SCALE_BYTES)
#define STAGING_BYTES ACROSS_STAGING_BYTES(TILE_TOKENS)
#define HANDED_BYTES 2048u                                /* four sums of each of 128 threads */
#define ACC_BYTES (FRAGMENT / 4u * HANDED_BYTES)          /* between two turns */
#define COPIED_BYTES (SCALE_WARPS * SCALES_AHEAD * 1024u) /* scales on their way */
#define BATON_BYTES (CONSUMER_WARPS * 8u)
#define GEMM_SMEM_BYTES                                                                            \
    (1024 + GEMM_STAGES * (STAGE_BYTES + SCALE_BYTES) + COPIED_BYTES + CONSUMERS * STAGING_BYTES + \
     ACC_BYTES + RING_BYTES(GEMM_STAGES) + BATON_BYTES + WORK_BYTES)

#if GEMM_SMEM_BYTES > 232448
#error "too many stages"
#endif
#if TILE_TOKENS != 16 && TILE_TOKENS != 32
#error "with more tokens there are too few registers"
#endif
#if CONSUMERS != 2 && (CONSUMERS != 3 || TILE_TOKENS != 16)
#error "two warpgroups take turns, or with 16 tokens three"
#endif
#if UNROLL != 4
#error "the fragments are those of four k blocks"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WGMMA JOIN(wgmma_e4m3_rs_n, GEMM_TILE_TOKENS)

/* Where things lie in shared memory. */
typedef struct layout {
    smem_addr stages;
    smem_addr staging;
    smem_addr acc;
    smem_addr scales;
    smem_addr ring;
    smem_addr batons; /* a barrier for each consumer warp */
    smem_addr work;
} layout;

HB_DEVICE layout layout_of_block(void)
{
    layout at;
    at.stages = smem_base();
    at.staging = at.stages + GEMM_STAGES * STAGE_BYTES; /* a multiple of 1,024 */
    at.acc = at.staging + CONSUMERS * STAGING_BYTES;
    at.scales = at.acc + ACC_BYTES;
    at.ring = at.scales + GEMM_STAGES * SCALE_BYTES + COPIED_BYTES;
    at.batons = at.ring + RING_BYTES(GEMM_STAGES);
    at.work = at.batons + BATON_BYTES;
    return at;
}

/* The group of a tile's last stage whose token scales are the epilogue's factors instead. */
#define FACTOR_GROUP (STAGE_BLOCKS - 1)

#include "kernels/gemm_w4a8_producer.h"
#include "kernels/gemm_w4a8_scales.h"
#include "kernels/gemm_w4a8_tiles.h"
#include "kernels/gemm_w4a8_turns_loop.h"

/* The loop by the form of the words. */
HB_DEVICE void sum_tile_of(consumer *c, bool a128, int32_t turns)
{
    loop_kind kind;
    kind.groups = 1;
    kind.a128 = a128;
    if (c->p->flags & GEMM_HOLDS_MINUS8) {
        kind.f3 = true;
        sum_turns(c, kind, turns);
    } else {
        kind.f3 = false;
        sum_turns(c, kind, turns);
    }
}

/* And by the scales of A.  The choice is the same for all threads. */
HB_DEVICE void sum_tile(consumer *c, int32_t turns)
{
    if (c->p->a_scale.data != NULL) {
        sum_tile_of(c, true, turns);
    } else {
        sum_tile_of(c, false, turns);
    }
}

/* The place of a thread of warpgroup `which` before its first tile; without its fragments. */
HB_DEVICE consumer consumer_of(const gemm_params *p, const layout *at, uint32_t which)
{
    const uint32_t warp = warp_index() % 4u;
    consumer c;
    c.next = ring_at(at->ring, GEMM_STAGES);
    c.which = which;
    c.turn = 0;
    c.parity = which == 0 ? 1u : 0u; /* the first turn waits for nobody */
    c.baton = at->batons + (which * 4u + warp) * 8u;
    c.other = at->batons + ((which + 1u) % CONSUMERS * 4u + warp) * 8u;
    c.words = thread_index() % 128u * 16u;
    c.handed = at->acc + c.words;
    c.stages = at->stages;
    c.scales = at->scales;
    c.p = p;
    return c;
}

/* Few tokens go to D as they are: sooner than by way of the staging. */
HB_DEVICE void store_plain(const gemm_params *p, const work_item *item, const float *acc)
{
    const uint32_t thread = thread_index_anew() % 128u;
    fragment_place at;
    fragment_place_set(&at, p, item, item->row + (int32_t)(thread % 4u * 2u),
                       item->column + (int32_t)(thread / 32u * 16u + thread % 32u / 4u));
    store_places_bf16(&p->epilogue.d, item->plane * p->epilogue.d.plane_stride, acc, FRAGMENT, &at);
}

/* The sums of warpgroup `which`, or without them +0. */
HB_DEVICE void store_sums(const gemm_params *p, const layout *at, const work_item *item, float *acc,
                          uint32_t which, bool summed)
{
    const uint32_t thread = thread_index_anew() % 128u;
    const smem_addr staging = at->staging + which * STAGING_BYTES;
    if (TILE_TOKENS == 16 && HB_LIKELY(p->flags & GEMM_D_SCALED) && p->k_blocks > 0) {
        store_plain(p, item, acc);
        return;
    }
    across_claim(STORE_BARRIER(which));
    if (TILE_TOKENS > 16 && HB_LIKELY(across_is_plain(p)) && p->k_blocks > 0) {
        store_across_pieces(p, item, acc, FRAGMENT, FRAGMENT, item->column, staging,
                            STORE_BARRIER(which), thread);
    } else {
        epilogue_across(p, item, acc, FRAGMENT, FRAGMENT, item->column, !summed, staging,
                        STORE_BARRIER(which), thread);
    }
}

HB_DEVICE void consume(const gemm_params *p, const layout *at, uint32_t which)
{
    FRAGMENT_U32(a0, ATOM_REGISTERS);
    FRAGMENT_U32(a1, ATOM_REGISTERS);
    FRAGMENT_U32(a2, ATOM_REGISTERS);
    FRAGMENT_U32(a3, ATOM_REGISTERS);
    FRAGMENT_F32(partial0, FRAGMENT);
    FRAGMENT_F32(partial1, FRAGMENT);
    FRAGMENT_F32(partial2, FRAGMENT);
    FRAGMENT_F32(partial3, FRAGMENT);
    FRAGMENT_F32(acc, FRAGMENT);
    consumer c = consumer_of(p, at, which);
    work_item item = work_nothing();
    bool stores = true;
    uint32_t tiles = 0;
    int32_t turns = 0;
    int i;
    c.a[0] = a0;
    c.a[1] = a1;
    c.a[2] = a2;
    c.a[3] = a3;
    c.partial[0] = partial0;
    c.partial[1] = partial1;
    c.partial[2] = partial2;
    c.partial[3] = partial3;
    c.acc = acc;
    parameter_touch((uint32_t)p->epilogue.d.ld);
    gemm_join(p, GEMM_THREADS);
    for (;;) {
        if (turns == 0) {
            HB_UNROLL
            for (i = 0; i < FRAGMENT; i++) {
                acc[i] = 0.0f;
            }
        }
        if (stores) {
            store_sums(p, at, &item, acc, which, turns > 0);
        }
        turns = next_trips(at->work, tiles);
        if (turns < 0) {
            break;
        }
        if (turns > 0) {
            sum_tile(&c, turns);
        }
        /* That which had the last turn, or would have the next. */
        stores = which == (turns > 0 ? (c.turn + CONSUMERS - 1) % CONSUMERS : c.turn);
        item = take_summed(at->work, tiles);
        tiles++;
    }
    across_end();
}

/* ---- the block ------------------------------------------------------------------------------- */

/* The scheduler's warp: what the others need before they begin, and the first work item where it is
 * known; then all other tiles. */
HB_DEVICE void prepare_and_schedule(const gemm_params *p, const layout *at)
{
    uint32_t i;
    if (lane_index() == 0) {
        work_ring_init(at->work, CONSUMER_WARPS + SCALE_WARPS + 1);
        for (i = 0; i < CONSUMER_WARPS; i++) {
            mbarrier_init(at->batons + i * 8u, 1);
        }
        if (p->flags & GEMM_D_BOXES) {
            tma_prefetch_map(&p->d);
        }
    }
    known_put_first(p, at->work, TILE_TOKENS, TILE_ROWS);
    gemm_join(p, GEMM_THREADS);
    known_schedule(p, at->work, TILE_TOKENS, TILE_ROWS);
}

KERNEL(GEMM_NAME, gemm_params, p, GEMM_THREADS)
{
    const layout at = layout_of_block();
    const uint32_t warp = warp_index();
    if (IS_CONSUMER(warp)) {
        consume(p, &at, warp / 4u - 1u);
        return;
    }
    if (warp == 0) {
        produce(p, &at);
    } else if (warp == 1) {
        prepare_and_schedule(p, &at);
    } else {
        produce_scales(p, at.scales, ring_at(at.ring, GEMM_STAGES), work_ring_at(at.work),
                       SCALE_WARP(warp));
    }
}
