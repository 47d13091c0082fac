/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumers' loop of gemm_fp8_narrow.h, which defines the macros.
 *
 * A set is what one stage brings.  All its k blocks are issued at once, into one of two sets of
 * partial sums, and promoted while the tensor core works on the next set; a stage's scales are
 * loaded while it works on that stage.  ptxas keeps an open wgmma group over a loop's back edge
 * only if the wait for it is wait 0.
 */
#ifndef HALFBYTE_KERNELS_GEMM_FP8_NARROW_LOOP_H
#define HALFBYTE_KERNELS_GEMM_FP8_NARROW_LOOP_H

#include "kernels/hopper/hopper.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/wgmma_chain.h"

/*
 * LINES are what lies along the 64-row side, PLACES what lies across: rows of A and of B, or, with
 * WEIGHTS_ARE_LINES, rows of B and of A.
 */
#if WEIGHTS_ARE_LINES
#define LINE_TILE TILE_N
#define PLACE_TILE TILE_M
#define LINE_BYTES B_BYTES
#define PLACE_BYTES A_BYTES
#else
#define LINE_TILE TILE_M
#define PLACE_TILE TILE_N
#define LINE_BYTES A_BYTES
#define PLACE_BYTES B_BYTES
#endif
#define LINE_SCALES_BYTES (SET * LINE_TILE * 4)
#define PLACE_SCALES_BYTES (SET * PLACE_TILE * 4)

/* Scales of a set: of lines g and g + 8, times that of the places where they have one; where the
 * places are tokens, also of this thread's. */
typedef struct set_scales {
    float low[SET], high[SET];
#if WEIGHTS_ARE_LINES
    uint32_t place[SET][FRAGMENT / 2];
#else
    float of_b[SET];
#endif
} set_scales;

/*
 * A consumer thread's place: the stage that it issues from (`ahead`), the one that it promotes from
 * and gives back (`behind`), its scales, its accumulators.  Even sets use [0], odd ones [1].
 */
typedef struct consumer {
    ring ahead;
    uint32_t behind;
    smem_addr lines, places;             /* this warpgroup's tiles of stage 0 */
    smem_addr line_scales, place_scales; /* this thread's, of stage 0's first k block */
    bool b_by_column;                    /* scales of B: one a column, or one in all */
    bool hands_over;                     /* the other team has a tile behind this one */
    uint32_t next_turn;                  /* its barrier */
    set_scales scales[2];
    float *partial[2]; /* of SET k blocks */
    float *acc;
} consumer;

#if WEIGHTS_ARE_LINES

HB_DEVICE void load_scales(const consumer *c, set_scales *s, uint32_t stage)
{
    const smem_addr lines = c->line_scales + stage * LINE_SCALES_BYTES;
    const smem_addr places = c->place_scales + stage * PLACE_SCALES_BYTES;
    const smem_addr high = lines + (c->b_by_column ? 32u : 0u);
    int i, j;
    HB_UNROLL
    for (i = 0; i < SET; i++) {
        s->low[i] = smem_load_f32(lines + (uint32_t)i * (LINE_TILE * 4u));
        s->high[i] = smem_load_f32(high + (uint32_t)i * (LINE_TILE * 4u));
        HB_UNROLL
        for (j = 0; j < FRAGMENT / 2; j += 2) {
            smem_load_u32x2(places + (uint32_t)i * (PLACE_TILE * 4u) + (uint32_t)j * 16u,
                            &s->place[i][j]);
        }
    }
}

#else

HB_DEVICE void load_scales(const consumer *c, set_scales *s, uint32_t stage)
{
    const smem_addr lines = c->line_scales + stage * LINE_SCALES_BYTES;
    const smem_addr places = c->place_scales + stage * PLACE_SCALES_BYTES;
    int i;
    HB_UNROLL
    for (i = 0; i < SET; i++) {
        s->low[i] = smem_load_f32(lines + (uint32_t)i * (LINE_TILE * 4u));
        s->high[i] = smem_load_f32(lines + (uint32_t)i * (LINE_TILE * 4u) + 32u);
    }
    if (!c->b_by_column) {
        HB_UNROLL
        for (i = 0; i < SET; i++) {
            s->of_b[i] = smem_load_f32(places + (uint32_t)i * (PLACE_TILE * 4u));
        }
    }
}

#endif

/* Scales of set `which` times that of the places where they have one: when the loads of issue_set()
 * have had time, and before the next ones, which ptxas would wait for as well. */
HB_DEVICE void multiply_scales(consumer *c, int which)
{
#if WEIGHTS_ARE_LINES
    (void)c;
    (void)which;
#else
    set_scales *s = &c->scales[which];
    int i;
    if (!c->b_by_column) {
        HB_UNROLL
        for (i = 0; i < SET; i++) {
            s->low[i] = mul_rn(s->low[i], s->of_b[i]);
            s->high[i] = mul_rn(s->high[i], s->of_b[i]);
        }
    }
#endif
}

/* Waits for the next stage and issues it, as one group, into set `which`. */
HB_DEVICE void issue_set(consumer *c, int which)
{
    const uint32_t stage = c->ahead.stage;
    int i;
    ring_wait_full(&c->ahead);
    ring_advance(&c->ahead);
    wgmma_fence();
    HB_UNROLL
    for (i = 0; i < SET; i++) {
        chain_issue(c->partial[which] + i * FRAGMENT,
                    c->lines + stage * STAGE_BYTES + (uint32_t)i * LINE_BYTES,
                    c->places + stage * STAGE_BYTES + (uint32_t)i * PLACE_BYTES);
    }
    wgmma_commit();
    load_scales(c, &c->scales[which], stage);
}

#if !WEIGHTS_ARE_LINES

/*
 * acc = fma_rn(partial, scale of A * scale of B, acc): of four elements, 0 and 1 belong to line g
 * of the warp's 16, 2 and 3 to line g + 8; 0 and 2 to a place, 1 and 3 to the next.
 */
HB_DEVICE void promote(float *acc, const float *partial, float low, float high)
{
    int i;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i += 4) {
        acc[i + 0] = fma_rn(partial[i + 0], low, acc[i + 0]);
        acc[i + 1] = fma_rn(partial[i + 1], low, acc[i + 1]);
        acc[i + 2] = fma_rn(partial[i + 2], high, acc[i + 2]);
        acc[i + 3] = fma_rn(partial[i + 3], high, acc[i + 3]);
    }
}

#endif

/* The same where every place has a scale: place[i / 2] is that of element i. */
HB_DEVICE void promote_four(float *acc, const float *partial, float low, float high,
                            const uint32_t place[2])
{
    const float even = f32_of_bits(place[0]), odd = f32_of_bits(place[1]);
    acc[0] = fma_rn(partial[0], mul_rn(low, even), acc[0]);
    acc[1] = fma_rn(partial[1], mul_rn(low, odd), acc[1]);
    acc[2] = fma_rn(partial[2], mul_rn(high, even), acc[2]);
    acc[3] = fma_rn(partial[3], mul_rn(high, odd), acc[3]);
}

#if WEIGHTS_ARE_LINES

HB_DEVICE void promote_block(const consumer *c, int which, int i)
{
    const set_scales *s = &c->scales[which];
    const float *partial = c->partial[which] + i * FRAGMENT;
    int j;
    HB_UNROLL
    for (j = 0; j < FRAGMENT; j += 4) {
        promote_four(c->acc + j, partial + j, s->low[i], s->high[i], &s->place[i][j / 2]);
    }
}

#else

HB_DEVICE void promote_columns(const consumer *c, int which, int i)
{
    const set_scales *s = &c->scales[which];
    const float *partial = c->partial[which] + i * FRAGMENT;
    const smem_addr scales =
        c->place_scales + c->behind * PLACE_SCALES_BYTES + (uint32_t)i * (PLACE_TILE * 4u);
    int j;
    HB_UNROLL
    for (j = 0; j < FRAGMENT; j += 4) {
        uint32_t place[2];
        smem_load_u32x2(scales + (uint32_t)j * 8u, place);
        promote_four(c->acc + j, partial + j, s->low[i], s->high[i], place);
    }
}

#endif

/* The first `blocks` of set `which`, which is the stage `behind`; gives the stage back. */
HB_DEVICE void promote_set(consumer *c, int which, int32_t blocks)
{
    int i;
#if WEIGHTS_ARE_LINES
    HB_UNROLL
    for (i = 0; i < SET; i++) {
        if (i < blocks) {
            promote_block(c, which, i);
        }
    }
#else
    if (c->b_by_column) {
        HB_UNROLL
        for (i = 0; i < SET; i++) {
            if (i < blocks) {
                promote_columns(c, which, i);
            }
        }
    } else {
        HB_UNROLL
        for (i = 0; i < SET; i++) {
            if (i < blocks) {
                promote(c->acc, c->partial[which] + i * FRAGMENT, c->scales[which].low[i],
                        c->scales[which].high[i]);
            }
        }
    }
#endif
    ring_release_loaded(&c->ahead, c->behind);
    c->behind = c->behind + 1 == GEMM_STAGES ? 0 : c->behind + 1;
}

/* This team has seen all of its tile: the other one may go on in the ring. */
HB_DEVICE void hand_over(const consumer *c)
{
    if (c->hands_over) {
        barrier_arrive(c->next_turn, CONSUMER_WARPS * 32);
    }
}

/* Sums of one tile, of none for no k blocks.  Begins and ends with no chain in flight. */
HB_DEVICE void sum_tile(consumer *c, int32_t k_blocks)
{
    int32_t left = k_blocks; /* of the set that is promoted next and those behind it */
    if (left <= 0) {
        hand_over(c);
        return;
    }
    issue_set(c, 0);
    HB_NO_UNROLL
    for (; left > 2 * SET; left -= 2 * SET) {
        multiply_scales(c, 0);
        wgmma_wait(0);
        issue_set(c, 1);
        promote_set(c, 0, SET);
        multiply_scales(c, 1);
        wgmma_wait(0);
        issue_set(c, 0);
        promote_set(c, 1, SET);
    }
    /* The last one or two sets, of which the very last may be short. */
    multiply_scales(c, 0);
    wgmma_wait(0);
    if (left > SET) {
        issue_set(c, 1);
        hand_over(c);
        promote_set(c, 0, SET);
        multiply_scales(c, 1);
        wgmma_wait(0);
        promote_set(c, 1, left - SET);
    } else {
        hand_over(c);
        promote_set(c, 0, left);
    }
}

#endif
