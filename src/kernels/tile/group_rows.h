/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows belong to which group: the kernels' reader of halfbyte_groups, 32 groups at a time.
 * Values are clamped as the public header says, so whatever they are, 0 <= start <= end <= m.
 */
#ifndef HALFBYTE_KERNELS_TILE_GROUP_ROWS_H
#define HALFBYTE_KERNELS_TILE_GROUP_ROWS_H

#include "kernels/gemm_params.h"
#include "kernels/hopper/hopper.h"

/*
 * GROUP_AT_ONCE: 1 asks for all values of a group before it looks at one, so that a walk waits for
 * memory once and not for each array.  By default 0: dense products of 128 rows, which no walk
 * precedes, take 1 to 4 % longer in FP8 kernels with that code (docs/notes/fp8-kernels.md).
 */
#ifndef GROUP_AT_ONCE
#define GROUP_AT_ONCE 0
#endif

HB_DEVICE uint32_t group_clamped(int64_t value, uint32_t high)
{
    return value < 0 ? 0u : value > (int64_t)high ? high : (uint32_t)value;
}

#if GROUP_AT_ONCE
/* A value of a group array as it lies in memory. */
typedef struct group_word {
    uint32_t low;
    uint32_t high; /* int32: 0 */
} group_word;

/* What the arrays say of one group; zeros for what there is not. */
typedef struct group_words {
    group_word start; /* of `starts`; without them of `ends`, of the group before */
    group_word end;
    group_word count;
} group_words;

/* Value `index` of an array.  Its halves are loaded apart: a choice between loads of two widths
 * would wait for the one that is made. */
HB_DEVICE void group_word_load(const gemm_groups *groups, const void *values, int64_t stride,
                               int64_t index, group_word *word)
{
    const bool wide = groups->is_int64 != 0;
    const uint32_t *at = (const uint32_t *)values + index * stride * (wide ? 2 : 1);
    word->low = global_load_u32(at);
    if (wide) {
        word->high = global_load_u32(at + 1);
    }
}

HB_DEVICE group_words group_words_load(const gemm_groups *groups, int64_t group)
{
    group_words w;
    w.start.low = w.start.high = w.end.low = w.end.high = w.count.low = w.count.high = 0;
    if (groups->kind == GEMM_DENSE || group >= groups->count) {
        return w;
    }
    if (groups->kind == GEMM_RANGES) {
        if (groups->starts != NULL) {
            group_word_load(groups, groups->starts, groups->starts_stride, group, &w.start);
        } else if (groups->ends != NULL && group > 0) {
            group_word_load(groups, groups->ends, groups->ends_stride, group - 1, &w.start);
        }
        if (groups->ends != NULL) {
            group_word_load(groups, groups->ends, groups->ends_stride, group, &w.end);
        }
    }
    if (groups->counts != NULL) {
        group_word_load(groups, groups->counts, groups->counts_stride, group, &w.count);
    }
    return w;
}

HB_DEVICE uint32_t group_word_value(const gemm_groups *groups, const group_word *word,
                                    uint32_t high)
{
    const uint64_t all = (uint64_t)word->high << 32 | word->low;
    return group_clamped(groups->is_int64 ? (int64_t)all : (int32_t)word->low, high);
}

/* A value of group_rows()'s group, clamped to [0, m]. */
#define GROUP_VALUE(array, index, word) group_word_value(groups, &words.word, m)
#else
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
    return group_clamped(value, high);
}

#define GROUP_VALUE(array, index, word)                                                            \
    group_value(groups, groups->array, groups->array##_stride, index, m)
#endif

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
#if GROUP_AT_ONCE
    const group_words words = group_words_load(groups, group);
#endif
    uint32_t first = 0, last = exists ? m : 0u;
    if (groups->kind == GEMM_RANGES && exists) {
        if (groups->starts != NULL) {
            first = GROUP_VALUE(starts, group, start);
            first = groups->from_end ? m - first : first;
        } else if (groups->ends != NULL && group > 0) {
            first = GROUP_VALUE(ends, group - 1, start);
        }
        if (groups->ends != NULL) {
            last = GROUP_VALUE(ends, group, end);
        }
    }
    if (groups->counts != NULL) {
        const uint32_t count = exists ? GROUP_VALUE(counts, group, count) : 0u;
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
