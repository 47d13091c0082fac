/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/tensor_map.h"

#include <string.h>

#include "kernels/hopper/descriptor.h"

#define MAP_MAGIC 0x70616d726f736e74ull

_Static_assert(sizeof(tensor_shape) <= sizeof(tensor_map), "a map holds its shape");

static uint32_t span_of(uint32_t swizzle)
{
    return swizzle == 1 ? 128 : swizzle == 2 ? 64 : swizzle == 3 ? 32 : 0;
}

uint32_t box_pitch(const tensor_shape *shape)
{
    const uint32_t span = span_of(shape->swizzle);
    return span != 0 ? span : box_row_bytes(shape);
}

bool tensor_map_decode(const tensor_map *map, tensor_shape *shape)
{
    memcpy(shape, map->opaque, sizeof *shape);
    return shape->magic == MAP_MAGIC;
}

void tensor_map_store(tensor_map *map, const tensor_shape *shape)
{
    memcpy(map->opaque, shape, sizeof *shape);
}

/* The rules of cuTensorMapEncodeTiled without interleave and with element strides of 1. */
static bool encodable(const emu_tensor *tensor)
{
    const uint32_t size = tensor->element_bytes;
    if (tensor->rank < 1 || tensor->rank > 3 ||
        (size != 1 && size != 2 && size != 4 && size != 8) || (uintptr_t)tensor->data % 16 != 0 ||
        tensor->data == NULL || tensor->swizzle > 3) {
        return false;
    }
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const uint64_t stride = tensor->strides_bytes[i];
        if (tensor->dims[i] < 1 || tensor->dims[i] > (uint64_t)1 << 32 || tensor->box[i] < 1 ||
            tensor->box[i] > 256) {
            return false;
        }
        if (i > 0 && (stride % 16 != 0 || stride >= (uint64_t)1 << 40 || stride == 0)) {
            return false;
        }
    }
    const uint32_t row = tensor->box[0] * size;
    return row % 16 == 0 && (tensor->swizzle == 0 || row <= span_of(tensor->swizzle));
}

bool emu_tensor_map_encode(tensor_map *map, const emu_tensor *tensor)
{
    if (!encodable(tensor)) {
        return false;
    }
    tensor_shape shape = {.magic = MAP_MAGIC,
                          .address = (uint64_t)(uintptr_t)tensor->data,
                          .dims = {1, 1, 1},
                          .strides = {tensor->element_bytes, 0, 0},
                          .box = {1, 1, 1},
                          .element_bytes = tensor->element_bytes,
                          .rank = tensor->rank,
                          .swizzle = tensor->swizzle};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        shape.dims[i] = tensor->dims[i];
        shape.box[i] = tensor->box[i];
        if (i > 0) {
            shape.strides[i] = tensor->strides_bytes[i];
        }
    }
    memset(map, 0, sizeof *map);
    tensor_map_store(map, &shape);
    return true;
}

box_row box_row_at(const tensor_shape *shape, const int32_t at[3], uint32_t row)
{
    const int64_t y = (int64_t)at[1] + row % shape->box[1];
    const int64_t z = (int64_t)at[2] + row / shape->box[1];
    const int64_t width = (int64_t)shape->dims[0];
    int64_t x = at[0];
    int64_t end = x + shape->box[0];
    box_row result = {0, 0, 0};
    if (y < 0 || z < 0 || y >= (int64_t)shape->dims[1] || z >= (int64_t)shape->dims[2]) {
        return result;
    }
    x = x < 0 ? 0 : x;
    end = end > width ? width : end;
    if (x >= end) {
        return result;
    }
    result.first = (uint32_t)(x - at[0]) * shape->element_bytes;
    result.count = (uint32_t)(end - x) * shape->element_bytes;
    result.source = shape->address + (uint64_t)x * shape->element_bytes +
                    (uint64_t)y * shape->strides[1] + (uint64_t)z * shape->strides[2];
    return result;
}
