/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of the kernels in instructions.cu, each of which shows what one group of instructions
 * does.
 *
 * Waits in them are bounded, so that a wrong byte count or parity is a wrong result and not a hang.
 */
#ifndef HALFBYTE_TESTS_GPU_INSTRUCTIONS_H
#define HALFBYTE_TESTS_GPU_INSTRUCTIONS_H

#include "kernels/hopper/types.h"

enum {
    COPY_BYTES = 65536,  /* of shared memory that the copy kernels fill, change and dump */
    MATRIX_BYTES = 4096, /* the same of test_matrices */
    BARRIER_ANSWERS = 12,
    NAMED_ROUNDS = 64
};

/* One warp.  loaded = [6][32]: ldmatrix_x4, then ldmatrix_x2; then stmatrix_x4 and _x2 of `stored`.
 */
typedef struct matrix_params {
    const uint32_t *image; /* MATRIX_BYTES of shared memory before */
    const uint32_t
        *rows; /* [4][32] byte offset of the row that a lane names: x4, x2, st x4, st x2 */
    const uint32_t *stored; /* [6][32] */
    uint32_t *loaded;       /* [6][32] */
    uint32_t *dump;         /* MATRIX_BYTES after */
} matrix_params;

enum copy_form {
    COPY_TMA_2D,
    COPY_TMA_2D_FIRST, /* with a cache policy */
    COPY_TMA_2D_LAST,
    COPY_TMA_3D,
    COPY_TMA_3D_NORMAL,
    COPY_BULK,
    COPY_BULK_HINT
};

enum store_form { STORE_TMA_2D, STORE_TMA_3D, STORE_REDUCE, STORE_BULK };

/* 128 threads: shared memory := image, one load into it, dump. */
typedef struct load_params {
    tensor_map map;
    const uint32_t *image;
    const uint8_t *source; /* BULK */
    uint32_t *dump;
    uint32_t *arrived; /* 1: the barrier's phase completed */
    int32_t at[3];
    uint32_t bytes; /* expected by the barrier */
    uint32_t destination;
    uint32_t form; /* copy_form */
} load_params;

/* 128 threads: shared memory := image, one store out of it. */
typedef struct store_params {
    tensor_map map;
    const uint32_t *image;
    uint8_t *target; /* BULK */
    int32_t at[3];
    uint32_t bytes;
    uint32_t source;
    uint32_t form; /* store_form */
} store_params;

/* A cluster of two blocks of 128 threads.  dump and arrived are a block each. */
typedef struct cluster_params {
    tensor_map map;
    const uint32_t *image;
    const uint8_t *source;
    uint32_t *dump;
    uint32_t *arrived;
    uint32_t *ranks; /* [blocks][3]: rank, size, arrivals of the other block's warp seen */
    int32_t at[2];
    uint32_t bytes;
    uint32_t bulk; /* 1: bulk_load_multicast, 0: tma_load_2d_multicast */
} cluster_params;

/* One thread asks a barrier through its life. */
typedef struct barrier_params {
    const uint8_t *source; /* 64 bytes */
    uint32_t *answers;     /* [BARRIER_ANSWERS] */
} barrier_params;

/* 128 threads: two warps write, two read, in turns. */
typedef struct named_params {
    uint32_t *seen; /* [NAMED_ROUNDS][64] */
} named_params;

/* 384 threads a block. */
typedef struct execution_params {
    uint32_t *out; /* [blocks][384][8] */
} execution_params;

typedef struct convert_params {
    const float *x;
    uint16_t *bf16;
    uint32_t *bf16_pair; /* (x, x + 1 element) */
    uint16_t *f16;
    uint32_t *f16_pair;
    uint8_t *e4m3;
    uint64_t count; /* x has count + 1 elements */
} convert_params;

typedef struct arith_params {
    const float *x, *y, *z;
    float *fma, *mul, *add, *div, *max;
    uint64_t count;
} arith_params;

typedef struct widen_params {
    float *bf16, *f16; /* [65536] */
} widen_params;

/* Two grids in a row under programmatic launch. */
typedef struct dependent_params {
    uint32_t *data; /* [blocks * 128] */
    uint32_t *copy;
    uint32_t second; /* 0: the first grid */
} dependent_params;

/* 128 threads: cp.async by groups and by a barrier. */
typedef struct cp_async_params {
    const uint8_t *source; /* 4,096 bytes */
    uint32_t *dump;        /* 1,024 words */
    uint32_t *arrived;
} cp_async_params;

/* A tensor map is edited on the device and used. */
typedef struct edit_params {
    tensor_map *map; /* global memory */
    const uint8_t *address;
    uint32_t *dump; /* bytes */
    uint32_t *arrived;
    uint64_t stride;
    uint32_t width, bytes;
} edit_params;

#endif
