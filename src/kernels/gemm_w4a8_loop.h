/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Main loops of the W4A8 kernels: one warpgroup sums its 64 rows of weights x TILE_TOKENS tokens.
 *
 * While the tensor core works on block i, the words of block i + 1 are loaded and decoded into the
 * other of two sets of A fragments.  With two partial accumulators (few tokens) the chain of block
 * i + 1 is issued before block i is promoted; with one (many tokens) the other warpgroup's chain
 * fills the gap, if there are two.
 *
 * A trip of the loop is UNROLL blocks, so that stages, fragments and partial accumulators are known
 * when the kernel is compiled; the last trip stands apart.  A tile's blocks are filled up to whole
 * trips by blocks that add nothing (gemm_w4a8_scales.h).
 *
 * WAITS.  ptxas keeps an open wgmma group over a loop's back edge only if the wait for it is wait
 * 0, and all waits here are: with a decoded block and a promotion under every chain there is
 * nothing to gain from a deeper queue.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_LOOP_H
#define HALFBYTE_KERNELS_GEMM_W4A8_LOOP_H

/* The staging of D is claimed under a tile's last chain, not behind it: where the next tile's first
 * chain is in flight there it would gain nothing. */
#define CLAIMS_EARLY (GEMM_PARTIALS == 2 || TEAMS > 1)

#include "kernels/gemm_w4a8_block.h"
#include "kernels/gemm_w4a8_tiles.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/store_across.h"

/* A consumer thread's place.  Fragments of block b are a[b % 2]. */
typedef struct consumer {
    uint32_t passed;   /* between tiles: stages done, modulo twice their number */
    ring ahead;        /* in a tile: the stage that is decoded next */
    uint32_t behind;   /* in a tile: index of the stage that is given back next */
    uint32_t stage[2]; /* that of the even, the odd block decoded last: bytes from the first */
    smem_addr stages;
    smem_addr scales;
    smem_addr words; /* this thread's first word, in the first stage */
    smem_addr rows;  /* the factors of its rows, in the first stage */
    smem_addr work;  /* ring of items */
    uint32_t tiles;  /* done */
    const gemm_params *p;
    uint32_t warpgroup; /* of the tile */
    uint32_t team;
#if GEMM_PARTIALS == 1
    bool always; /* true, which the compiler does not know */
#endif
    uint32_t *a[2];
    float *partial[GEMM_PARTIALS];
    float *acc;
} consumer;

/* Waits for the stage of block `u` of a trip. */
HB_DEVICE void await_block(consumer *c, int u)
{
    c->stage[u % 2] = c->stage[(u + 1) % 2];
    if (u % STAGE_BLOCKS == 0) {
        ring_wait_full(&c->ahead);
        c->stage[u % 2] = c->ahead.stage * STAGE_BYTES;
        ring_advance(&c->ahead);
    }
}

/* Loads and decodes block `u` of a trip. */
HB_DEVICE void prepare(const consumer *c, loop_kind kind, int u)
{
    const smem_addr atom = c->words + c->stage[u % 2] + (uint32_t)(u % STAGE_BLOCKS) * ATOM_BYTES;
    uint32_t words[8];
    load_words(atom, words);
    decode_words(words, kind.f3, c->a[u % 2]);
}

HB_DEVICE float *partial_of(const consumer *c, loop_kind kind, int u, int g)
{
    return c->partial[(u * kind.groups + g) % GEMM_PARTIALS];
}

/* Group g of block u. */
HB_DEVICE void issue(const consumer *c, loop_kind kind, int u, int g)
{
    const smem_addr tokens =
        c->stages + c->stage[u % 2] + WEIGHT_BYTES + (uint32_t)(u % STAGE_BLOCKS) * TOKEN_BYTES;
    const int steps = 4 / kind.groups;
    wgmma_fence();
    issue_chain(partial_of(c, kind, u, g), c->a[u % 2], tokens, g * steps, (g + 1) * steps);
    wgmma_commit();
}

/* Those of group g of block u, in the stage that is given back next: bytes from the first stage's
 * first. */
HB_DEVICE uint32_t scales_of(const consumer *c, int u, int g)
{
    return c->behind * SCALE_BYTES +
           (uint32_t)((u % STAGE_BLOCKS) * GEMM_GROUPS + g) * GROUP_SCALE_BYTES;
}

/* The factors of this thread's tokens, in the first stage. */
HB_DEVICE smem_addr tokens_at(const consumer *c)
{
    return c->scales + token_offset(thread_index() % 128u * 16u);
}

/* The stage is given back with its last block: nothing reads it from here on. */
HB_DEVICE void release(consumer *c, int u)
{
    if (u % STAGE_BLOCKS == STAGE_BLOCKS - 1) {
        ring_release_loaded(&c->ahead, c->behind);
        c->behind = c->behind + 1 == GEMM_STAGES ? 0 : c->behind + 1;
    }
}

/* The named barrier of a warpgroup's staging of D. */
HB_DEVICE uint32_t store_barrier(const consumer *c)
{
    return 1u + c->warpgroup + c->team;
}

#if GEMM_PARTIALS == 2
/* One number for the place in the ring between tiles, to save registers there. */
HB_DEVICE void enter_ring(consumer *c)
{
    c->ahead.parity = c->passed >= GEMM_STAGES ? 1 : 0;
    c->ahead.stage = c->passed - c->ahead.parity * GEMM_STAGES;
    c->behind = c->ahead.stage;
}

HB_DEVICE void leave_ring(consumer *c)
{
    c->passed = c->ahead.stage + c->ahead.parity * GEMM_STAGES;
}

/* Group g of block u, whose sums are complete; `last`: of the tile. */
HB_DEVICE void finish(consumer *c, loop_kind kind, int u, int g, bool last)
{
    const factors f = load_factors(c->rows + scales_of(c, u, g),
                                   kind.a128 ? tokens_at(c) + scales_of(c, u, g) : 0);
    const bool ends_block = g == kind.groups - 1;
    if (ends_block && !kind.a128 && !last) {
        release(c, u);
    }
    promote(c->acc, partial_of(c, kind, u, g), f, kind.a128);
    if (last && c->p->epilogue.row_scale.data != NULL) {
        scale_tokens(c->acc, tokens_at(c) + scales_of(c, STAGE_BLOCKS - 1, 0));
    }
    if (ends_block && (kind.a128 || last)) {
        release(c, u); /* these have loaded from the stage up to here */
    }
}

/* UNROLL blocks.  Before each step the chain of its group is in flight, and the block after it
 * decoded; at the end so are those of the next trip's first blocks, unless this is the last. */
HB_DEVICE void trip(consumer *c, loop_kind kind, bool last)
{
    int u, g;
    HB_UNROLL
    for (u = 0; u < UNROLL; u++) {
        HB_UNROLL
        for (g = 0; g < kind.groups; g++) {
            const bool ends_block = g == kind.groups - 1;
            if (last && ends_block && u == UNROLL - 1) {
                across_claim(store_barrier(c));
            }
            wgmma_wait(0);
            if (!ends_block) {
                issue(c, kind, u, g + 1);
            } else if (!last || u + 1 < UNROLL) {
                issue(c, kind, (u + 1) % UNROLL, 0);
            }
            finish(c, kind, u, g, last && ends_block && u == UNROLL - 1);
            if (ends_block && (!last || u + 2 < UNROLL)) {
                await_block(c, (u + 2) % UNROLL);
                prepare(c, kind, (u + 2) % UNROLL);
            }
        }
    }
}

HB_DEVICE void sum_blocks(consumer *c, loop_kind kind, int32_t trips)
{
    enter_ring(c);
    await_block(c, 0);
    prepare(c, kind, 0);
    issue(c, kind, 0, 0);
    await_block(c, 1);
    prepare(c, kind, 1);
    HB_NO_UNROLL
    for (; trips > 1; trips--) {
        trip(c, kind, false);
    }
    trip(c, kind, true);
    leave_ring(c);
}
#else
/* One number for the place in the ring between tiles, to save registers there: of the stage behind
 * the next tile's first, which has been decoded already, or with teams of that first one. */
HB_DEVICE void enter_ring(consumer *c)
{
    c->ahead.parity = c->passed >= GEMM_STAGES ? 1 : 0;
    c->ahead.stage = c->passed - c->ahead.parity * GEMM_STAGES;
    c->behind = c->ahead.stage;
    if (TEAMS == 1) {
        c->behind = c->ahead.stage == 0 ? GEMM_STAGES - 1 : c->ahead.stage - 1;
    }
}

HB_DEVICE void leave_ring(consumer *c)
{
    c->passed = c->ahead.stage + c->ahead.parity * GEMM_STAGES;
}

/* Waits for block u and decodes it, if `there`. */
HB_DEVICE void prepare_next(consumer *c, loop_kind kind, int u, bool there)
{
    if (there) {
        await_block(c, u);
        prepare(c, kind, u);
    }
}

/* Block u, whose chain is in flight.  Its factors are loaded before the wait: beside the operands
 * of wgmma a load takes 100 cycles and more.  `whole`: its stage is given back. */
HB_DEVICE void promote_block(consumer *c, loop_kind kind, int u, bool whole)
{
    const factors f = load_factors(c->rows + scales_of(c, u, 0),
                                   kind.a128 ? tokens_at(c) + scales_of(c, u, 0) : 0);
    wgmma_wait(0);
    if (!kind.a128 && whole) {
        release(c, u);
    }
    promote(c->acc, c->partial[0], f, kind.a128);
    if (kind.a128 && whole) {
        release(c, u); /* promote() has loaded from the stage */
    }
}

/*
 * Begins with the chain of the tile's first block in flight, or with teams issues it.  Under each
 * chain the next block is decoded, under the last one the next tile's first, if there is one (and
 * no other team that has it).  Its chain and the rest of
 * what the last stage holds are for issue_next() and finish_tile().
 *
 * What is decoded is so under a condition, be it one that always holds: that ends a basic block,
 * and ptxas leaves the decoding ahead of the wait, not behind it, where the tensor core would stand
 * still.
 */
HB_DEVICE void sum_blocks(consumer *c, loop_kind kind, int32_t trips)
{
    enter_ring(c);
    if (TEAMS > 1) {
        await_block(c, 0);
        prepare(c, kind, 0);
        issue(c, kind, 0, 0);
    }
    HB_NO_UNROLL
    for (;; trips--) {
        prepare_next(c, kind, 1, c->always);
        promote_block(c, kind, 0, true);
        issue(c, kind, 1, 0);
        prepare_next(c, kind, 0,
                     trips > 1 || (TEAMS == 1 && next_trips(c->work, c->tiles + 1) > 0));
        if (CLAIMS_EARLY && trips == 1) {
            across_claim(store_barrier(c));
        }
        promote_block(c, kind, 1, false);
        if (trips == 1) {
            break;
        }
        issue(c, kind, 0, 0);
        release(c, 1);
    }
    leave_ring(c);
}

/* The next tile's first chain; if there is none, one over what was there before, whose sums nobody
 * reads. */
HB_DEVICE void issue_next(consumer *c)
{
    const loop_kind kind = {false, false, 1};
    issue(c, kind, 0, 0);
}

/* Behind sum_blocks(): the factors of the tokens, and the last stage is given back. */
HB_DEVICE void finish_tile(consumer *c)
{
    if (c->p->epilogue.row_scale.data != NULL) {
        scale_tokens(c->acc, tokens_at(c) + scales_of(c, STAGE_BLOCKS - 1, 0));
    }
    release(c, 1);
}
#endif

/* A tile of the other team.  Its stages are waited for and given back like one's own: a warp that
 * passed over them could not tell one pass of the ring from the next. */
HB_DEVICE void pass_tile(consumer *c, int32_t trips)
{
    int32_t stages;
    enter_ring(c);
    HB_NO_UNROLL
    for (stages = trips * UNROLL / STAGE_BLOCKS; stages > 0; stages--) {
        ring_wait_full(&c->ahead);
        ring_release_loaded(&c->ahead, c->ahead.stage);
        ring_advance(&c->ahead);
    }
    leave_ring(c);
    (void)take_summed(c->work, c->tiles);
}

#endif
