/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU oracle: docs/numerics.md computed on the GPU with integers, one thread an output.
 *
 * It is slow and obvious, and it exists so that a billion outputs of a fast kernel can be compared
 * on the device in seconds.  It uses no tensor core; it is held against the CPU model first.
 */
#ifndef HALFBYTE_TESTS_GPU_ORACLE_H
#define HALFBYTE_TESTS_GPU_ORACLE_H

#include <stdint.h>

/* Where the scale of (group, mn, k block) stands: at group * group_stride + (mn / mn_block) *
 * stride_mn + k block * stride_k, of type `type`. */
typedef struct oracle_scale {
    const void *data; /* NULL: absent */
    int64_t group_stride, stride_mn, stride_k;
    int32_t mn_block;
    int32_t type;       /* halfbyte_type */
    int32_t along_k;    /* takes part in the block's scale; otherwise in the epilogue */
    int32_t all_of_k;   /* one group for all of k: the k block is always 0 */
    int32_t interleave; /* INTERLEAVED4: at (k block / 4) * stride_k + mn * 4 + k block % 4 */
    int32_t pad;
} oracle_scale;

typedef struct oracle_matrix {
    const void *data; /* NULL: absent */
    int64_t ld, group_stride;
    int32_t type;
    int32_t pad;
} oracle_matrix;

typedef struct oracle_params {
    oracle_matrix a, b, c, d; /* a e4m3; b e4m3 or int4 row-major; d f32, bf16 or f16 */
    oracle_matrix channel;    /* f32 [n] a group: ld unused */
    oracle_matrix bias;
    oracle_scale a_scale, b_scale;
    const int32_t *row_group; /* group of each row of a and d, -1: none; NULL: all of group 0 */
    int64_t rows;             /* of d, all groups together */
    int64_t rows_a_group;     /* MASKED: rows of a group's matrix; 0: one matrix */
    int64_t n, k;
    int32_t block; /* k positions a block: 128, 64, 32 */
    int32_t group_k_offset;
    int32_t k_splits;
    int32_t int4; /* B is int4 */
    int32_t has_alpha;
    float alpha, beta;
    int32_t pad;
} oracle_params;

#endif
