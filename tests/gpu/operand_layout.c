/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/operand_layout.h"

#include <string.h>

/* The swizzle field of a matrix descriptor. */
enum { FIELD_NONE, FIELD_128, FIELD_64, FIELD_32 };

/* 16-byte units change places inside the span, by the number of the 128-byte line. */
uint32_t swizzled(uint32_t address, uint32_t span)
{
    const uint32_t lines = span / 32 * 2; /* 0, 2, 4, 8: a unit's number is XORed below that */
    const uint32_t mask = lines == 0 ? 0 : lines - 1;
    return address ^ ((address >> 7 & mask) << 4);
}

static uint32_t span_of(enum operand_layout layout)
{
    switch (layout) {
    case LAYOUT_SWIZZLE_32: return 32;
    case LAYOUT_SWIZZLE_64: return 64;
    case LAYOUT_SWIZZLE_128:
    case LAYOUT_SWIZZLE_128_GAPS: return 128;
    default: return 0;
    }
}

/* Distance between groups of 8 rows. */
static uint32_t stride_of(enum operand_layout layout)
{
    switch (layout) {
    case LAYOUT_PLAIN_K: return 8 * WGMMA_K_BYTES;
    case LAYOUT_PLAIN_ROWS: return 128;
    case LAYOUT_SWIZZLE_128_GAPS: return 2048;
    default: return 8 * span_of(layout);
    }
}

/* Byte k of the row, before swizzling. */
static uint32_t plain_offset(enum operand_layout layout, uint32_t rows, uint32_t row, uint32_t k)
{
    const uint32_t span = span_of(layout);
    const uint32_t group = row / 8 * stride_of(layout);
    if (layout == LAYOUT_PLAIN_K) {
        return group + k / 16 * 128 + row % 8 * 16 + k % 16;
    }
    if (layout == LAYOUT_PLAIN_ROWS) {
        return group + k / 16 * (rows / 8 * 128) + row % 8 * 16 + k % 16;
    }
    return k / span * (rows / 8 * stride_of(layout)) + group + row % 8 * span + k % span;
}

uint32_t operand_bytes(enum operand_layout layout, uint32_t rows)
{
    const uint32_t bytes =
        layout == LAYOUT_SWIZZLE_128_GAPS ? rows / 8 * 2048 : rows * WGMMA_K_BYTES;
    return (bytes + 1023) / 1024 * 1024;
}

wgmma_matrix operand_describe(enum operand_layout layout, uint32_t rows, uint32_t at)
{
    wgmma_matrix matrix;
    memset(&matrix, 0, sizeof matrix); /* FIELD_NONE */
    for (uint32_t step = 0; step < WGMMA_STEPS; step++) {
        matrix.start[step] = at + plain_offset(layout, rows, 0, step * WGMMA_STEP_BYTES);
    }
    matrix.stride = stride_of(layout);
    switch (layout) {
    case LAYOUT_PLAIN_K: matrix.leading = 128; break;
    case LAYOUT_PLAIN_ROWS: matrix.leading = rows / 8 * 128; break;
    case LAYOUT_SWIZZLE_32: matrix.swizzle = FIELD_32; break;
    case LAYOUT_SWIZZLE_64: matrix.swizzle = FIELD_64; break;
    default: matrix.swizzle = FIELD_128; break;
    }
    return matrix;
}

void operand_store(enum operand_layout layout, uint32_t rows, uint32_t at, const uint8_t *matrix,
                   uint8_t *image)
{
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t k = 0; k < WGMMA_K_BYTES; k += 16) {
            const uint32_t to = swizzled(at + plain_offset(layout, rows, row, k), span_of(layout));
            memcpy(image + to, matrix + (size_t)row * WGMMA_K_BYTES + k, 16);
        }
    }
}
