/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp32 scales along k, from global memory into a stage of the ring.
 *
 * With few exceptions a k block's scales are a line of memory that nobody has read yet, so they
 * travel through the ring like the tiles, as far ahead.  They come by 4-byte cp.async, which takes
 * any stride and layout; each lane's arrival on the full barrier is made by its copies' completion.
 *
 * Scales that the problem does not have are ones, written once before the block begins: the copies
 * leave them alone.
 */
#ifndef HALFBYTE_KERNELS_TILE_SCALES_H
#define HALFBYTE_KERNELS_TILE_SCALES_H

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"

/* The scales of matrix `group`, k block `block`. */
HB_DEVICE const float *scales_of_block(const gemm_scales *s, int64_t group, int32_t block)
{
    return (const float *)s->data + group * s->group_stride + block * s->stride_k;
}

/*
 * By one warp: scales of rows first + i * step, i in [0, count), to `to` + 4 * i.  Rows from `end`
 * on have none; their sums are never stored, and what lies in their place may be anything.
 * of_block: from scales_of_block(), NULL stays NULL.
 */
HB_DEVICE void scales_copy(const gemm_scales *s, const float *of_block, smem_addr to, int32_t first,
                           int32_t step, uint32_t count, int32_t end)
{
    uint32_t i;
    if (s->data == NULL) {
        return;
    }
    for (i = lane_index(); i < count; i += 32) {
        const int32_t row = first + (int32_t)i * step;
        if (row < end) {
            cp_async_4(to + i * 4u, of_block + (row >> s->mn_shift) * s->stride_mn);
        }
    }
}

/* By threads `first` of `step`, before the block's barrier: ones in `floats` places from `at` on,
 * if the problem has no such scales. */
HB_DEVICE void scales_prepare(const gemm_scales *s, smem_addr at, uint32_t floats, uint32_t first,
                              uint32_t step)
{
    uint32_t i;
    if (s->data != NULL) {
        return;
    }
    for (i = first; i < floats; i += step) {
        smem_store_f32(at + i * 4u, 1.0f);
    }
}

#endif
