/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the consumers of the W4A8 kernels do with a k block of 64 rows of weights x TILE_TOKENS
 * tokens.
 *
 * `words` is 16 * the thread's index in its warpgroup: where its words lie in an atom.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_BLOCK_H
#define HALFBYTE_KERNELS_GEMM_W4A8_BLOCK_H

#include "kernels/gemm_w4a8_token_factors.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/int4_atom.h"

/* What a loop is compiled for: constants where it is called. */
typedef struct loop_kind {
    bool f3;    /* words in F3 form */
    bool a128;  /* A has scales along k */
    int groups; /* weight groups a k block: 1, 2 or 4 */
} loop_kind;

/* The thread's words of an atom, the first of them at `first`. */
HB_DEVICE void load_words(smem_addr first, uint32_t words[8])
{
    smem_load_u32x4(first, words);
    smem_load_u32x4(first + 2048u, words + 4);
}

/* Those words as fragments, complete before the chain that reads them. */
HB_DEVICE void decode_words(const uint32_t words[8], bool f3, uint32_t *a)
{
    atom_decode(words, f3, a);
    wgmma_operands_ready(a, ATOM_REGISTERS);
}

/* partial = weights * tokens^T from +0, over the k32 steps first .. end - 1 of a block. */
HB_DEVICE void issue_chain(float *partial, const uint32_t *a, smem_addr tokens, int first, int end)
{
    const uint64_t desc = wgmma_desc(tokens, 0, 1024, SWIZZLE_128B);
    int step;
    HB_UNROLL
    for (step = first; step < end; step++) {
        WGMMA(partial, a + 4 * step, wgmma_desc_advance_low(desc, (uint32_t)step * 32u),
              step != first);
    }
}

/* Byte offset of the thread's first pair of tokens among a group's scales. */
HB_DEVICE uint32_t token_offset(uint32_t words)
{
    return TILE_ROWS * 4u + (words / 2u & 24u);
}

/* Factors of the block that is promoted. */
typedef struct factors {
    float low, high; /* of row g of the warp's 16, of row g + 8 */
    smem_addr tokens;
} factors;

/* Byte offset of the thread's rows among a group's scales. */
HB_DEVICE uint32_t row_offset(uint32_t warpgroup, uint32_t words)
{
    return warpgroup * 256u + (words / 8u & 0xf8u);
}

/* Those of the rows at `rows`, and of the tokens from `tokens` on. */
HB_DEVICE factors load_factors(smem_addr rows, smem_addr tokens)
{
    uint32_t pair[2];
    factors f;
    smem_load_u32x2(rows, pair);
    f.low = f32_of_bits(pair[0]);
    f.high = f32_of_bits(pair[1]);
    f.tokens = tokens;
    return f;
}

/* acc = fma_rn(partial, s, acc): of four elements, 0 and 1 belong to row g, 2 and 3 to row g + 8;
 * 0 and 2 to the first token of a pair. */
HB_DEVICE void promote(float *acc, const float *partial, factors f, bool a128)
{
    int i;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i += 4) {
        float s[4];
        s[0] = s[1] = f.low;
        s[2] = s[3] = f.high;
        if (a128) {
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

#endif
