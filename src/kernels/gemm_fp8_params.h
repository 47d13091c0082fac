/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of the FP8 kernels, as the host passes them by value.
 */
#ifndef HALFBYTE_KERNELS_GEMM_FP8_PARAMS_H
#define HALFBYTE_KERNELS_GEMM_FP8_PARAMS_H

#include "kernels/hopper/types.h"

/* Strides in elements; extents as in the problem. */
typedef struct gemm_fp8_params {
    tensor_map a;         /* [m, k] e4m3, boxes of TILE_M x 128, 128-byte swizzle, zeros outside */
    tensor_map b;         /* [n, k] e4m3, boxes of TILE_N x 128 */
    const float *a_scale; /* (row, k block) at row * a_scale_stride_m + block * a_scale_stride_k */
    const float *b_scale; /* (n block, k block) at n block * b_scale_stride_n + ... */
    uint16_t *d;          /* [m, n] bf16 */
    int64_t a_scale_stride_m;
    int64_t a_scale_stride_k;
    int64_t b_scale_stride_n;
    int64_t b_scale_stride_k;
    int64_t ldd;
    int32_t m;
    int32_t n;
    int32_t k_blocks; /* ceil(k / 128); 0 for an empty sum */
    int32_t d_pairs;  /* 1: d is 4-byte aligned and ldd even, so two columns go in one store */
    int32_t d_groups; /* 1: d is 16-byte aligned, ldd and n multiples of 8: so do eight */
} gemm_fp8_params;

#endif
