/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scale tensor of a GEMM, ready to be read by (group, mn, block along k).
 */
#ifndef HALFBYTE_MODEL_GEMM_SCALE_H
#define HALFBYTE_MODEL_GEMM_SCALE_H

#include <stdbool.h>

#include "format/scale_layout.h"
#include "halfbyte.h"
#include "model/element.h"

typedef struct gemm_scale {
    halfbyte_scale_mode mode;
    halfbyte_type type;
    const void *data;
    int64_t group_stride;
    struct scale_layout layout; /* of the modes with a stride along k */
} gemm_scale;

/* Does it take part in the block's scale (docs/numerics.md section 5), not in the epilogue? */
static inline bool gemm_scale_varies(const gemm_scale *scale)
{
    return scale->mode == HALFBYTE_SCALE_1X128 || scale->mode == HALFBYTE_SCALE_128X128 ||
           scale->mode == HALFBYTE_SCALE_K_GROUP;
}

/*
 * spec and tensor must have been checked.  num_mn, num_k: extents of the tensor; num_k is not
 * looked at for TENSOR and OUTER; 0 (k == 0): nothing is read, so nothing need fit.  A stride
 * along an extent of 0 or 1 is free, so one that fits stands in.
 */
static inline gemm_scale gemm_scale_of(const halfbyte_scale_spec *spec,
                                       const halfbyte_scale_in *tensor, int64_t num_mn,
                                       int64_t num_k)
{
    gemm_scale scale = {spec->mode, spec->type, tensor->data, tensor->group_stride, {0}};
    if (!gemm_scale_varies(&scale) || num_k == 0) {
        return scale;
    }
    bool fits;
    if (spec->layout == HALFBYTE_SCALE_K_MAJOR) {
        const int64_t ld = num_mn > 1 ? tensor->stride_mn : num_k;
        fits = scale_layout_init(&scale.layout, SCALE_K_MAJOR, num_mn, num_k, ld);
    } else if (spec->layout == HALFBYTE_SCALE_INTERLEAVED4) {
        /* A wider stride between rows of four groups is a tensor with more columns. */
        const int64_t columns = num_k > 4 ? tensor->stride_k / 4 : num_mn;
        fits = scale_layout_init(&scale.layout, SCALE_W4A8_MOE, columns, num_k, 0);
    } else {
        const int64_t ld = num_k > 1 ? tensor->stride_k : num_mn;
        fits = scale_layout_init(&scale.layout, SCALE_MN_MAJOR, num_mn, num_k, ld);
    }
    assert(fits);
    (void)fits;
    return scale;
}

/* The value for row or column mn of the operand (128X128: any of its 128) and block k_blk. */
static inline float gemm_scale_read(const gemm_scale *scale, int64_t group, int64_t mn,
                                    int64_t k_blk)
{
    int64_t index = group * scale->group_stride;
    if (scale->mode == HALFBYTE_SCALE_OUTER) {
        index += mn;
    } else if (scale->mode != HALFBYTE_SCALE_TENSOR) {
        const int64_t row = scale->mode == HALFBYTE_SCALE_128X128 ? mn / 128 : mn;
        index += scale_layout_offset(&scale->layout, row, k_blk);
    }
    return element_read(scale->type, scale->data, index);
}

#endif
