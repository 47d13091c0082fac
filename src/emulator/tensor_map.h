/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps and the boxes that copies move.
 *
 * A box lies in shared memory row by row, innermost dimension first.  A row takes its bytes, or
 * with a swizzle the whole span of it (32, 64 or 128 bytes).  Swizzling exchanges chunks of 16
 * bytes by bits of the absolute shared address.
 */
#ifndef HALFBYTE_EMULATOR_TENSOR_MAP_H
#define HALFBYTE_EMULATOR_TENSOR_MAP_H

#include "emulator/api.h"

typedef struct tensor_shape {
    uint64_t magic;
    uint64_t address;
    uint64_t dims[3];
    uint64_t strides[3]; /* bytes; [0] the element's */
    uint32_t box[3];
    uint32_t element_bytes;
    uint32_t rank;
    uint32_t swizzle;
} tensor_shape;

/* False if the bytes are no map. */
bool tensor_map_decode(const tensor_map *map, tensor_shape *shape);
void tensor_map_store(tensor_map *map, const tensor_shape *shape);

static inline uint32_t box_row_bytes(const tensor_shape *shape)
{
    return shape->box[0] * shape->element_bytes;
}

static inline uint32_t box_rows(const tensor_shape *shape)
{
    return shape->box[1] * shape->box[2];
}

/* From one row to the next in shared memory. */
uint32_t box_pitch(const tensor_shape *shape);

/* An absolute shared address, or one inside a matrix descriptor's matrix, after the swizzle. */
static inline uint32_t swizzled(uint32_t address, uint32_t swizzle)
{
    switch (swizzle) {
    case 1: return address ^ (address >> 7 & 7) << 4;
    case 2: return address ^ (address >> 7 & 3) << 4;
    case 3: return address ^ (address >> 7 & 1) << 4;
    default: return address;
    }
}

/* What a row of the box has of the tensor: bytes [first, first + count) of the row, which begin at
 * source; count 0: nothing. */
typedef struct box_row {
    uint32_t first, count;
    uint64_t source;
} box_row;

box_row box_row_at(const tensor_shape *shape, const int32_t at[3], uint32_t row);

#endif
