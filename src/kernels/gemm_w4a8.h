/* SPDX-License-Identifier: Apache-2.0 */
/*
 * W4A8 GEMM, dense and grouped: D = epilogue(A * B^T), B int4 packed (docs/formats.md).
 *
 * The weights take the side of the tensor core that always has 64 rows: they come from registers,
 * where int4 becomes e4m3 (tile/int4_atom.h).  Tokens come from shared memory.
 *
 *                 tokens ->                one block: TILE_ROWS rows of B x TILE_TOKENS rows of A
 *               +-------------+
 *    rows of B  | 64          |            warps 0 .. 3   producer, scheduler, two for scales
 *    |          +-------------+            warps 4 .. 7   consumer 0
 *    v          | 64          |            warps 8 .. 11  consumer 1: of 128 rows the lower, or of
 *               +-------------+                           every other tile (TEAMS)
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME          name of the kernel: that of the instance file and of its row in kernels.def
 *   GEMM_TILE_ROWS     64 or 128
 *   GEMM_TILE_TOKENS   an n that wgmma has
 *   GEMM_STAGE_BLOCKS  k blocks of 128 a stage: 1, 2 or, with two partial accumulators, 4
 *   GEMM_STAGES        stages of the ring: shared memory is GEMM_SMEM_BYTES <= 232,448
 *   GEMM_PARTIALS      partial accumulators: 2, or 1 where registers allow no more
 *   GEMM_GROUPS        weight groups a k block at most: 1, or 4 (groups of 32 and 64)
 *   GEMM_TOKEN_SCALES  scales of A along k: 0 never, 1 always, 2 both
 *   GEMM_SCALES_AHEAD  turns of a scale warp whose scales are on their way, 0 if not defined
 *                      (gemm_w4a8_scales_ahead.h)
 *   GEMM_TEAMS         2: two warpgroups take tiles of 64 rows in turn, so that one's begins under
 *                      the end of the other's; else 1
 *   GEMM_STORE_TOKENS  where not all of a tile's: those of D in the staging at a time, of 16
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES     weights: TILE_ROWS / 64 x STAGE_BLOCKS atoms of 4,096 bytes
 *                                  tokens: STAGE_BLOCKS x (TILE_TOKENS, 128) e4m3, 128-byte swizzle
 *   behind the stages              staging of D, one a warpgroup (tile/store_across.h)
 *                                  scales (gemm_w4a8_scales.h)
 *                                  barriers of the ring, work items
 *
 * RESULT: docs/numerics.md sections 3 to 6, the same bits whatever the tile.
 */
#ifndef GEMM_SCALES_AHEAD
#define GEMM_SCALES_AHEAD 0
#endif
#if GEMM_SCALES_AHEAD > 0
#define WORK_SLOTS 8 /* scales are some tiles ahead of the sums, and their copies of them */
#endif

#define GROUP_AT_ONCE 1 /* tile/group_rows.h */

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/epilogue.h"
#include "kernels/tile/int4_atom.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/store_across.h"
#include "kernels/tile/work.h"

#ifndef GEMM_TEAMS
#define GEMM_TEAMS 1
#endif
#ifndef GEMM_STORE_TOKENS
#define GEMM_STORE_TOKENS GEMM_TILE_TOKENS
#endif
#if !defined(GEMM_NAME) || !defined(GEMM_TILE_ROWS) || !defined(GEMM_TILE_TOKENS) ||               \
    !defined(GEMM_STAGE_BLOCKS) || !defined(GEMM_STAGES) || !defined(GEMM_PARTIALS) ||             \
    !defined(GEMM_GROUPS) || !defined(GEMM_TOKEN_SCALES)
#error "define the parameters"
#endif

#define TILE_ROWS GEMM_TILE_ROWS
#define TILE_TOKENS GEMM_TILE_TOKENS
#define STAGE_BLOCKS GEMM_STAGE_BLOCKS
#define UNROLL (STAGE_BLOCKS == 1 ? 2 : STAGE_BLOCKS) /* k blocks a trip of the main loop */
#define BLOCK_K 128
#define FRAGMENT (TILE_TOKENS / 2)
#define PANELS (TILE_ROWS / 64)
#define TEAMS GEMM_TEAMS
#define CONSUMER_WARPS (PANELS * TEAMS * 4)
#define RING_TAKERS CONSUMER_WARPS /* warps that give a stage back */
#define SCALE_WARPS 2
#define SCALES_AHEAD GEMM_SCALES_AHEAD
#define COPIED_BYTES (SCALE_WARPS * SCALES_AHEAD * 1024u) /* scales on their way */
#define GEMM_THREADS (128 + CONSUMER_WARPS * 32)

#define PANEL_BYTES (STAGE_BLOCKS * ATOM_BYTES) /* of one warpgroup's rows in a stage */
#define WEIGHT_BYTES (PANELS * PANEL_BYTES)
#define TOKEN_BYTES (TILE_TOKENS * BLOCK_K) /* of a k block */
#define STAGE_BYTES (WEIGHT_BYTES + STAGE_BLOCKS * TOKEN_BYTES)
#define GROUP_SCALE_BYTES ((TILE_ROWS + TILE_TOKENS) * 4u)
#define SCALE_BYTES (STAGE_BLOCKS * GEMM_GROUPS * GROUP_SCALE_BYTES)
#define STAGING_BYTES ACROSS_STAGING_BYTES(GEMM_STORE_TOKENS) /* of a warpgroup, for D */
#define PIECE (GEMM_STORE_TOKENS / 2) /* of the fragment, staged at a time */
#define GEMM_SMEM_BYTES                                                                            \
    (1024 + GEMM_STAGES * (STAGE_BYTES + SCALE_BYTES) + COPIED_BYTES +                             \
     PANELS * TEAMS * STAGING_BYTES + RING_BYTES(GEMM_STAGES) + WORK_BYTES)

#if TEAMS > 1 && PANELS > 1
#error "teams take tiles of 64 rows"
#endif
#if GEMM_PARTIALS == 1 && STAGE_BLOCKS > 2
#error "with one partial accumulator a trip is two blocks"
#endif
#if GEMM_STORE_TOKENS != GEMM_TILE_TOKENS && GEMM_STORE_TOKENS % 16 != 0
#error "the staging is filled by 16 tokens at a time"
#endif
#if GEMM_SMEM_BYTES > 232448
#error "too many stages"
#endif

/* The pool of 3 x 168 registers a thread, shared out by need. */
#define PRODUCER_REGISTERS (TILE_TOKENS > 128 ? 40 : TILE_TOKENS == 128 ? 88 : 72)
#define CONSUMER_REGISTERS (TILE_TOKENS > 128 ? 232 : TILE_TOKENS == 128 ? 208 : 216)

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WGMMA JOIN(wgmma_e4m3_rs_n, GEMM_TILE_TOKENS)

/* Where things lie in shared memory. */
typedef struct layout {
    smem_addr stages;
    smem_addr staging;
    smem_addr scales;
    smem_addr ring;
    smem_addr work;
} layout;

HB_DEVICE layout layout_of_block(void)
{
    layout at;
    at.stages = smem_base();
    at.staging = at.stages + GEMM_STAGES * STAGE_BYTES; /* a multiple of 1,024 */
    at.scales = at.staging + PANELS * TEAMS * STAGING_BYTES;
    at.ring = at.scales + GEMM_STAGES * SCALE_BYTES + COPIED_BYTES;
    at.work = at.ring + RING_BYTES(GEMM_STAGES);
    return at;
}

/* The group of a tile's last stage whose token scales are the epilogue's factors instead. */
#define FACTOR_GROUP ((STAGE_BLOCKS - 1) * GEMM_GROUPS)

#include "kernels/gemm_w4a8_loop.h"
#include "kernels/gemm_w4a8_producer.h"
#include "kernels/gemm_w4a8_scales.h"

/* ---- consumers ------------------------------------------------------------------------------- */

/* The loop by the form of the words. */
HB_DEVICE void sum_tile_of(const gemm_params *p, consumer *c, int groups, bool a128, int32_t trips)
{
    loop_kind kind;
    kind.groups = groups;
    kind.a128 = a128;
    if (p->flags & GEMM_HOLDS_MINUS8) {
        kind.f3 = true;
        sum_blocks(c, kind, trips);
    } else {
        kind.f3 = false;
        sum_blocks(c, kind, trips);
    }
}

/* The loop by the scales of A. */
HB_DEVICE void sum_tile_groups(const gemm_params *p, consumer *c, int groups, int32_t trips)
{
#if GEMM_TOKEN_SCALES == 2
    if (p->a_scale.data != NULL) {
        sum_tile_of(p, c, groups, true, trips);
    } else {
        sum_tile_of(p, c, groups, false, trips);
    }
#else
    sum_tile_of(p, c, groups, GEMM_TOKEN_SCALES == 1, trips);
#endif
}

/* The choice is the same for all threads. */
HB_DEVICE void sum_tile(const gemm_params *p, consumer *c, int32_t trips)
{
#if GEMM_GROUPS == 1
    sum_tile_groups(p, c, 1, trips);
#else
    if (p->block_k == 32) {
        sum_tile_groups(p, c, 4, trips);
    } else {
        sum_tile_groups(p, c, 2, trips);
    }
#endif
}

/* The tile that next_trips() has seen, to D. */
HB_DEVICE void store_tile(const consumer *c, smem_addr staging, bool summed)
{
    const work_item item = take_summed(c->work, c->tiles);
    const int32_t column = item.column + (int32_t)c->warpgroup * 64;
    if (!CLAIMS_EARLY || !summed) {
        across_claim(store_barrier(c));
    }
    if (CLAIMS_EARLY && HB_LIKELY(summed && across_is_plain(c->p))) {
        store_across_pieces(c->p, &item, c->acc, FRAGMENT, PIECE, column, staging, store_barrier(c),
                            thread_index_anew() % 128u);
    } else {
        epilogue_across(c->p, &item, c->acc, FRAGMENT, PIECE, column, !summed, staging,
                        store_barrier(c), thread_index_anew() % 128u);
    }
}

HB_DEVICE void clear_sums(consumer *c)
{
    int i;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i++) {
        c->acc[i] = 0.0f;
    }
}

#if GEMM_PARTIALS == 1 && TEAMS == 1
/* The tile that is summed to D, and the next one's first chain: ahead of the store where D has no
 * terms, which take many registers. */
HB_DEVICE void end_tile(consumer *c, smem_addr staging)
{
    if (HB_LIKELY(across_is_plain(c->p))) {
        work_item item;
        issue_next(c);
        finish_tile(c);
        item = take_summed(c->work, c->tiles);
        across_claim(store_barrier(c));
        store_across_pieces(c->p, &item, c->acc, FRAGMENT, PIECE,
                            item.column + (int32_t)c->warpgroup * 64, staging, store_barrier(c),
                            thread_index_anew() % 128u);
    } else {
        finish_tile(c);
        store_tile(c, staging, true);
        issue_next(c);
    }
}

/* All tiles; none of their sums is empty. */
HB_DEVICE void consume_ahead(consumer *c, smem_addr staging, int32_t trips)
{
    const loop_kind kind = {(c->p->flags & GEMM_HOLDS_MINUS8) != 0, false, 1};
    prepare_next(c, kind, 0, true);
    leave_ring(c);
    issue_next(c);
    while (trips > 0) {
        clear_sums(c);
        sum_tile(c->p, c, trips);
        end_tile(c, staging);
        c->tiles++;
        trips = awaited_trips(c->work, c->tiles); /* by sum_blocks() */
    }
    wgmma_wait(0);
}
#endif

/* The value itself, by way of a shuffle: what ptxas could compute anew in every trip it keeps. */
HB_DEVICE uint32_t kept(uint32_t value)
{
    return shuffle_u32(value, lane_index());
}

/* The place of a thread of consumer `which` before its first tile; without its fragments. */
HB_DEVICE consumer consumer_of(const gemm_params *p, const layout *at, uint32_t which)
{
    const uint32_t words = thread_index() % 128u * 16u;
    consumer c;
    c.ahead = ring_at(at->ring, GEMM_STAGES);
    c.passed = 0;
    c.stages = at->stages;
    c.stage[0] = c.stage[1] = 0;
    c.scales = at->scales;
    c.work = at->work;
    c.tiles = 0;
    c.p = p;
    c.warpgroup = TEAMS == 1 ? which : 0u;
    c.team = which - c.warpgroup;
#if GEMM_PARTIALS == 1
    c.always = (int32_t)shuffle_u32((uint32_t)p->k_blocks, 0) >= 0;
#endif
    c.words = kept(at->stages + c.warpgroup * PANEL_BYTES + words);
    c.rows = kept(at->scales + row_offset(c.warpgroup, words));
    return c;
}

/* All tiles of the block, or every TEAMS-th. */
HB_DEVICE void consume_tiles(consumer *c, smem_addr staging)
{
    int32_t trips = next_trips(c->work, 0);
#if GEMM_PARTIALS == 1 && TEAMS == 1
    if (trips > 0) {
        consume_ahead(c, staging, trips);
        trips = -1;
    }
    while (trips == 0) {
        clear_sums(c);
        store_tile(c, staging, false);
        c->tiles++;
        trips = next_trips(c->work, c->tiles);
    }
#else
    while (trips >= 0) {
        if (TEAMS == 1 || c->tiles % TEAMS == c->team) {
            clear_sums(c);
            if (trips > 0) {
                sum_tile(c->p, c, trips);
#if GEMM_PARTIALS == 1
                finish_tile(c);
#endif
            }
            store_tile(c, staging, trips > 0);
        } else {
            pass_tile(c, trips);
        }
        c->tiles++;
        trips = next_trips(c->work, c->tiles);
    }
#endif
    across_end();
}

HB_DEVICE void consume(const gemm_params *p, const layout *at, uint32_t which)
{
    FRAGMENT_U32(a0, ATOM_REGISTERS);
    FRAGMENT_U32(a1, ATOM_REGISTERS);
    FRAGMENT_F32(partial0, FRAGMENT);
#if GEMM_PARTIALS == 2
    FRAGMENT_F32(partial1, FRAGMENT);
#endif
    FRAGMENT_F32(acc, FRAGMENT);
    const smem_addr staging = at->staging + which * STAGING_BYTES;
    consumer c = consumer_of(p, at, which);
    c.a[0] = a0;
    c.a[1] = a1;
    c.partial[0] = partial0;
#if GEMM_PARTIALS == 2
    c.partial[1] = partial1;
#endif
    c.acc = acc;
    parameter_touch((uint32_t)p->epilogue.d.ld);
    gemm_join(p, GEMM_THREADS);
    consume_tiles(&c, staging);
}

/* The scheduler's warp: what the others need before they begin, and the first work item where it is
 * known; then all other tiles. */
HB_DEVICE void prepare_and_schedule(const gemm_params *p, const layout *at)
{
    if (lane_index() == 0) {
        work_ring_init(at->work, CONSUMER_WARPS + 3);
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
    if (warp >= 4) {
#if CONSUMER_WARPS > 4
        setmaxnreg_inc(CONSUMER_REGISTERS);
#endif
        consume(p, &at, warp / 4u - 1u);
        return;
    }
#if CONSUMER_WARPS > 4
    setmaxnreg_dec(PRODUCER_REGISTERS);
#endif
    if (warp == 0) {
        produce(p, &at);
    } else if (warp == 1) {
        prepare_and_schedule(p, &at);
    } else {
        produce_scales(p, at.scales, ring_at(at.ring, GEMM_STAGES), work_ring_at(at.work),
                       warp - 2u);
    }
}
