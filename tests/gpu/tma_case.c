/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/tma_case.h"

#include <stdio.h>
#include <string.h>

#include "gpu/operand_layout.h"

static void box_draw(struct random *r, tma_case *c, bool narrow)
{
    const uint32_t units = c->span / 16; /* of 16 bytes in a whole row */
    uint32_t row = c->span;
    if (c->span == 0) {
        const uint32_t most = c->element == 1 ? 16 : 32; /* 256 elements at most */
        row = 16 * (uint32_t)random_between(r, 1, most);
    } else if (narrow) {
        row = 16 * (uint32_t)random_between(r, 1, units - 1);
    }
    c->box[0] = row / c->element;
    c->box[1] = (uint32_t)random_between(r, 1, c->rank == 3 ? 9 : 40);
    c->box[2] = c->rank == 3 ? (uint32_t)random_between(r, 1, 4) : 1;
}

void tma_case_draw(struct random *r, tma_case *c, uint32_t rank, bool narrow, int type)
{
    static const int types[3] = {CUDA_TENSOR_UINT8, CUDA_TENSOR_BFLOAT16, CUDA_TENSOR_FLOAT32};
    static const uint32_t most[3] = {300, 60, 7};
    memset(c, 0, sizeof *c);
    c->type = type >= 0 ? type : types[random_below(r, 3)];
    c->element = c->type == CUDA_TENSOR_UINT8 ? 1 : c->type == CUDA_TENSOR_FLOAT32 ? 4 : 2;
    c->rank = rank;
    c->span = 16u << random_between(r, narrow ? 1 : 0, 3);
    c->span = c->span == 16 ? 0 : c->span;
    box_draw(r, c, narrow);
    for (uint32_t i = 0; i < 3; i++) {
        c->dims[i] = i < rank ? (uint64_t)random_between(r, 1, most[i]) : 1;
        /* Inside, over either edge, and quite outside. */
        const int64_t size = (int64_t)c->dims[i], box = c->box[i];
        c->at[i] = i < rank ? (int32_t)random_between(r, -box - 2, size + 2) : 0;
        if (i < rank && random_percent(r, 50)) {
            c->at[i] = (int32_t)random_between(r, 0, size - 1);
        }
    }
    /* Along rows the engine takes multiples of 16 bytes alone: anything else is an illegal
     * instruction. */
    const int32_t unit_x = (int32_t)(16 / c->element);
    c->at[0] = c->at[0] / unit_x * unit_x;
    const uint64_t row = (c->dims[0] * c->element + 15) / 16 * 16;
    c->strides[1] = row + 16 * (uint64_t)random_below(r, 4);
    c->strides[2] = c->strides[1] * c->dims[1] + 16 * (uint64_t)random_below(r, 4);
    c->bytes = (size_t)(c->strides[2] * c->dims[2]);
    const uint32_t unit = c->span == 0 || random_percent(r, 50) ? 128 : 8 * c->span;
    c->shared = unit * (uint32_t)random_below(r, 8192 / unit);
}

void tma_case_text(const tma_case *c, char text[TMA_CASE_TEXT])
{
    snprintf(text, TMA_CASE_TEXT,
             "%uD, elements of %u bytes, tensor %llu x %llu x %llu, box %u x %u x %u at %d %d %d, "
             "swizzle %u, shared %u",
             c->rank, c->element, (unsigned long long)c->dims[0], (unsigned long long)c->dims[1],
             (unsigned long long)c->dims[2], c->box[0], c->box[1], c->box[2], c->at[0], c->at[1],
             c->at[2], c->span, c->shared);
}

tensor_map tma_case_encode(const session *s, const tma_case *c, cuda_pointer tensor)
{
    static const uint32_t element_strides[3] = {1, 1, 1};
    const int swizzle = c->span == 0 ? 0 : c->span == 32 ? 1 : c->span == 64 ? 2 : 3;
    tensor_map map;
    memset(&map, 0, sizeof map);
    session_check(s,
                  s->driver->tensor_map_encode(&map, c->type, c->rank, session_pointer(tensor),
                                               c->dims, c->strides + 1, c->box, element_strides,
                                               CUDA_TENSOR_INTERLEAVE_NONE, swizzle,
                                               CUDA_TENSOR_L2_256B, CUDA_TENSOR_FILL_ZERO),
                  "cuTensorMapEncodeTiled");
    return map;
}

uint32_t tma_case_box_bytes(const tma_case *c)
{
    return c->box[0] * c->box[1] * c->box[2] * c->element;
}

void tma_case_walk(const tma_case *c, void (*visit)(void *context, uint32_t shared, int64_t global),
                   void *context)
{
    const uint32_t pitch = c->span != 0 ? c->span : c->box[0] * c->element;
    for (uint32_t line = 0; line < c->box[1] * c->box[2]; line++) {
        const int64_t y = (int64_t)c->at[1] + line % c->box[1];
        const int64_t z = (int64_t)c->at[2] + line / c->box[1];
        for (uint32_t i = 0; i < c->box[0]; i++) {
            const int64_t x = (int64_t)c->at[0] + i;
            const bool inside = x >= 0 && x < (int64_t)c->dims[0] && y >= 0 &&
                                y < (int64_t)c->dims[1] && z >= 0 && z < (int64_t)c->dims[2];
            const int64_t global =
                z * (int64_t)c->strides[2] + y * (int64_t)c->strides[1] + x * (int64_t)c->element;
            visit(context, swizzled(c->shared + line * pitch + i * c->element, c->span),
                  inside ? global : -1);
        }
    }
}
