/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of the quantisers, as the host passes them by value.
 */
#ifndef HALFBYTE_KERNELS_QUANTIZE_PARAMS_H
#define HALFBYTE_KERNELS_QUANTIZE_PARAMS_H

#include "kernels/hopper/types.h"

/* Type of the source: a value, so that one kernel serves all three. */
enum { QUANTIZE_FROM_F32, QUANTIZE_FROM_BF16, QUANTIZE_FROM_F16 };

/* Elements of a vector, which is 16 bytes: what a lane loads at a time. */
#define QUANTIZE_VECTOR(source) ((source) == QUANTIZE_FROM_F32 ? 4 : 8)

/* Vectors that a thread keeps in registers, loaded before the first is used. */
#define QUANTIZE_VECTORS 4

/* Columns that a warp takes at a time. */
#define QUANTIZE_SEGMENT(source) (32 * QUANTIZE_VECTOR(source) * QUANTIZE_VECTORS)

/* Threads of a block of all kernels but that of the rows, which has a multiple of 32 up to
 * QUANTIZE_ROWS_THREADS, and bytes of shared memory: room to align, then a word a warp. */
#define QUANTIZE_THREADS 256
#define QUANTIZE_WARPS (QUANTIZE_THREADS / 32)
#define QUANTIZE_ROWS_THREADS 512
#define QUANTIZE_SMEM_BYTES (1024 + 32 * 4)

/*
 * The word of a scale that is computed for the whole tensor goes through three states, told apart
 * by the sign bit, which no computed scale has: 0; this bit with the largest magnitude so far; the
 * scale.
 */
#define QUANTIZE_AMAX_TAG 0x80000000u

/*
 * Strides in elements.  A tile is tile_rows rows of QUANTIZE_WARPS / tile_rows segments, one
 * segment a warp; tiles are counted along k first, columns_of_tiles of them.
 */
typedef struct quantize_params {
    const void *src; /* [m, k] f32, bf16 or f16, aligned to its element */
    uint8_t *dst;    /* [m, k] e4m3 */
    float *scale;
    int64_t src_ld;
    int64_t dst_ld;
    int64_t scale_stride_m; /* blocks: (row, k block) at row * this + block * ... */
    int64_t scale_stride_k;
    uint32_t m;
    uint32_t k;
    int32_t source;         /* QUANTIZE_FROM_* */
    int32_t src_is_aligned; /* rows of the source are 16-byte aligned */
    int32_t dst_is_aligned; /* rows of dst are aligned to the elements of a vector */
    int32_t power_of_two;   /* round computed scales up to powers of two */
    float epsilon;          /* the least that amax counts as; above 0 */
    int32_t is_computed;    /* tensor: the word of the scale may still hold amax */
    uint32_t tile_rows;     /* 1, 2, 4, 8 */
    uint32_t columns_of_tiles;
    uint32_t tiles;
    uint32_t row_threads; /* rows: threads that share a row: 32, or all of the block */
    uint32_t block_rows;  /* rows: rows of a block */
} quantize_params;

#endif
