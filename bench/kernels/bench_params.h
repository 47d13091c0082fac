/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of the probes, as the host passes them (bench/bench_gemm.py knows the layout too).
 */
#ifndef HALFBYTE_BENCH_KERNELS_BENCH_PARAMS_H
#define HALFBYTE_BENCH_KERNELS_BENCH_PARAMS_H

#include <stdint.h>

/* bench_read: two pieces of memory, 16-byte aligned; whole vectors of 16 bytes are read. */
typedef struct bench_read_params {
    const unsigned char *weights;
    uint64_t weight_bytes;
    const unsigned char *activations;
    uint64_t activation_bytes;
    uint64_t policy; /* of L2: the faster of evict_first and evict_normal depends on the size */
    uint32_t *sink;  /* one word, written if all that was read is a certain value */
} bench_read_params;

#define BENCH_READ_THREADS 512
#define BENCH_EVICT_NORMAL 0x1000000000000000ull
#define BENCH_EVICT_FIRST 0x12f0000000000000ull

/* bench_mma: chains of wgmma, each BENCH_MMA_CHAIN instructions long, by two warpgroups a block. */
typedef struct bench_mma_params {
    uint32_t chains;
    uint32_t seed;
    float *sink;
} bench_mma_params;

#define BENCH_MMA_THREADS 256
#define BENCH_MMA_CHAIN 32
#define BENCH_MMA_SMEM (1024 + 128 * 128 + 256 * 128)
#define BENCH_MMA_FLOPS (2.0 * 64 * 256 * 32) /* of an instruction */

#endif
