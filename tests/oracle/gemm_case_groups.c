/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/gemm_case.h"
#include "oracle/operand.h"

#include <string.h>

/* An array of index_type with a stride and garbage between the values. */
static const void *make_indices(struct gemm_case *c, struct random *r, const int64_t *values,
                                int64_t count, int64_t *stride)
{
    bool wide = c->problem.index_type == HALFBYTE_INDEX_INT64;
    *stride = random_percent(r, 50) ? random_below(r, 2) : random_between(r, 2, 3);
    int64_t step = *stride == 0 ? 1 : *stride;
    size_t element = wide ? 8 : 4, bytes = (size_t)((count - 1) * step + 1) * element;
    uint8_t *data = case_memory(c, bytes, element * (random_bits(r) % 2));
    case_poison(data, bytes);
    for (int64_t i = 0; i < count; i++) {
        int32_t narrow = (int32_t)values[i];
        memcpy(data + (size_t)(i * step) * element, wide ? (const void *)&values[i] : &narrow,
               element);
    }
    return data;
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t old = *a;
    *a = *b;
    *b = old;
}

static void make_labels(struct gemm_case *c, struct random *r, int64_t groups)
{
    int64_t m = c->operands.m, group = 0;
    int32_t *labels = case_memory(c, (size_t)m * sizeof *labels, 0);
    for (int64_t row = 0; row < m; row++) {
        if (random_percent(r, 30))
            group += random_between(r, 0, 2);
        if (group >= groups)
            group = groups - 1;
        labels[row] = random_percent(r, 20) ? -1 : (int32_t)group;
    }
    c->operands.groups.labels = labels;
}

/* [offsets of groups + 1], starts and ends or starts and counts in any order, ends, or counts. */
static void make_ranges(struct gemm_case *c, struct random *r, int64_t groups)
{
    halfbyte_groups *g = &c->operands.groups;
    enum group_form form = c->kind.form;
    bool gaps = (form == FORM_STARTS_ENDS || form == FORM_STARTS_COUNTS) && random_percent(r, 70);
    bool to_the_end = random_percent(r, 60);
    int64_t start[CASE_MAX_GROUPS + 1], end[CASE_MAX_GROUPS], count[CASE_MAX_GROUPS], at = 0;
    for (int64_t i = 0; i < groups; i++) {
        int64_t left = c->operands.m - at;
        int64_t share = groups > 8 ? 2 * left / (groups - i) : left;
        start[i] = at + (gaps ? random_below(r, share / 3 + 1) : 0);
        left = c->operands.m - start[i];
        share = share < left ? share : left;
        end[i] = start[i] + (random_percent(r, 20) ? 0 : random_between(r, 0, share));
        if (i == groups - 1 && to_the_end)
            end[i] = c->operands.m;
        at = end[i];
    }
    for (int64_t i = groups - 1; gaps && i > 0; i--) {
        int64_t other = random_below(r, i + 1);
        swap(&start[i], &start[other]);
        swap(&end[i], &end[other]);
    }
    for (int64_t i = 0; i < groups; i++)
        count[i] = end[i] - start[i];
    start[groups] = groups > 0 ? end[groups - 1] : 0;

    if (form == FORM_STARTS_ENDS && !gaps) {
        g->starts = make_indices(c, r, start, groups + 1, &g->starts_stride);
        int64_t step = g->starts_stride == 0 ? 1 : g->starts_stride;
        g->ends = (const char *)g->starts +
                  step * (c->problem.index_type == HALFBYTE_INDEX_INT64 ? 8 : 4);
        g->ends_stride = g->starts_stride;
        return;
    }
    if (form == FORM_STARTS_ENDS || form == FORM_STARTS_COUNTS)
        g->starts = make_indices(c, r, start, groups, &g->starts_stride);
    if (form == FORM_STARTS_ENDS || form == FORM_ENDS)
        g->ends = make_indices(c, r, end, groups, &g->ends_stride);
    if (form == FORM_STARTS_COUNTS || form == FORM_COUNTS)
        g->counts = make_indices(c, r, count, groups, &g->counts_stride);
}

void case_make_groups(struct gemm_case *c, struct random *r)
{
    int64_t groups = oracle_groups(&c->problem), count[CASE_MAX_GROUPS];
    switch (c->kind.form) {
    case FORM_DENSE:
    case FORM_MASKED_ALL:
    case FORM_COUNT: return;
    case FORM_LABELS: make_labels(c, r, groups); return;
    case FORM_MASKED_COUNTS:
        for (int64_t i = 0; i < groups; i++)
            count[i] = random_percent(r, 20) ? 0 : random_between(r, 0, c->operands.m);
        c->operands.groups.counts =
            make_indices(c, r, count, groups, &c->operands.groups.counts_stride);
        return;
    default: make_ranges(c, r, groups);
    }
}
