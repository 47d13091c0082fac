/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products on the GPU through the public API, with operands made on the GPU, and the oracle's
 * parameters for the same product.
 */
#ifndef HALFBYTE_TESTS_GPU_GEMM_RUN_H
#define HALFBYTE_TESTS_GPU_GEMM_RUN_H

#include "gpu/oracle_run.h"
#include "gpu/session.h"
#include "halfbyte.h"

/* Plans made from now on use kernel `index` of kernel_table alone; GEMM_ANY_KERNEL: the library
 * chooses. */
enum { GEMM_ANY_KERNEL = -1 };
void gemm_choose(int index);

/* Its name without what all have in front. */
const char *gemm_kernel_name(int index);

/* A device of the public API; ends the process if it cannot be opened. */
halfbyte_device *gemm_device(halfbyte_executor executor);

/* Plans, enqueues, frees the plan once the work is done.  Counts a failure and returns false if a
 * call fails. */
bool gemm_run_once(session *s, halfbyte_device *device, const halfbyte_problem *problem,
                   const halfbyte_operands *operands);

/* May kernel `index` of kernel_table serve the problem? */
bool gemm_serves(int index, const halfbyte_problem *problem);

/* May it, but not with a bias? */
bool gemm_serves_bare(int index, const halfbyte_problem *problem);

/* Does any serve W4A8 with row-major weights, or packed ones? */
bool gemm_serves_w4a8(halfbyte_b_layout layout);

/* FP8, 1X128 by 128X128, bf16 out: the problem of the first kernel. */
halfbyte_problem gemm_fp8_problem(int64_t m, int64_t n, int64_t k, halfbyte_scale_layout layout);

/* A product whose scales vary along k, and nothing else in the epilogue. */
typedef struct gemm_shape {
    int64_t m, n, k;
    halfbyte_scale_layout layout;
    halfbyte_family family; /* 0: FP8, 1X128 by 128X128; W4A8: packed, 1X128 by K_GROUP 128 */
    halfbyte_grouping grouping;
    int64_t groups;       /* 0: 1.  RANGES: of uneven sizes; MASKED: of all rows */
    const int64_t *rows;  /* RANGES: those of each group, m together; NULL: some */
    bool token_scales;    /* A has one scale a row instead of one for 128 of k */
    halfbyte_type d_type; /* NONE: bf16 */
} gemm_shape;

/* May kernel `index` serve it? */
bool gemm_serves_shape(int index, const gemm_shape *shape);

/* The shape with one scale of A a row, if kernel `index` serves it only so; else as it is. */
gemm_shape gemm_shape_for(int index, const gemm_shape *shape);

/* Its operands, random, on the GPU. */
typedef struct gemm_device_data {
    halfbyte_problem problem;
    halfbyte_operands operands;
    halfbyte_packed_header header;
    oracle_params oracle; /* the same product; d is to be set */
    uint64_t d_bytes;
} gemm_device_data;

/* Allocates (outside the arena) and fills; D is dense and poisoned.  *data must stay where it is.
 */
void gemm_data_make(const session *s, const oracle_kernels *kernels, const gemm_shape *shape,
                    uint64_t seed, int kind, gemm_device_data *data);

/* Computes the same with the oracle into memory of its own, which it returns. */
cuda_pointer gemm_oracle(const session *s, const oracle_kernels *kernels,
                         const gemm_device_data *data);

/* Counts D's elements against `expected`. */
void gemm_compare(session *s, const oracle_kernels *kernels, const char *what,
                  const gemm_device_data *data, cuda_pointer expected);

void gemm_poison(const session *s, const gemm_device_data *data);

#endif
