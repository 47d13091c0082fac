/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows belong to which group: the kernels' reader of halfbyte_groups, 32 groups at a time.
 * Values are clamped as the public header says, so whatever they are, 0 <= start <= end <= m.
 */
#ifndef HALFBYTE_KERNELS_TILE_GROUP_ROWS_H
#define HALFBYTE_KERNELS_TILE_GROUP_ROWS_H

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"

/* Value `index` of a group array, clamped to [0, high]. */
HB_DEVICE uint32_t group_value(const gemm_groups *groups, const void *values, int64_t stride,
                               int64_t index, uint32_t high)
{
    int64_t value;
    if (groups->is_int64) {
        value = (int64_t)global_load_u64((const uint64_t *)values + index * stride);
    } else {
        value = (int32_t)global_load_u32((const uint32_t *)values + index * stride);
    }
    return value < 0 ? 0u : value > (int64_t)high ? high : (uint32_t)value;
}

/* Sum over this lane and those below, cut to `most` (< 2^31). */
HB_DEVICE uint32_t lanes_sum(uint32_t value, uint32_t most)
{
    const uint32_t lane = lane_index();
    uint32_t distance;
    HB_UNROLL
    for (distance = 1; distance < 32; distance *= 2) {
        const uint32_t below = shuffle_u32(value, (lane - distance) & 31u);
        value += lane >= distance ? below : 0u;
        value = value < most ? value : most;
    }
    return value;
}

/* Is a group of so many rows one of this launch? */
HB_DEVICE bool group_is_taken(const gemm_groups *groups, uint32_t rows)
{
    return rows >= (uint32_t)groups->rows_least && rows <= (uint32_t)groups->rows_most;
}

/*
 * Rows [*start, *end) of this lane's group; none for a lane without a group, or whose group another
 * launch has.  *taken: by counts alone, rows of the groups before lane 0's; moved on.
 */
HB_DEVICE void group_rows(const gemm_groups *groups, uint32_t m, int64_t group, uint32_t *taken,
                          uint32_t *start, uint32_t *end)
{
    const bool exists = group < groups->count;
    uint32_t first = 0, last = exists ? m : 0u;
    if (groups->kind == GEMM_RANGES && exists) {
        if (groups->starts != NULL) {
            first = group_value(groups, groups->starts, groups->starts_stride, group, m);
            first = groups->from_end ? m - first : first;
        } else if (groups->ends != NULL && group > 0) {
            first = group_value(groups, groups->ends, groups->ends_stride, group - 1, m);
        }
        if (groups->ends != NULL) {
            last = group_value(groups, groups->ends, groups->ends_stride, group, m);
        }
    }
    if (groups->counts != NULL) {
        const uint32_t count =
            exists ? group_value(groups, groups->counts, groups->counts_stride, group, m) : 0u;
        if (groups->kind == GEMM_RANGES && groups->starts == NULL) {
            const uint32_t sum = lanes_sum(count, m);
            const uint32_t below = shuffle_u32(sum, (lane_index() - 1u) & 31u);
            const uint32_t before = lane_index() == 0 ? 0u : below;
            first = before < m - *taken ? *taken + before : m;
            last = sum < m - *taken ? *taken + sum : m;
            *taken = shuffle_u32(last, 31);
        } else {
            last = count < m - first ? first + count : m;
        }
    }
    *start = first;
    *end = last < first || !group_is_taken(groups, last - first) ? first : last;
}

#endif
