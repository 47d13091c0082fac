/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of quantised weights stand, for the quantiser and its reverse. */
#ifndef HALFBYTE_MODEL_WEIGHT_ADDRESS_H
#define HALFBYTE_MODEL_WEIGHT_ADDRESS_H

#include <stdint.h>

#include "halfbyte.h"

static inline int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Row of int4 weights; strides are even, so that it begins at a byte. */
static inline uint8_t *weight_int4_row(const halfbyte_weight_quantization *a, int64_t group,
                                       int64_t row)
{
    return (uint8_t *)a->dst.data + (group * a->dst.group_stride + row * a->dst.ld) / 2;
}

/* Index in the scale tensor of (mn, kb) of a group. */
static inline int64_t weight_scale_index(const halfbyte_weight_quantization *a, int64_t group,
                                         int64_t mn, int64_t kb)
{
    const int64_t base = group * a->scale.group_stride;
    return a->layout == HALFBYTE_SCALE_K_MAJOR ? base + mn * a->scale.stride_mn + kb
                                               : base + mn + kb * a->scale.stride_k;
}

#endif
