/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the bytes of a K-major wgmma operand lie in shared memory, written from the PTX text and
 * not from the emulator: [rows, 128 bytes of k] in the layouts that descriptors can name.
 */
#ifndef HALFBYTE_TESTS_GPU_OPERAND_LAYOUT_H
#define HALFBYTE_TESTS_GPU_OPERAND_LAYOUT_H

#include "gpu/wgmma_params.h"

enum operand_layout {
    LAYOUT_PLAIN_K,    /* no swizzle, core matrices of a row group follow each other along k */
    LAYOUT_PLAIN_ROWS, /* no swizzle, core matrices of one k follow each other along rows */
    LAYOUT_SWIZZLE_32, /* panels of 32, 64, 128 bytes of k */
    LAYOUT_SWIZZLE_64,
    LAYOUT_SWIZZLE_128,
    LAYOUT_SWIZZLE_128_GAPS, /* groups of 8 rows 2,048 bytes apart */
    LAYOUTS
};

/* Bytes of the image of a matrix of `rows` (a multiple of 8) rows, a multiple of 1,024. */
uint32_t operand_bytes(enum operand_layout layout, uint32_t rows);

/* What descriptors of the matrix at byte `at` (a multiple of 1,024) of shared memory say. */
wgmma_matrix operand_describe(enum operand_layout layout, uint32_t rows, uint32_t at);

/* Writes matrix (rows of 128 bytes) into the image of shared memory, whose byte 0 is 1,024-aligned.
 */
void operand_store(enum operand_layout layout, uint32_t rows, uint32_t at, const uint8_t *matrix,
                   uint8_t *image);

/* Where byte `address` of an unswizzled tile lies; span 0 (none), 32, 64 or 128 bytes. */
uint32_t swizzled(uint32_t address, uint32_t span);

#endif
