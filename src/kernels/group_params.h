/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of the kernels that run before or behind a GEMM, as the host passes them by value.
 */
#ifndef HALFBYTE_KERNELS_GROUP_PARAMS_H
#define HALFBYTE_KERNELS_GROUP_PARAMS_H

#include "kernels/gemm_params.h"

/* group_bounds.h: labels to the bounds of RANGES. */
typedef struct group_bounds_params {
    const int32_t *labels; /* [m] */
    uint32_t *tops; /* [groups], zeros before; m - first row of the group, 0 if it has none */
    uint32_t *ends; /* [groups], zeros before; last row of the group + 1 */
    int32_t m;
    int32_t groups;
} group_bounds_params;

/* zero_padding.h: +0 to the rows that no group owns. */
typedef struct zero_padding_params {
    gemm_groups groups; /* as the GEMM gets it */
    gemm_matrix d;
    int32_t m; /* rows (MASKED: of a plane) */
    int32_t n;
    int32_t planes;
} zero_padding_params;

/* add_splits.h: the sums of the k ranges added up, then the epilogue. */
typedef struct add_splits_params {
    gemm_params gemm;  /* k_splits is 1; groups, m, n and epilogue as the problem has them */
    const float *sums; /* element (split, plane, row, column) at split * split_stride +
                          plane * plane_stride + row * n + column */
    int64_t split_stride;
    int64_t plane_stride;
    int32_t splits;
} add_splits_params;

#endif
