/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor map before it is encoded: planes of rows of bytes, as every GEMM kernel reads them. */
#ifndef HALFBYTE_CUDA_GEMM_MAP_H
#define HALFBYTE_CUDA_GEMM_MAP_H

#include <stdint.h>

typedef struct gemm_map {
    const void *data;   /* 16-byte aligned */
    uint64_t columns;   /* bytes of a row, at least 1 */
    uint64_t rows;      /* at least 1 */
    uint64_t planes;    /* 0: a map of two dimensions */
    uint64_t row_bytes; /* between rows and between planes: multiples of 16, not 0 */
    uint64_t plane_bytes;
    uint32_t box_rows; /* 1 .. 256; a box is 128 bytes x box_rows x 1 plane, 128-byte swizzle */
} gemm_map;

enum { GEMM_MAP_BOX_BYTES = 128 };

#endif
