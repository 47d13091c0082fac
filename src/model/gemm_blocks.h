/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks along k: docs/numerics.md section 4 in code.
 *
 * Positions are k + group_k_offset.  Blocks of `length` positions and atoms of 128 positions both
 * begin at multiples of their length, so a block never crosses an atom; an atom is what the chains
 * decode at once and what one packed int4 atom holds.
 */
#ifndef HALFBYTE_MODEL_GEMM_BLOCKS_H
#define HALFBYTE_MODEL_GEMM_BLOCKS_H

#include "halfbyte.h"
#include "model/chain.h"

typedef struct gemm_blocks {
    int64_t k;
    int64_t offset; /* position of k = 0 */
    int64_t length; /* positions a block: 128, 64 or 32 */
    int64_t count;  /* blocks */
} gemm_blocks;

/* A run of k: [k_begin, k_begin + k_count), standing `pad` positions after its atom's start. */
typedef struct gemm_run_of_k {
    int64_t k_begin;
    int k_count;
    int pad;
} gemm_run_of_k;

static inline gemm_blocks gemm_blocks_of(const halfbyte_problem *problem)
{
    gemm_blocks blocks = {problem->k, problem->group_k_offset, CHAIN_MAX_K, 0};
    const int64_t group = problem->weight_group_size;
    if (problem->b_scale.mode == HALFBYTE_SCALE_K_GROUP && group != 0 && group < blocks.length) {
        blocks.length = group;
    }
    if (problem->k > 0) {
        blocks.count = (problem->k + blocks.offset + blocks.length - 1) / blocks.length;
    }
    return blocks;
}

/* The k that stand in atom `atom`. */
static inline gemm_run_of_k gemm_blocks_atom(const gemm_blocks *blocks, int64_t atom)
{
    const int64_t begin = atom * CHAIN_MAX_K;
    const int64_t end = begin + CHAIN_MAX_K;
    const int64_t last = blocks->k + blocks->offset;
    const int64_t first = begin > blocks->offset ? begin : blocks->offset;
    const gemm_run_of_k run = {first - blocks->offset, (int)((end < last ? end : last) - first),
                               (int)(first - begin)};
    return run;
}

/* Tensor-core instructions of a block; leading positions without a k are zeros and take part. */
static inline int gemm_blocks_instructions(const gemm_blocks *blocks, int64_t block)
{
    const int64_t left = blocks->k + blocks->offset - block * blocks->length;
    const int64_t positions = left < blocks->length ? left : blocks->length;
    return (int)((positions + CHAIN_BLOCK_K - 1) / CHAIN_BLOCK_K);
}

/* First block of range `split` of `splits`; the first count % splits ranges are longer by one. */
static inline int64_t gemm_blocks_split(const gemm_blocks *blocks, int64_t splits, int64_t split)
{
    const int64_t rest = blocks->count % splits;
    return blocks->count / splits * split + (split < rest ? split : rest);
}

#endif
