/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumers' loop of gemm_w4a8_turns.h, which defines the macros.
 *
 * A turn is UNROLL k blocks.  The warpgroup that has it decodes them and issues their chains, each
 * into partial sums of its own: no order binds it there, so it does so as soon as their stages are
 * full, while another one is at the turn before.  Then it waits for the baton, which says that
 * acc has all blocks before, promotes its own in ascending order and hands acc over.
 *
 *   warpgroup 0   | load, decode, multiply 0 | acc 0 |   load, decode, multiply 2   | acc 2 | ...
 *   warpgroup 1       | load, decode, multiply 1     | acc 1 | load, decode, multiply 3 ...
 *
 * With three warpgroups likewise.
 *
 * ACC IN SHARED MEMORY is [vectors of 4 sums][128 threads]: a thread hands its sums to the thread
 * of the same index, so a warp's accesses have no bank conflicts, and the baton goes from warp to
 * warp.  There is one place for acc: only the warp that has the baton touches its part.
 *
 * All chains of a turn are waited for at once: nothing crosses the loop's back edge, and the
 * others' work fills the gap.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_TURNS_LOOP_H
#define HALFBYTE_KERNELS_GEMM_W4A8_TURNS_LOOP_H

#include "kernels/gemm_w4a8_block.h"
#include "kernels/tile/ring.h"

/* A consumer thread's place. */
typedef struct consumer {
    ring next;        /* the stage that the next turn begins with, whosesoever it is */
    uint32_t which;   /* this warpgroup */
    uint32_t turn;    /* that which has the next turn */
    uint32_t parity;  /* of the baton that this warp gets next */
    smem_addr baton;  /* its barrier in this warp */
    smem_addr other;  /* and in the one that gets it afterwards */
    smem_addr handed; /* this thread's part of acc */
    smem_addr stages;
    smem_addr scales;
    const gemm_params *p;
    uint32_t words; /* 16 * the thread's index in the warpgroup */
    uint32_t *a[UNROLL];
    float *partial[UNROLL];
    float *acc;
} consumer;

/* The stages of a turn. */
typedef struct turn_stages {
    uint32_t index[GEMM_TURN_STAGES];
} turn_stages;

/* Words of block u of the turn; with the first block of a stage waits for it. */
HB_DEVICE void fetch_block(consumer *c, turn_stages *stages, int u, uint32_t words[8])
{
    uint32_t *index = &stages->index[u / STAGE_BLOCKS];
    if (u % STAGE_BLOCKS == 0) {
        ring_wait_full(&c->next);
        *index = c->next.stage;
        ring_advance(&c->next);
    }
    load_words(c->stages + *index * STAGE_BYTES + (uint32_t)(u % STAGE_BLOCKS) * ATOM_BYTES +
                   c->words,
               words);
}

/* Issues the chains of a turn.  The next block's words are under way while one is decoded. */
HB_DEVICE void multiply(consumer *c, loop_kind kind, turn_stages *stages)
{
    uint32_t words[2][8];
    int u;
    fetch_block(c, stages, 0, words[0]);
    HB_UNROLL
    for (u = 0; u < UNROLL; u++) {
        const smem_addr tokens = c->stages + stages->index[u / STAGE_BLOCKS] * STAGE_BYTES +
                                 WEIGHT_BYTES + (uint32_t)(u % STAGE_BLOCKS) * TOKEN_BYTES;
        if (u + 1 < UNROLL) {
            fetch_block(c, stages, u + 1, words[(u + 1) % 2]);
        }
        decode_words(words[u % 2], kind.f3, c->a[u]);
        wgmma_fence();
        issue_chain(c->partial[u], c->a[u], tokens, 0, 4);
        wgmma_commit();
    }
}

HB_DEVICE void release_stages(const consumer *c, const turn_stages *stages)
{
    int s;
    warp_sync(); /* all lanes have loaded before one says so */
    HB_UNROLL
    for (s = 0; s < GEMM_TURN_STAGES; s++) {
        ring_release(&c->next, stages->index[s]);
    }
}

/* Gets the baton, and with it acc, which at a tile's first turn is +0. */
HB_DEVICE void take_over(consumer *c, bool first)
{
    int i;
    mbarrier_wait(c->baton, c->parity);
    c->parity ^= 1u;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i += 4) {
        uint32_t sums[4] = {0, 0, 0, 0};
        if (!first) {
            smem_load_u32x4(c->handed + (uint32_t)i * (HANDED_BYTES / 4u), sums);
        }
        c->acc[i + 0] = f32_of_bits(sums[0]);
        c->acc[i + 1] = f32_of_bits(sums[1]);
        c->acc[i + 2] = f32_of_bits(sums[2]);
        c->acc[i + 3] = f32_of_bits(sums[3]);
    }
}

/* Hands acc over, unless the tile ends here, and the baton in any case. */
HB_DEVICE void hand_over(const consumer *c, bool last)
{
    int i;
    if (!last) {
        HB_UNROLL
        for (i = 0; i < FRAGMENT; i += 4) {
            smem_store_u32x4(c->handed + (uint32_t)i * (HANDED_BYTES / 4u),
                             bits_of_f32(c->acc[i + 0]), bits_of_f32(c->acc[i + 1]),
                             bits_of_f32(c->acc[i + 2]), bits_of_f32(c->acc[i + 3]));
        }
    }
    warp_sync(); /* all lanes are done with acc before one says so */
    if (elect_one()) {
        mbarrier_arrive(c->other);
    }
}

/* A turn of this warpgroup. */
HB_DEVICE void take_turn(consumer *c, loop_kind kind, bool first, bool last)
{
    turn_stages stages;
    factors f[UNROLL];
    smem_addr at = 0;
    int u;
    multiply(c, kind, &stages);
    HB_UNROLL
    for (u = 0; u < UNROLL; u++) {
        at = c->scales + stages.index[u / STAGE_BLOCKS] * SCALE_BYTES +
             (uint32_t)(u % STAGE_BLOCKS) * GROUP_SCALE_BYTES;
        f[u] =
            load_factors(at + row_offset(0, c->words), kind.a128 ? at + token_offset(c->words) : 0);
    }
    wgmma_wait(0);
    if (!kind.a128 && !last) {
        release_stages(c, &stages);
    }
    take_over(c, first);
    HB_UNROLL
    for (u = 0; u < UNROLL; u++) {
        promote(c->acc, c->partial[u], f[u], kind.a128);
    }
    if (last && c->p->epilogue.row_scale.data != NULL) {
        scale_tokens(c->acc, at + token_offset(c->words));
    }
    hand_over(c, last);
    if (kind.a128 || last) {
        release_stages(c, &stages); /* these have loaded from the stages up to here */
    }
}

/* Past the stages of another warpgroup's turn. */
HB_DEVICE void leave_turn(consumer *c)
{
    int s;
    HB_UNROLL
    for (s = 0; s < GEMM_TURN_STAGES; s++) {
        ring_advance(&c->next);
    }
}

/* This warpgroup's share of a tile's sum; the one that has the last turn has the sums. */
HB_DEVICE void sum_turns(consumer *c, loop_kind kind, int32_t turns)
{
    int32_t turn;
    HB_NO_UNROLL
    for (turn = 0; turn < turns; turn++) {
        if (c->turn == c->which) {
            take_turn(c, kind, turn == 0, turn + 1 == turns);
        } else {
            leave_turn(c);
        }
        c->turn = c->turn + 1 == CONSUMERS ? 0 : c->turn + 1;
    }
}

#endif
