/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gemm_padding.h"

#include <string.h>

#include "model/gemm_tile.h"
#include "model/groups.h"

/* Zero bytes are +0 in every type of D. */
static void zero_rows(const halfbyte_problem *problem, const halfbyte_operands *operands,
                      int64_t group, int64_t start, int64_t end)
{
    const halfbyte_matrix_out *d = &operands->d;
    const size_t element_bytes = problem->d_type == HALFBYTE_TYPE_F32 ? 4 : 2;
    for (int64_t row = start; row < end; row++) {
        const int64_t offset = gemm_row_offset(problem, group, row, d->ld, d->group_stride);
        memset((char *)d->data + (size_t)offset * element_bytes, 0,
               (size_t)problem->n * element_bytes);
    }
}

/*
 * Zeroes the gaps between groups that stand in ascending order; one pass.  Returns false, having
 * written nothing, if they do not.
 */
static bool zero_gaps_ascending(const halfbyte_problem *problem, const halfbyte_operands *operands)
{
    group_rows rows;
    for (int writes = 0; writes < 2; writes++) {
        group_cursor cursor = group_cursor_begin(problem, operands);
        int64_t row = 0;
        while (group_cursor_next(&cursor, &rows)) {
            if (rows.start == rows.end) {
                continue;
            }
            if (rows.start < row) {
                return false;
            }
            if (writes) {
                zero_rows(problem, operands, 0, row, rows.start);
            }
            row = rows.end;
        }
        if (writes) {
            zero_rows(problem, operands, 0, row, operands->m);
        }
    }
    return true;
}

/*
 * The first row from `row` on that no group owns, and the first owned one after it, for groups in
 * any order.  Returns false if all rows up to m are owned.
 */
static bool next_gap(const halfbyte_problem *problem, const halfbyte_operands *operands,
                     int64_t row, int64_t *gap_start, int64_t *gap_end)
{
    bool moved = true;
    int64_t next_start = operands->m;
    while (moved) {
        group_cursor cursor = group_cursor_begin(problem, operands);
        group_rows rows;
        moved = false;
        next_start = operands->m;
        while (group_cursor_next(&cursor, &rows)) {
            if (rows.start <= row && row < rows.end) {
                row = rows.end;
                moved = true;
            } else if (rows.start > row && rows.start < rows.end && rows.start < next_start) {
                next_start = rows.start;
            }
        }
    }
    *gap_start = row;
    *gap_end = next_start;
    return row < operands->m;
}

/* Ascending groups are the rule; for others the cost is quadratic in their number. */
static void zero_gaps(const halfbyte_problem *problem, const halfbyte_operands *operands)
{
    int64_t start;
    int64_t end = 0;
    if (zero_gaps_ascending(problem, operands)) {
        return;
    }
    while (next_gap(problem, operands, end, &start, &end)) {
        zero_rows(problem, operands, 0, start, end);
    }
}

void gemm_zero_padding(const halfbyte_problem *problem, const halfbyte_operands *operands)
{
    if (problem->grouping == HALFBYTE_GROUPING_RANGES) {
        zero_gaps(problem, operands);
    } else if (problem->grouping == HALFBYTE_GROUPING_LABELS) {
        for (int64_t row = 0; row < operands->m; row++) {
            if (label_group(problem, operands, row) < 0) {
                zero_rows(problem, operands, 0, row, row + 1);
            }
        }
    } else {
        group_cursor cursor = group_cursor_begin(problem, operands);
        group_rows rows;
        while (group_cursor_next(&cursor, &rows)) {
            zero_rows(problem, operands, rows.group, rows.end, operands->m);
        }
    }
}
