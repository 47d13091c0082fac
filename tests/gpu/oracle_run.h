/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU oracle and the small kernels beside it (oracle.cu), from the host.
 */
#ifndef HALFBYTE_TESTS_GPU_ORACLE_RUN_H
#define HALFBYTE_TESTS_GPU_ORACLE_RUN_H

#include "gpu/oracle.h"
#include "gpu/session.h"

typedef struct oracle_kernels {
    cuda_function gemm, fill_bytes, fill_scales, compare_bytes;
} oracle_kernels;

oracle_kernels oracle_load_kernels(const session *s);

/* D of the problem that params describe; waits. */
void oracle_gemm_run(const session *s, const oracle_kernels *kernels, oracle_params *params);

/* Kinds of bytes as oracle.cu numbers them. */
enum { FILL_ANY, FILL_FINITE, FILL_NORMAL, FILL_SPARSE };
void oracle_fill_bytes(const session *s, const oracle_kernels *kernels, cuda_pointer data,
                       uint64_t bytes, uint64_t seed, int kind);
void oracle_fill_scales(const session *s, const oracle_kernels *kernels, cuda_pointer data,
                        uint64_t count, uint64_t seed);

/* How many of the bytes differ; *first is the lowest index of one. */
uint64_t oracle_compare(session *s, const oracle_kernels *kernels, cuda_pointer x, cuda_pointer y,
                        uint64_t bytes, uint64_t *first);

#endif
