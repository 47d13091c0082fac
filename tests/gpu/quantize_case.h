/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of halfbyte_quantize_activations() with its data and the CPU's result, for comparison
 * with the GPU and with the emulator.
 *
 * Each tensor lies in an image: guard, tensor with whatever its strides leave between rows, guard.
 * Images are 256-byte aligned, so that a copy of one that is too has its elements aligned alike.
 */
#ifndef HALFBYTE_TESTS_GPU_QUANTIZE_CASE_H
#define HALFBYTE_TESTS_GPU_QUANTIZE_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halfbyte.h"
#include "oracle/splitmix.h"

/* What the values look like. */
typedef enum quantize_fill {
    QUANTIZE_FILL_BITS,    /* any bits: infinities, NaN, subnormals and all sizes */
    QUANTIZE_FILL_NORMAL,  /* alike in size, some special ones in between */
    QUANTIZE_FILL_TIES,    /* quotients at the middle between two codes, and right beside it */
    QUANTIZE_FILL_SMALL,   /* zeros and subnormals of both signs */
    QUANTIZE_FILL_NOTHING, /* infinities and NaN alone */
    QUANTIZE_FILLS
} quantize_fill;

/* Mode, layout and flags that go together. */
typedef enum quantize_form {
    QUANTIZE_FORM_STATIC,
    QUANTIZE_FORM_TENSOR,
    QUANTIZE_FORM_OUTER,
    QUANTIZE_FORM_BLOCKS_MN,
    QUANTIZE_FORM_BLOCKS_K,
    QUANTIZE_FORMS
} quantize_form;

typedef struct quantize_image {
    uint8_t *bytes;
    size_t size;
    size_t data_at, data_size; /* of the tensor, from its first to its last element */
} quantize_image;

typedef struct quantize_case {
    halfbyte_activation_quantization arguments; /* pointers into the images below */
    quantize_image src, dst, scale;
    uint8_t *dst_expected, *scale_expected; /* images that the CPU has worked on */
} quantize_case;

typedef struct quantize_shape {
    int64_t m, k;
    bool is_plain; /* aligned, no gaps between rows */
} quantize_shape;

/* Draws data, strides, alignment, epsilon and a given scale, and lets the CPU compute. */
void quantize_case_make(quantize_case *c, struct random *r, quantize_form form, halfbyte_type type,
                        quantize_fill fill, bool power_of_two, quantize_shape shape);
/* Draws data of the same strides anew into src, and what is expected of it; dst and scale stay. */
void quantize_case_draw(quantize_case *c, struct random *r, quantize_fill fill);
void quantize_case_free(quantize_case *c);

/* The arguments with the tensors where copies of the images lie. */
halfbyte_activation_quantization quantize_case_at(const quantize_case *c, const void *src,
                                                  void *dst, void *scale);

#endif
