/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int4 weights in a checkpoint's layout and what the CPU makes of them, for comparison with the GPU
 * and with the emulator.
 *
 * Each tensor lies in an image: guard, tensor with whatever its strides leave between rows, guard.
 * What lies between rows, and in the last unit of a row beyond k, is -8: it must not count.
 */
#ifndef HALFBYTE_TESTS_GPU_PACK_CASE_H
#define HALFBYTE_TESTS_GPU_PACK_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halfbyte.h"
#include "oracle/splitmix.h"

typedef enum pack_minus8 {
    PACK_MINUS8_NONE,
    PACK_MINUS8_MANY,
    PACK_MINUS8_ONE,   /* anywhere */
    PACK_MINUS8_FIRST, /* among the first eight weights */
    PACK_MINUS8_KINDS
} pack_minus8;

typedef struct pack_shape {
    int64_t groups, n, k;
    int64_t group_k_offset;
    bool gate_up;
    bool is_plain; /* aligned, no gaps */
    bool in_place; /* is_plain too */
} pack_shape;

typedef struct pack_image {
    uint8_t *bytes;
    size_t size;
    size_t data_at, data_size;
} pack_image;

typedef struct pack_case {
    halfbyte_int4_desc desc;
    bool in_place;
    pack_image plain, packed; /* packed: poison; in place: no image */
    halfbyte_packed_header header;
    uint8_t *packed_expected; /* image after packing; in place: of plain */
    uint8_t *plain_expected;  /* image after unpacking into poison; in place: over the packed one */
} pack_case;

/* Draws weights, strides and alignment, and lets the CPU pack and unpack them. */
void pack_case_make(pack_case *c, struct random *r, halfbyte_int4_layout layout, pack_minus8 minus8,
                    pack_shape shape);
void pack_case_free(pack_case *c);

/* A shape of edges and of anything, of at most so many weights a row and rows. */
pack_shape pack_shape_draw(struct random *r, int64_t most_n, int64_t most_k);

enum { PACK_POISON = 0xa5 };

#endif
