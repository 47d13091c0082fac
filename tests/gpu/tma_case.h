/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random tensors, boxes and places, and what a tensor copy does with them, byte by byte.
 */
#ifndef HALFBYTE_TESTS_GPU_TMA_CASE_H
#define HALFBYTE_TESTS_GPU_TMA_CASE_H

#include "gpu/instructions.h"
#include "gpu/session.h"
#include "oracle/splitmix.h"

typedef struct tma_case {
    int type;                     /* CUDA_TENSOR_* */
    uint32_t element, rank, span; /* bytes; 2 or 3; 0, 32, 64, 128 bytes of swizzle */
    uint64_t dims[3], strides[3]; /* elements; bytes, [0] unused */
    uint32_t box[3];
    int32_t at[3];
    uint32_t shared; /* byte offset of the box in shared memory */
    size_t bytes;    /* of the tensor in global memory */
} tma_case;

/* narrow: the box is narrower than the swizzle's span.  type < 0: drawn. */
void tma_case_draw(struct random *r, tma_case *c, uint32_t rank, bool narrow, int type);

/* One line that says all of it. */
enum { TMA_CASE_TEXT = 200 };
void tma_case_text(const tma_case *c, char text[TMA_CASE_TEXT]);

tensor_map tma_case_encode(const session *s, const tma_case *c, cuda_pointer tensor);

/* Bytes that the copy counts: those of the whole box. */
uint32_t tma_case_box_bytes(const tma_case *c);

/* Calls visit for every element of the box: its byte in shared memory, and its byte in the tensor
 * or -1 where the box lies outside. */
void tma_case_walk(const tma_case *c, void (*visit)(void *context, uint32_t shared, int64_t global),
                   void *context);

#endif
