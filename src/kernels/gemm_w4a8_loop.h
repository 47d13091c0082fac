/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Main loops of the W4A8 kernels: one warpgroup sums its 64 rows of weights x TILE_TOKENS tokens.
 *
 * While the tensor core works on block i, the words of block i + 1 are loaded and decoded into the
 * other of two sets of A fragments.  With two partial accumulators (few tokens) the chain of block
 * i + 1 is issued before block i is promoted; with one (many tokens) the other warpgroup's chain
 * fills the gap.
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

/* What a loop is compiled for: constants where it is called. */
typedef struct loop_kind {
    bool f3;    /* words in F3 form */
    bool a128;  /* A has scales along k */
    int groups; /* weight groups a k block: 1, 2 or 4 */
} loop_kind;

/* A consumer thread's place.  Fragments of block b are a[b % 2]. */
typedef struct consumer {
    uint32_t passed;    /* between tiles: stages done, modulo twice their number */
    ring ahead;         /* in a tile: the stage that is decoded next */
    uint32_t behind;    /* in a tile: index of the stage that is given back next */
    smem_addr stage[2]; /* that of the even, the odd block decoded last */
    smem_addr stages;
    smem_addr scales;
    const gemm_params *p;
    uint32_t warpgroup;
    uint32_t words; /* 16 * the thread's index in the warpgroup: where its words lie in an atom */
    uint32_t *a[2];
    float *partial[GEMM_PARTIALS];
    float *acc;
} consumer;

/* Factors of the block that is promoted. */
typedef struct factors {
    float low, high; /* of row g of the warp's 16, of row g + 8 */
    smem_addr tokens;
} factors;

/* Waits for the stage of block `u` of a trip. */
HB_DEVICE void await_block(consumer *c, int u)
{
    c->stage[u % 2] = c->stage[(u + 1) % 2];
    if (u % STAGE_BLOCKS == 0) {
        ring_wait_full(&c->ahead);
        c->stage[u % 2] = c->stages + c->ahead.stage * STAGE_BYTES;
        ring_advance(&c->ahead);
    }
}

/* Loads and decodes block `u` of a trip. */
HB_DEVICE void prepare(const consumer *c, loop_kind kind, int u)
{
    const smem_addr atom = c->stage[u % 2] + c->warpgroup * PANEL_BYTES +
                           (uint32_t)(u % STAGE_BLOCKS) * ATOM_BYTES + c->words;
    uint32_t words[8];
    smem_load_u32x4(atom, words);
    smem_load_u32x4(atom + 2048u, words + 4);
    atom_decode(words, kind.f3, c->a[u % 2]);
    wgmma_operands_ready(c->a[u % 2], ATOM_REGISTERS);
}

/* partial = weights (64, 128 / groups) * tokens^T, for group `g` of block u, from +0. */
HB_DEVICE void issue(const consumer *c, loop_kind kind, int u, int g)
{
    float *partial = c->partial[(u * kind.groups + g) % GEMM_PARTIALS];
    const uint32_t *a = c->a[u % 2];
    const smem_addr tokens =
        c->stage[u % 2] + WEIGHT_BYTES + (uint32_t)(u % STAGE_BLOCKS) * TOKEN_BYTES;
    const uint64_t desc = wgmma_desc(tokens, 0, 1024, SWIZZLE_128B);
    const int steps = 4 / kind.groups;
    int step;
    wgmma_fence();
    HB_UNROLL
    for (step = g * steps; step < (g + 1) * steps; step++) {
        WGMMA(partial, a + 4 * step, wgmma_desc_advance(desc, (uint32_t)step * 32u),
              step != g * steps);
    }
    wgmma_commit();
}

/* Byte offset of the thread's first pair of tokens among a group's token scales. */
HB_DEVICE uint32_t token_offset(const consumer *c)
{
    return TILE_ROWS * 4u + (c->words / 2u & 24u);
}

HB_DEVICE factors load_factors(const consumer *c, loop_kind kind, int u, int g)
{
    const smem_addr at = c->scales + c->behind * SCALE_BYTES +
                         (uint32_t)((u % STAGE_BLOCKS) * GEMM_GROUPS + g) * GROUP_SCALE_BYTES;
    uint32_t pair[2];
    factors f;
    smem_load_u32x2(at + c->warpgroup * 256u + (c->words / 8u & 0xf8u), pair);
    f.low = f32_of_bits(pair[0]);
    f.high = f32_of_bits(pair[1]);
    f.tokens = kind.a128 ? at + token_offset(c) : 0;
    return f;
}

/* acc = fma_rn(partial, s, acc): of four elements, 0 and 1 belong to row g, 2 and 3 to row g + 8;
 * 0 and 2 to the first token of a pair. */
HB_DEVICE void promote(const consumer *c, loop_kind kind, factors f, int u, int g)
{
    const float *partial = c->partial[(u * kind.groups + g) % GEMM_PARTIALS];
    float *acc = c->acc;
    int i;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i += 4) {
        float s[4];
        s[0] = s[1] = f.low;
        s[2] = s[3] = f.high;
        if (kind.a128) {
            uint32_t tokens[2];
            smem_load_u32x2(f.tokens + (uint32_t)i * 8u, tokens);
            s[0] = mul_rn(mul_rn(f32_of_bits(tokens[0]), f.low), 512.0f);
            s[1] = mul_rn(mul_rn(f32_of_bits(tokens[1]), f.low), 512.0f);
            s[2] = mul_rn(mul_rn(f32_of_bits(tokens[0]), f.high), 512.0f);
            s[3] = mul_rn(mul_rn(f32_of_bits(tokens[1]), f.high), 512.0f);
        }
        acc[i + 0] = fma_rn(partial[i + 0], s[0], acc[i + 0]);
        acc[i + 1] = fma_rn(partial[i + 1], s[1], acc[i + 1]);
        acc[i + 2] = fma_rn(partial[i + 2], s[2], acc[i + 2]);
        acc[i + 3] = fma_rn(partial[i + 3], s[3], acc[i + 3]);
    }
}

/* The stage is given back with its last block: nothing reads it from here on. */
HB_DEVICE void release(consumer *c, int u)
{
    if (u % STAGE_BLOCKS == STAGE_BLOCKS - 1) {
        ring_release_loaded(&c->ahead, c->behind);
        c->behind = c->behind + 1 == GEMM_STAGES ? 0 : c->behind + 1;
    }
}

/* acc = mul_rn(acc, factor of its token): the first step of the epilogue. */
HB_DEVICE void scale_tokens(const consumer *c)
{
    const smem_addr tokens =
        c->scales + c->behind * SCALE_BYTES + FACTOR_GROUP * GROUP_SCALE_BYTES + token_offset(c);
    float *acc = c->acc;
    int i;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i += 4) {
        uint32_t pair[2];
        smem_load_u32x2(tokens + (uint32_t)i * 8u, pair);
        acc[i + 0] = mul_rn(acc[i + 0], f32_of_bits(pair[0]));
        acc[i + 1] = mul_rn(acc[i + 1], f32_of_bits(pair[1]));
        acc[i + 2] = mul_rn(acc[i + 2], f32_of_bits(pair[0]));
        acc[i + 3] = mul_rn(acc[i + 3], f32_of_bits(pair[1]));
    }
}

/* Group g of block u, whose sums are complete; `last`: of the tile. */
HB_DEVICE void finish(consumer *c, loop_kind kind, int u, int g, bool last)
{
    const factors f = load_factors(c, kind, u, g);
    const bool ends_block = g == kind.groups - 1;
    if (ends_block && !kind.a128 && !last) {
        release(c, u);
    }
    promote(c, kind, f, u, g);
    if (last && c->p->epilogue.row_scale.data != NULL) {
        scale_tokens(c);
    }
    if (ends_block && (kind.a128 || last)) {
        release(c, u); /* these have loaded from the stage up to here */
    }
}

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

#if GEMM_PARTIALS == 2
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
/* UNROLL blocks.  Before each the block is decoded; at the end so is the next trip's first, unless
 * this is the last. */
HB_DEVICE void trip(consumer *c, loop_kind kind, bool last)
{
    int u, g;
    HB_UNROLL
    for (u = 0; u < UNROLL; u++) {
        HB_UNROLL
        for (g = 0; g < kind.groups; g++) {
            issue(c, kind, u, g);
            if (g == 0 && (!last || u + 1 < UNROLL)) {
                await_block(c, (u + 1) % UNROLL);
                prepare(c, kind, (u + 1) % UNROLL);
            }
            wgmma_wait(0);
            finish(c, kind, u, g, last && g == kind.groups - 1 && u == UNROLL - 1);
        }
    }
}

HB_DEVICE void sum_blocks(consumer *c, loop_kind kind, int32_t trips)
{
    enter_ring(c);
    await_block(c, 0);
    prepare(c, kind, 0);
    HB_NO_UNROLL
    for (; trips > 1; trips--) {
        trip(c, kind, false);
    }
    trip(c, kind, true);
    leave_ring(c);
}
#endif

#endif
