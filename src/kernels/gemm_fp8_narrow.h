/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP8 GEMM for few tokens, any scales, dense and grouped: D = epilogue(A * B^T).
 *
 * With few tokens the time is that of bringing bytes to the SMs: the weights from memory, and the
 * tokens from L2 to every block again.  So tiles are narrow, that all SMs have one, and nearly
 * square, that few bytes come in for each product; and the ring holds all that shared memory can.
 *
 *          n  ->                   one block: TILE_M x TILE_N of D at a time, persistent
 *        +-----+
 *    m   | 64  | consumer 0        warps 0 .. 3     accumulate in registers, promote, store
 *    |   +-----+
 *    v   | 64  | consumer 1        warps 4 .. 7     if TILE_M is 128; else they are the other team
 *        +-----+
 *          four more warps         loads: issues the copies of A and B
 *                                  scales: fetches them, 4 bytes a copy
 *                                  scheduler: says which tile is next
 *                                  nothing
 *
 * PARAMETERS (define before including)
 *   GEMM_NAME       name of the kernel: that of the instance file and of its row in kernels.def
 *   GEMM_TILE_M     8, 16, 32, 64 or 128
 *   GEMM_TILE_N     32, 64 or 128; 64 where TILE_M is less
 *   GEMM_SET        k blocks of a stage: 1, 2 or 4
 *   GEMM_STAGES     stages of the ring: shared memory is GEMM_SMEM_BYTES <= 232,448
 *
 * SHARED MEMORY, from smem_base()
 *   stage s at s * STAGE_BYTES     SET tiles of A, (TILE_M, 128) e4m3, 128-byte swizzle
 *                                  SET tiles of B, (TILE_N, 128) e4m3, 128-byte swizzle
 *   behind the stages              GEMM_STAGES x SET x TILE_M scales of A
 *                                  GEMM_STAGES x SET x TILE_N scales of B (128X128: the first
 *                                  counts)
 *                                  barriers of the ring, work items
 *
 * SIDES.  The tensor core takes 64 rows of one operand at a time, and shared memory gives them all
 * to it, needed or not.  So tiles of fewer than 64 tokens let the weights take that side.  "Lines"
 * are what lies along it, "places" what lies across: rows of A and of B, or of B and of A.
 *
 * TEAMS.  A tile of up to 64 rows takes one warpgroup; the second takes every other tile, so that a
 * tile is stored while the next is multiplied.  They take turns at the ring: a team begins when the
 * other has seen the last stage of its tile, and passes over that tile's stages.
 *
 * START AND END.  Most problems give a block one tile or two, so what is paid once counts.  A block
 * finds neither instructions nor parameters in its caches, and each line comes from L2.  So the
 * warp that loads makes the ring's barriers itself and waits for nobody (direct.h), parameters are
 * touched ahead of their use, and D as most have it is stored by a few instructions in a row.
 *
 * RESULT: docs/numerics.md sections 4 to 6, the same bits as every other kernel.
 */
#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/direct.h"
#include "kernels/tile/epilogue.h"
#include "kernels/tile/lane_scales.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/work.h"

#ifndef GEMM_NAME
#error "define GEMM_NAME"
#endif
#if !defined(GEMM_TILE_M) || !defined(GEMM_TILE_N) || !defined(GEMM_SET) || !defined(GEMM_STAGES)
#error "define GEMM_TILE_M, GEMM_TILE_N, GEMM_SET, GEMM_STAGES"
#endif

#define TILE_M GEMM_TILE_M
#define TILE_N GEMM_TILE_N
#define SET GEMM_SET
#define WEIGHTS_ARE_LINES (TILE_M < 64)
#define BLOCK_K 128
#define A_BYTES (TILE_M * BLOCK_K)
#define B_BYTES (TILE_N * BLOCK_K)
#define STAGE_BYTES (SET * (A_BYTES + B_BYTES))
#if TILE_M > 64
#define TEAMS 1
#else
#define TEAMS 2
#endif
#define TEAM_WARPS (8 / TEAMS)
#define CONSUMER_WARPS 8
#define TURN_BARRIER 1 /* named: of team 0, behind it of team 1 */
#define GEMM_THREADS (CONSUMER_WARPS * 32 + 128)
#define A_SCALES_BYTES (SET * TILE_M * 4)
#define B_SCALES_BYTES (SET * TILE_N * 4)
#define GEMM_SMEM_BYTES                                                                            \
    (1024 + GEMM_STAGES * (STAGE_BYTES + A_SCALES_BYTES + B_SCALES_BYTES) +                        \
     RING_BYTES(GEMM_STAGES) + WORK_BYTES)
#if WEIGHTS_ARE_LINES
#define CHAIN_COLUMNS TILE_M
#else
#define CHAIN_COLUMNS TILE_N
#endif
#define FRAGMENT (CHAIN_COLUMNS / 2)

#if GEMM_SMEM_BYTES > 232448
#error "too many stages"
#endif
#if WEIGHTS_ARE_LINES && TILE_N != 64
#error "the weights of a tile are one block of 64 lines"
#endif

#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS 232

#include "kernels/gemm_fp8_narrow_loop.h"

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
    at.b_scales = at.a_scales + GEMM_STAGES * A_SCALES_BYTES;
    at.ring = at.b_scales + GEMM_STAGES * B_SCALES_BYTES;
    at.work = at.ring + RING_BYTES(GEMM_STAGES);
    return at;
}

/* ---- producers: a warp each, ahead of the consumers by as much as the ring holds ---------------
 */

/* Both operands' tiles.  What a set brings beyond the tile's last k block is not summed. */
HB_DEVICE void produce_set(const gemm_params *p, const layout *at, const work_item *item,
                           int32_t block, ring *r)
{
    const smem_addr stage = at->stages + r->stage * STAGE_BYTES;
    /* Boxes count whole, also where they hang over the edge. */
    const uint32_t bytes = SET * (B_BYTES + (uint32_t)p->a_box_rows * BLOCK_K);
    const smem_addr full = ring_acquire(r, bytes);
    int i;
    HB_UNROLL
    for (i = 0; i < SET; i++) {
        const int32_t k = (block + i) * BLOCK_K;
        tma_load_3d_hint(stage + SET * A_BYTES + (uint32_t)i * B_BYTES, &p->b, full, k,
                         item->column, item->group, p->b_policy);
        tma_load_3d_hint(stage + (uint32_t)i * A_BYTES, &p->a, full, k, item->row, item->plane,
                         L2_EVICT_LAST);
    }
    ring_advance(r);
}

HB_DEVICE void produce(const gemm_params *p, const layout *at)
{
    ring r = ring_at(at->ring, GEMM_STAGES);
    direct_work work = direct_work_at(at->work);
    const bool issues = elect_one();
    work_item item;
    int32_t block;
    if (issues) {
        ring_init(&r, 1 + 32, TEAM_WARPS);
    }
    direct_begin(p, GEMM_THREADS, work_is_direct(p));
    while (direct_take(p, &work, TILE_M, TILE_N, &item)) {
        for (block = item.first_block; issues && block < item.end_block; block += SET) {
            produce_set(p, at, &item, block, &r);
        }
        warp_sync();
    }
}

HB_DEVICE void produce_scales(const gemm_params *p, const layout *at)
{
    ring r = ring_at(at->ring, GEMM_STAGES);
    direct_work work = direct_work_at(at->work);
    work_item item;
    lane_scales a, b;
    int32_t block;
    int i;
    parameter_touch((uint32_t)p->a_scale.stride_mn);
    parameter_touch((uint32_t)p->a_scale.mn_shift);
    parameter_touch((uint32_t)p->b_scale.mn_shift);
    gemm_join(p, GEMM_THREADS);
    while (direct_take(p, &work, TILE_M, TILE_N, &item)) {
        lane_scales_begin(&a, &p->a_scale, item.plane, item.first_block, item.row, item.row_end,
                          TILE_M);
        lane_scales_begin(&b, &p->b_scale, item.group, item.first_block, item.column, p->n, TILE_N);
        HB_NO_UNROLL
        for (block = item.first_block; block < item.end_block; block += SET) {
            ring_wait_empty(&r);
            HB_UNROLL
            for (i = 0; i < SET; i++) {
                const uint32_t slot = r.stage * SET + (uint32_t)i;
                if (block + i < item.end_block) {
                    lane_scales_copy(&a, &p->a_scale, at->a_scales + slot * (TILE_M * 4u), TILE_M);
                    lane_scales_copy(&b, &p->b_scale, at->b_scales + slot * (TILE_N * 4u), TILE_N);
                }
            }
            cp_async_mbarrier_arrive_noinc(r.full + r.stage * 8u);
            ring_advance(&r);
        }
    }
}

/* ---- consumers ---------------------------------------------------------------------------------
 */

/* warpgroup: of the team. */
HB_DEVICE void consumer_begin(consumer *c, const gemm_params *p, const layout *at,
                              uint32_t warpgroup, uint32_t line, uint32_t place)
{
    const smem_addr a = at->stages, b = at->stages + SET * A_BYTES;
    c->ahead = ring_at(at->ring, GEMM_STAGES);
    c->behind = 0;
    c->b_by_column = p->b_scale.mn_shift == 0;
#if WEIGHTS_ARE_LINES
    (void)warpgroup;
    c->lines = b;
    c->places = a;
    c->line_scales = at->b_scales + (c->b_by_column ? line * 4u : 0u);
    c->place_scales = at->a_scales + place * 4u;
#else
    c->lines = a + warpgroup * (64u * BLOCK_K);
    c->places = b;
    c->line_scales = at->a_scales + line * 4u;
    c->place_scales = at->b_scales + (c->b_by_column ? place * 4u : 0u);
#endif
    c->hands_over = false;
}

/* A team's way through the block's tiles. */
typedef struct team_work {
    direct_work tiles;
    bool waits;     /* for its turn: with every tile but the block's first */
    bool ends;      /* there are no more tiles */
    int32_t passed; /* k blocks of the other team's tile, which come before this team's next */
} team_work;

/* The other team's next tile: is there one? */
HB_DEVICE bool other_take(const gemm_params *p, team_work *w)
{
    work_item item;
    w->ends = !direct_take(p, &w->tiles, TILE_M, TILE_N, &item);
    w->passed = w->ends ? 0 : item.end_block - item.first_block;
    return !w->ends;
}

/* The team's next tile, when it is this team's turn. */
HB_DEVICE bool team_take(const gemm_params *p, team_work *w, consumer *c, work_item *item)
{
#if TEAMS == 1
    (void)c;
    return vote_any(direct_take(p, &w->tiles, TILE_M, TILE_N, item));
#else
    const uint32_t team = warp_index() / TEAM_WARPS;
    if (w->ends) {
        return false;
    }
    ring_pass(&c->ahead, ((uint32_t)w->passed + SET - 1) / SET, GEMM_STAGES);
    c->behind = c->ahead.stage;
    if (!direct_take(p, &w->tiles, TILE_M, TILE_N, item)) {
        return false;
    }
    c->hands_over = other_take(p, w);
    c->next_turn = TURN_BARRIER + 1 - team;
    if (w->waits) {
        barrier_sync(TURN_BARRIER + team, CONSUMER_WARPS * 32);
    }
    w->waits = true;
    return true;
#endif
}

HB_DEVICE void consume(const gemm_params *p, const layout *at, uint32_t warpgroup)
{
    FRAGMENT_F32(even, SET * FRAGMENT);
    FRAGMENT_F32(odd, SET * FRAGMENT);
    FRAGMENT_F32(acc, FRAGMENT);
    const uint32_t thread = thread_index() % (TEAM_WARPS * 32u);
    const uint32_t line = thread / 32u * 16u + thread % 32u / 4u; /* of the thread's elements */
    const uint32_t place = thread % 4u * 2u;
    const int32_t warp_line = (int32_t)(warp_index() % TEAM_WARPS * 16u);
    work_item item;
    team_work work;
    consumer c;
    int i;
    parameter_touch((uint32_t)p->epilogue.d.ld);
    consumer_begin(&c, p, at, TEAMS > 1 ? 0 : warpgroup, line, place);
    c.partial[0] = even;
    c.partial[1] = odd;
    c.acc = acc;
    work.tiles = direct_work_at(at->work);
    work.ends = false;
    work.passed = 0;
    gemm_join(p, GEMM_THREADS);
    work.waits = TEAMS > 1 && warpgroup > 0 && other_take(p, &work); /* the other one begins */
    while (team_take(p, &work, &c, &item)) {
        HB_UNROLL
        for (i = 0; i < FRAGMENT; i++) {
            acc[i] = 0.0f;
        }
        sum_tile(&c, (int32_t)shuffle_u32((uint32_t)(item.end_block - item.first_block), 0));
#if WEIGHTS_ARE_LINES
        if (vote_any(item.column + warp_line < p->n)) {
            epilogue(p, &item, acc, FRAGMENT, item.row + (int32_t)place,
                     item.column + (int32_t)line, true);
        }
#else
        if (vote_any(item.row + warp_line < item.row_end)) {
            epilogue(p, &item, acc, FRAGMENT, item.row + (int32_t)line,
                     item.column + (int32_t)place, false);
        }
#endif
    }
}

/* ---- the block ---------------------------------------------------------------------------------
 */

/* A warp of its own: what the others need before they begin, then the scheduler. */
HB_DEVICE void prepare_and_schedule(const gemm_params *p, const layout *at)
{
    if (elect_one()) {
        if (p->k_blocks > 0) { /* else there are no maps */
            tma_prefetch_map(&p->b);
            tma_prefetch_map(&p->a);
        }
        work_ring_init(at->work, CONSUMER_WARPS + 2);
    }
    scales_prepare(&p->a_scale, at->a_scales, GEMM_STAGES * SET * TILE_M, lane_index(), 32);
    scales_prepare(&p->b_scale, at->b_scales, GEMM_STAGES * SET * TILE_N, lane_index(), 32);
    gemm_join(p, GEMM_THREADS);
    if (!work_is_direct(p)) {
        work_schedule(p, TILE_M, TILE_N, work_ring_at(at->work));
    }
}

KERNEL(GEMM_NAME, gemm_params, p, GEMM_THREADS)
{
    const layout at = layout_of_block();
    const uint32_t warp = warp_index();
    if (warp < CONSUMER_WARPS) {
        setmaxnreg_inc(CONSUMER_REGISTERS);
        consume(p, &at, warp / 4u);
        return;
    }
    setmaxnreg_dec(PRODUCER_REGISTERS);
    if (warp == CONSUMER_WARPS) {
        produce(p, &at);
    } else if (warp == CONSUMER_WARPS + 1) {
        produce_scales(p, &at);
    } else if (warp == CONSUMER_WARPS + 2) {
        prepare_and_schedule(p, &at);
    } else {
        gemm_join(p, GEMM_THREADS);
    }
}
