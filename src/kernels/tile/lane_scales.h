/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp32 scales along k as tile/scales.h has them, for loops that are short of time: what does not
 * change from k block to k block is worked out once a tile.
 */
#ifndef HALFBYTE_KERNELS_TILE_LANE_SCALES_H
#define HALFBYTE_KERNELS_TILE_LANE_SCALES_H

#include "kernels/tile/scales.h"

/* The scales of a tile's rows that a lane fetches: rows lane, lane + 32, ...; of one k block after
 * the other. */
typedef struct lane_scales {
    const float *next[4];
    bool has[4];
} lane_scales;

/* Of rows [row, end) of a matrix, at most `count`, where it has scales and this lane a row.  One
 * scale for all of them (128X128): lane 0 fetches it. */
HB_DEVICE void lane_scales_begin(lane_scales *l, const gemm_scales *s, int64_t group, int32_t block,
                                 int32_t row, int32_t end, int32_t count)
{
    const int32_t lane = (int32_t)lane_index();
    int i;
    HB_UNROLL
    for (i = 0; i < (count + 31) / 32; i++) {
        const int32_t offset = lane + i * 32;
        l->next[i] =
            scales_of_block(s, group, block) + ((row + offset) >> s->mn_shift) * s->stride_mn;
        l->has[i] =
            s->data != NULL && offset < (s->mn_shift == 0 ? count : 1) && row + offset < end;
    }
}

/* Those of the next k block to `to`, the place of the tile's first. */
HB_DEVICE void lane_scales_copy(lane_scales *l, const gemm_scales *s, smem_addr to, int32_t count)
{
    int i;
    HB_UNROLL
    for (i = 0; i < (count + 31) / 32; i++) {
        if (l->has[i]) {
            cp_async_4(to + lane_index() * 4u + (uint32_t)i * 128u, l->next[i]);
        }
        l->next[i] += s->stride_k;
    }
}

#endif
