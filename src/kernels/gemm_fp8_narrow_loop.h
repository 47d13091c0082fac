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

/* Scales of a set, of rows g and g + 8; where B has one scale, times that. */
typedef struct set_scales {
    float low[SET], high[SET];
} set_scales;

/*
 * A consumer thread's place: the stage that it issues from (`ahead`), the one that it promotes from
 * and gives back (`behind`), its scales, its accumulators.  Even sets use [0], odd ones [1].
 */
typedef struct consumer {
    ring ahead;
    uint32_t behind;
    smem_addr a, b;               /* this warpgroup's tiles of stage 0 */
    smem_addr a_scales, b_scales; /* this thread's, of stage 0's first k block */
    bool b_by_column;             /* scales of B: one a column, or one in all */
    bool hands_over;              /* the other team has a tile behind this one */
    uint32_t next_turn;           /* its barrier */
    set_scales scales[2];
    float *partial[2]; /* of SET k blocks */
    float *acc;
} consumer;

HB_DEVICE void load_scales(const consumer *c, set_scales *s, uint32_t stage)
{
    const smem_addr a = c->a_scales + stage * A_SCALES_BYTES;
    const smem_addr b = c->b_scales + stage * B_SCALES_BYTES;
    int i;
    HB_UNROLL
    for (i = 0; i < SET; i++) {
        s->low[i] = smem_load_f32(a + (uint32_t)i * (TILE_M * 4u));
        s->high[i] = smem_load_f32(a + (uint32_t)i * (TILE_M * 4u) + 32u);
    }
    if (!c->b_by_column) {
        HB_UNROLL
        for (i = 0; i < SET; i++) {
            const float of_b = smem_load_f32(b + (uint32_t)i * (TILE_N * 4u));
            s->low[i] = mul_rn(s->low[i], of_b);
            s->high[i] = mul_rn(s->high[i], of_b);
        }
    }
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
                    c->a + stage * STAGE_BYTES + (uint32_t)i * A_BYTES,
                    c->b + stage * STAGE_BYTES + (uint32_t)i * B_BYTES);
    }
    wgmma_commit();
    load_scales(c, &c->scales[which], stage);
}

/*
 * acc = fma_rn(partial, scale of A * scale of B, acc): of four elements, 0 and 1 belong to row g of
 * the warp's 16, 2 and 3 to row g + 8; 0 and 2 to a column, 1 and 3 to the next.
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

HB_DEVICE void promote_columns(float *acc, const float *partial, float low, float high,
                               smem_addr b_scales)
{
    int i;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i += 4) {
        uint32_t b[2];
        smem_load_u32x2(b_scales + (uint32_t)i * 8u, b);
        acc[i + 0] = fma_rn(partial[i + 0], mul_rn(low, f32_of_bits(b[0])), acc[i + 0]);
        acc[i + 1] = fma_rn(partial[i + 1], mul_rn(low, f32_of_bits(b[1])), acc[i + 1]);
        acc[i + 2] = fma_rn(partial[i + 2], mul_rn(high, f32_of_bits(b[0])), acc[i + 2]);
        acc[i + 3] = fma_rn(partial[i + 3], mul_rn(high, f32_of_bits(b[1])), acc[i + 3]);
    }
}

/* The first `blocks` of set `which`, which is the stage `behind`; gives the stage back. */
HB_DEVICE void promote_set(consumer *c, int which, int32_t blocks)
{
    const set_scales *s = &c->scales[which];
    const smem_addr b = c->b_scales + c->behind * B_SCALES_BYTES;
    int i;
    if (c->b_by_column) {
        HB_UNROLL
        for (i = 0; i < SET; i++) {
            if (i < blocks) {
                promote_columns(c->acc, c->partial[which] + i * FRAGMENT, s->low[i], s->high[i],
                                b + (uint32_t)i * (TILE_N * 4u));
            }
        }
    } else {
        HB_UNROLL
        for (i = 0; i < SET; i++) {
            if (i < blocks) {
                promote(c->acc, c->partial[which] + i * FRAGMENT, s->low[i], s->high[i]);
            }
        }
    }
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
        wgmma_wait(0);
        issue_set(c, 1);
        promote_set(c, 0, SET);
        wgmma_wait(0);
        issue_set(c, 0);
        promote_set(c, 1, SET);
    }
    /* The last one or two sets, of which the very last may be short. */
    wgmma_wait(0);
    if (left > SET) {
        issue_set(c, 1);
        hand_over(c);
        promote_set(c, 0, SET);
        wgmma_wait(0);
        promote_set(c, 1, left - SET);
    } else {
        hand_over(c);
        promote_set(c, 0, left);
    }
}

#endif
