/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of every GEMM kernel, FP8 and W4A8, dense and grouped, as the host passes them by
 * value.  src/api/gemm_params_fill.c makes them from a problem and its operands.
 *
 * Strides are in elements of the tensor they belong to.  `group` is the matrix of B; `plane` is the
 * one of A and D: the group where they have one each (MASKED), 0 where all groups share one.
 */
#ifndef HALFBYTE_KERNELS_GEMM_PARAMS_H
#define HALFBYTE_KERNELS_GEMM_PARAMS_H

#include "kernels/hopper/types.h"

/* Element types: the values of halfbyte_type. */
#define ELEMENT_NONE 0
#define ELEMENT_F32 1
#define ELEMENT_BF16 2
#define ELEMENT_F16 3
#define ELEMENT_E4M3 4

/*
 * Scales that vary along k: the one of row (of A or B) `mn` in k block `kb` is element
 *   group * group_stride + (mn >> mn_shift) * stride_mn + kb / 4 * stride_k4 + kb % 4 * stride_k
 * For A group is the plane.  stride_k4 is 4 * stride_k but for the INTERLEAVED4 layout.
 */
typedef struct gemm_scales {
    const void *data; /* NULL: there are none; every value is 1 */
    int64_t group_stride;
    int64_t stride_mn;
    int64_t stride_k;
    int64_t stride_k4;
    int32_t mn_shift; /* 7 for 128X128, else 0 */
    int32_t type;     /* ELEMENT_*; FP8: always F32 */
} gemm_scales;

/* A factor or addend a row or a column of D, read in the epilogue: element
 * group * group_stride + index * stride. */
typedef struct gemm_vector {
    const void *data; /* NULL: absent */
    int64_t group_stride;
    int32_t stride; /* 0: one value for all */
    int32_t type;
} gemm_vector;

/* A matrix like D: element (plane, row, column) at plane * plane_stride + row * ld + column. */
typedef struct gemm_matrix {
    void *data;
    int64_t plane_stride;
    int64_t ld;
    int32_t type;
    int32_t vectors; /* D, plane and row starts and n are multiples: 2 = of 16 bytes, 1 = of two
                        elements, 0 = of neither */
} gemm_matrix;

/* docs/numerics.md section 6; absent terms are skipped. */
typedef struct gemm_epilogue {
    gemm_matrix d;
    gemm_matrix c;            /* data NULL: absent, or beta is 0 */
    gemm_vector row_scale;    /* A TENSOR or OUTER; its group is the plane, TENSOR: the group */
    gemm_vector column_scale; /* B TENSOR or OUTER */
    gemm_vector channel_scale;
    gemm_vector bias;
    const float *alpha_pointer; /* ALPHA_DEVICE */
    float alpha;
    float beta;
    int32_t has_alpha;
    int32_t has_terms;          /* 0: D is the converted sum */
    int32_t row_scale_by_group; /* row_scale's group is the group, not the plane */
} gemm_epilogue;

/* How rows belong to groups. */
#define GEMM_DENSE 0
#define GEMM_RANGES 1
#define GEMM_MASKED 2

/* halfbyte_groups; strides are at least 1.  LABELS is RANGES with bounds that group_bounds.h found
 * in the labels; since rows without a group may lie inside, each row's label is looked at too. */
typedef struct gemm_groups {
    const void *starts;
    const void *ends;
    const void *counts;
    const int32_t *labels;
    int64_t starts_stride;
    int64_t ends_stride;
    int64_t counts_stride;
    int32_t kind;     /* GEMM_DENSE, ... */
    int32_t is_int64; /* the arrays' type */
    int32_t from_end; /* starts holds m - start (0: no row), as group_bounds.h makes it */
    int32_t count;    /* groups */
    /* A group with fewer rows or with more is another launch's, and has none in this one. */
    int32_t rows_least;
    int32_t rows_most;
} gemm_groups;

/* Flags. */
#define GEMM_WEIGHTS_EARLY 1     /* B and its scales may be read before grid_dependency_wait() */
#define GEMM_LAUNCH_DEPENDENTS 2 /* let the next grid start early */
#define GEMM_HOLDS_MINUS8 4      /* packed int4 words have the F3 form, else SM7 */
#define GEMM_D_BOXES 8           /* D may be stored by its map */
/* D is bf16 in units of 16 bytes, and all rows of a group up to its end are the group's; there are
 * no terms, or none but the scale of A. */
#define GEMM_D_PLAIN 16
#define GEMM_D_SCALED 32
/* b_scale: four k groups' scales of a row, from a multiple of four on, lie side by side at a
 * multiple of four times their size. */
#define GEMM_SCALES_BY_FOUR 64
/* b_scale: each scale may be read with all of the aligned word that it lies in, and row 0's begins
 * one. */
#define GEMM_SCALES_BY_WORD 128

/* Rows of a box of D's map: W4A8, FP8 with D staged. */
#define D_BOX_ROWS 16
#define DOWN_ROWS 64

typedef struct gemm_params {
    tensor_map a; /* (k, rows, planes) e4m3, boxes of 128 x a_box_rows x 1, 128-byte swizzle, zeros
                     outside */
    tensor_map b; /* FP8: (k, n, groups) e4m3, boxes of 128 x the kernel's rows of B x 1 */
    tensor_map d; /* with GEMM_D_BOXES: (2 * n, rows, planes) bytes, boxes of 128 x the kernel's
                     rows of D x 1, 128-byte swizzle */
    /* What every block reads first lies together, in 64 bytes: parameters that a multiprocessor has
     * not read yet come from L2. */
    int32_t m; /* rows of A (MASKED: of a plane) */
    int32_t n;
    int32_t k_blocks; /* of 128: ceil((k + k_offset) / 128); 0 for an empty sum */
    int32_t k_offset; /* W4A8: group_k_offset; k of A begins at -k_offset */
    int32_t block_k;  /* length of a block of docs/numerics.md section 4: 32, 64 or 128 */
    int32_t k_groups; /* such blocks: ceil((k + k_offset) / block_k); 0 for an empty sum */
    int32_t k_splits; /* ranges of k with sums of their own; > 1: D is their f32 sums, one range
                         after the other at split_stride, and add_splits.h does the rest */
    int32_t flags;
    int32_t a_box_rows;  /* the rows of A of the kernel, of these no more than A has */
    int32_t direct_high; /* dense and one range of k: tiles of the kernel along m and n; else 0 */
    int32_t direct_wide;
    int32_t direct_run;      /* their number over that of blocks, rounded down, if blocks without
                                clusters may take runs of tiles (tile/direct.h); else 0 */
    const uint8_t *b_packed; /* W4A8: atoms of 4,096 bytes, [group][ceil(n/64)][k blocks] */
    uint64_t b_policy;       /* L2_EVICT_*, of copies of B */
    int64_t split_stride;
    gemm_epilogue epilogue;
    gemm_scales a_scale;
    gemm_scales b_scale;
    gemm_groups groups;
} gemm_params;

#endif
