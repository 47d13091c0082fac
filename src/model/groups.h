/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows belong to which group: the one reader of halfbyte_groups.
 *
 *     group_cursor cursor = group_cursor_begin(problem, operands);
 *     group_rows rows;
 *     while (group_cursor_next(&cursor, &rows)) { rows of A and D: [rows.start, rows.end) ... }
 *
 * Values come from the caller's memory and are clamped as the public header says, so whatever they
 * are, 0 <= start <= end <= m.  Nothing overflows for any int32 or int64 value.
 *
 * The pointers and strides themselves must have passed halfbyte_run()'s checks.
 */
#ifndef HALFBYTE_MODEL_GROUPS_H
#define HALFBYTE_MODEL_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "halfbyte.h"

/* Rows [start, end) of group `group`: of A and D themselves, MASKED: of the group's own matrix. */
typedef struct group_rows {
    int64_t group;
    int64_t start;
    int64_t end;
} group_rows;

typedef struct group_cursor {
    const halfbyte_problem *problem;
    const halfbyte_operands *operands;
    int64_t next;  /* group that the next call returns */
    int64_t taken; /* RANGES by counts alone: rows of the groups before it */
} group_cursor;

/* Value `index` of an int32 or int64 array; stride in elements, 0 = 1. */
static inline int64_t group_index_read(halfbyte_index_type type, const void *values, int64_t stride,
                                       int64_t index)
{
    const int64_t at = index * (stride == 0 ? 1 : stride);
    return type == HALFBYTE_INDEX_INT64 ? ((const int64_t *)values)[at]
                                        : ((const int32_t *)values)[at];
}

static inline int64_t group_clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static inline group_cursor group_cursor_begin(const halfbyte_problem *problem,
                                              const halfbyte_operands *operands)
{
    const group_cursor cursor = {problem, operands, 0, 0};
    return cursor;
}

/* RANGES: where group `group` begins. */
static inline int64_t group_range_start(const group_cursor *cursor, int64_t group)
{
    const halfbyte_index_type type = cursor->problem->index_type;
    const halfbyte_groups *groups = &cursor->operands->groups;
    if (groups->starts != NULL) {
        return group_index_read(type, groups->starts, groups->starts_stride, group);
    }
    if (groups->ends != NULL) {
        return group == 0 ? 0
                          : group_index_read(type, groups->ends, groups->ends_stride, group - 1);
    }
    return cursor->taken;
}

/*
 * The next group in ascending order, empty ones included: DENSE one group of all m rows, RANGES and
 * MASKED `groups` of them.  Not for LABELS.  Returns false, and leaves *rows alone, after the last.
 */
static inline bool group_cursor_next(group_cursor *cursor, group_rows *rows)
{
    const halfbyte_problem *problem = cursor->problem;
    const halfbyte_groups *groups = &cursor->operands->groups;
    const halfbyte_index_type type = problem->index_type;
    const int64_t m = cursor->operands->m;
    const int64_t group = cursor->next;
    if (group >= (problem->grouping == HALFBYTE_GROUPING_DENSE ? 1 : problem->groups)) {
        return false;
    }
    int64_t start = 0;
    int64_t end = m;
    if (problem->grouping == HALFBYTE_GROUPING_RANGES) {
        start = group_clamp(group_range_start(cursor, group), 0, m);
    }
    if (problem->grouping == HALFBYTE_GROUPING_RANGES && groups->ends != NULL) {
        const int64_t value = group_index_read(type, groups->ends, groups->ends_stride, group);
        end = group_clamp(value, start, m);
    } else if (problem->grouping != HALFBYTE_GROUPING_DENSE && groups->counts != NULL) {
        const int64_t value = group_index_read(type, groups->counts, groups->counts_stride, group);
        end = start + group_clamp(value, 0, m - start);
        cursor->taken = end;
    }
    cursor->next = group + 1;
    rows->group = group;
    rows->start = start;
    rows->end = end;
    return true;
}

/* LABELS: the group of row `row` in [0, m), -1 if it has none. */
static inline int64_t label_group(const halfbyte_problem *problem,
                                  const halfbyte_operands *operands, int64_t row)
{
    const int32_t label = operands->groups.labels[row];
    return label >= 0 && label < problem->groups ? label : -1;
}

#endif
