/* SPDX-License-Identifier: Apache-2.0 */
/* Group sizes: what halfbyte_check_groups() says of them, and how a run reads hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/call.h"
#include "model/groups.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define INVALID HALFBYTE_ERR_INVALID_ARGUMENT
#define CHECK_ROW(base, edit, message)                                                             \
    {                                                                                              \
        STEP_CHECK_GROUPS, base, {edit}, INVALID, message                                          \
    }
#define CHECK_ROW2(base, first, second, message)                                                   \
    {                                                                                              \
        STEP_CHECK_GROUPS, base, {first, second}, INVALID, message                                 \
    }

/* Counts 5, 0, 9, 7 of 24 rows: ranges [0, 5) [5, 5) [5, 14) [14, 21). */
static const call_row rows[] = {
    CHECK_ROW(BASE_W4A8, SET(null_handle, 1), "plan = NULL"),
    CHECK_ROW(BASE_W4A8, SET(null_struct, 1), "operands = NULL"),
    CHECK_ROW(BASE_W4A8, SET(operands.struct_size, 8), "operands.struct_size = 8"),
    CHECK_ROW(BASE_W4A8, SET(stream, 64), "stream = 0x40"),
    CHECK_ROW(BASE_W4A8, SET(operands.m, 25), "operands.m = 25: must be in [0, 24]"),
    CHECK_ROW(BASE_FP8, SET(operands.groups.counts, 64), "operands.groups has counts"),
    CHECK_ROW(BASE_W4A8, SET(operands.groups.ends, 0), "operands.groups has starts"),
    CHECK_ROW(BASE_W4A8, SET(starts[0], -1),
              "operands.groups.starts[0] = -1: must be in [0, 24] (rows of a)"),
    CHECK_ROW(BASE_W4A8, SET(starts[3], 25), "operands.groups.starts[3] = 25"),
    CHECK_ROW(BASE_W4A8, SET(starts[1], INT32_MIN), "operands.groups.starts[1] = -2147483648"),
    CHECK_ROW(BASE_W4A8, SET(ends[0], -1),
              "operands.groups.ends[0] = -1: must be in [0, 24] (from its start to operands.m)"),
    CHECK_ROW(BASE_W4A8, SET(ends[2], 4), "operands.groups.ends[2] = 4: must be in [5, 24]"),
    CHECK_ROW(BASE_W4A8, SET(ends[3], 25), "operands.groups.ends[3] = 25: must be in [14, 24]"),
    CHECK_ROW(BASE_W4A8, SET(starts[2], 4),
              "operands.groups.starts[2] = 4: must be at least 5, where the groups before it end"),
    CHECK_ROW(BASE_W4A8, SET(starts[3], 0), "operands.groups.starts[3] = 0: must be at least 14"),
    CHECK_ROW2(BASE_W4A8, SET(operands.groups.starts, 0), SET(ends[1], 4),
               "operands.groups.ends[1] = 4: must be in [5, 24]"),
    CHECK_ROW(BASE_PACKED, SET(counts[1], -1),
              "operands.groups.counts[1] = -1: must be in [0, 19] (rows left from its start)"),
    CHECK_ROW(BASE_PACKED, SET(counts[3], 11),
              "operands.groups.counts[3] = 11: must be in [0, 10] (rows left from its start)"),
    CHECK_ROW(BASE_PACKED, SET(counts[0], INT32_MAX), "operands.groups.counts[0] = 2147483647"),
    CHECK_ROW(BASE_MASKED, SET(counts64[2], 25),
              "operands.groups.counts[2] = 25: must be in [0, 24] (rows a group)"),
    CHECK_ROW(BASE_MASKED, SET(counts64[0], INT64_MIN),
              "operands.groups.counts[0] = -9223372036854775808"),
    CHECK_ROW(BASE_MASKED, SET(counts64[3], INT64_C(0x100000001)),
              "operands.groups.counts[3] = 4294967297"),
    CHECK_ROW(BASE_LABELS, SET(labels[0], -2),
              "operands.groups.labels[0] = -2: must be in [-1, 3]"),
    CHECK_ROW(BASE_LABELS, SET(labels[23], 4), "operands.groups.labels[23] = 4"),
    CHECK_ROW(BASE_LABELS, SET(labels[20], 2),
              "operands.groups.labels[20] = 2: must be -1 or at least 3, the label before it"),
    CHECK_ROW2(BASE_LABELS, SET(labels[2], -1), SET(labels[7], 1),
               "operands.groups.labels[7] = 1: must be -1 or at least 2"),
};

static void faults_are_named(void **state)
{
    (void)state;
    assert_int_equal(COUNT(rows), 26);
    call_check_rows(rows, COUNT(rows));
}

static void sound_groups_pass(void **state)
{
    (void)state;
    static const struct {
        call_base base;
        call_edit edits[CALL_MOST_EDITS];
    } sound[] = {
        {BASE_FP8, {{0}}},
        {BASE_W4A8, {{0}}},
        {BASE_MASKED, {{0}}},
        {BASE_LABELS, {{0}}},
        {BASE_PACKED, {{0}}},
        {BASE_MASKED, {SET(operands.groups.counts, 0)}},
        {BASE_W4A8, {SET(starts[3], 15), SET(ends[0], 3)}},      /* gaps */
        {BASE_W4A8, {SET(starts[1], 24), SET(ends[1], 24)}},     /* an empty group anywhere */
        {BASE_W4A8, {SET(starts[3], 24), SET(ends[3], 24)}},     /* the last one empty */
        {BASE_LABELS, {SET(labels[3], -1), SET(labels[23], 3)}}, /* gaps anywhere */
        {BASE_W4A8,
         {SET(operands.m, 0), SET(operands.groups.starts, 0), SET(operands.groups.ends, 0)}},
        {BASE_LABELS, {SET(operands.m, 0), SET(operands.groups.labels, 0)}},
        /* Tensors are not looked at. */
        {BASE_W4A8, {SET(operands.a.data, 0), SET(operands.d.data, 1), SET(operands.b.ld, -1)}},
    };
    static call made;
    for (size_t i = 0; i < COUNT(sound); i++) {
        call_make(&made, sound[i].base);
        for (int e = 0; e < CALL_MOST_EDITS; e++) {
            call_apply(&made, &sound[i].edits[e]);
        }
        call_succeed(&made, STEP_CHECK_GROUPS);
    }
    assert_int_equal(COUNT(sound), 13);
}

/*
 * The clamping rules of halfbyte_groups, written for one group at a time and with wide integers:
 * an independent reading of the header against group_cursor_next().
 */
typedef struct descriptor {
    const int64_t *starts, *ends, *counts;
} descriptor;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    if (value > high) {
        value = high;
    }
    return value < low ? low : value;
}

static void expected_rows(const descriptor *d, halfbyte_grouping grouping, int64_t m, int64_t g,
                          int64_t *start, int64_t *end)
{
    *start = 0;
    *end = m;
    if (grouping == HALFBYTE_GROUPING_MASKED) {
        *end = d->counts ? clamp(d->counts[g], 0, m) : m;
        return;
    }
    if (d->starts) {
        *start = clamp(d->starts[g], 0, m);
    } else if (d->ends) {
        *start = g ? clamp(d->ends[g - 1], 0, m) : 0;
    } else {
        for (int64_t before = 0; before < g; before++) {
            *start += clamp(d->counts[before], 0, m - *start);
        }
    }
    *end = d->ends ? clamp(d->ends[g], *start, m) : *start + clamp(d->counts[g], 0, m - *start);
}

enum { HOSTILE_GROUPS = 5, HOSTILE_STRIDE = 3, HOSTILE_ROUNDS = 4000 };

/* Three arrays of group sizes as the caller stores them, and the values alone. */
typedef struct hostile_arrays {
    int64_t values[3][HOSTILE_GROUPS];
    int64_t wide[3][HOSTILE_GROUPS * HOSTILE_STRIDE];
    int32_t narrow[3][HOSTILE_GROUPS * HOSTILE_STRIDE];
} hostile_arrays;

/* Values from the edges of both index types. */
static void hostile_fill(hostile_arrays *arrays, int64_t stride, bool is_wide, uint32_t *random)
{
    static const int64_t edges[] = {
        INT64_MIN, INT64_MAX, INT32_MIN,        INT32_MAX,           -1, 0, 1, 7, 19,
        20,        21,        INT64_C(1) << 32, -(INT64_C(1) << 32), 3,  11};
    for (int a = 0; a < 3; a++) {
        for (int g = 0; g < HOSTILE_GROUPS; g++) {
            *random = *random * 1664525u + 1013904223u;
            const int64_t value = edges[(*random >> 16) % COUNT(edges)];
            const int64_t at = g * (stride == 0 ? 1 : stride);
            arrays->wide[a][at] = value;
            arrays->narrow[a][at] = (int32_t)clamp(value, INT32_MIN, INT32_MAX);
            arrays->values[a][g] = is_wide ? value : arrays->narrow[a][at];
        }
    }
}

static int64_t hostile_compare(const halfbyte_problem *problem, const halfbyte_operands *operands,
                               const descriptor *d)
{
    int64_t compared = 0;
    group_cursor cursor = group_cursor_begin(problem, operands);
    group_rows got;
    for (int64_t g = 0; g < HOSTILE_GROUPS; g++) {
        int64_t start, end;
        expected_rows(d, problem->grouping, operands->m, g, &start, &end);
        assert_true(group_cursor_next(&cursor, &got));
        assert_true(got.group == g && got.start == start && got.end == end);
        assert_true(0 <= start && start <= end && end <= operands->m);
        compared++;
    }
    assert_false(group_cursor_next(&cursor, &got));
    return compared;
}

/* Every array form, both index types, strides 0, 1 and 3. */
static void hostile_values_are_clamped(void **state)
{
    (void)state;
    static hostile_arrays arrays;
    uint32_t random = 1;
    int64_t compared = 0;
    for (int round = 0; round < HOSTILE_ROUNDS; round++) {
        const bool is_wide = round % 2 == 0;
        const int64_t stride = round % 3 == 0 ? 0 : round % 3 == 1 ? 1 : HOSTILE_STRIDE;
        const int form = round / 6 % 6;
        const bool has[3] = {form <= 1, form == 0 || form == 2,
                             form == 1 || form == 3 || form == 4};
        hostile_fill(&arrays, stride, is_wide, &random);
        const descriptor d = {has[0] ? arrays.values[0] : NULL, has[1] ? arrays.values[1] : NULL,
                              has[2] ? arrays.values[2] : NULL};
        const void *data[3];
        for (int a = 0; a < 3; a++) {
            const void *array = is_wide ? (const void *)arrays.wide[a] : arrays.narrow[a];
            data[a] = has[a] ? array : NULL;
        }
        halfbyte_problem problem = halfbyte_problem_init();
        halfbyte_operands operands = halfbyte_operands_init();
        problem.grouping = form >= 4 ? HALFBYTE_GROUPING_MASKED : HALFBYTE_GROUPING_RANGES;
        problem.groups = HOSTILE_GROUPS;
        problem.index_type = is_wide ? HALFBYTE_INDEX_INT64 : HALFBYTE_INDEX_INT32;
        operands.m = round % 5 == 0 ? 0 : 20;
        operands.groups =
            (halfbyte_groups){data[0], data[1], data[2], NULL, stride, stride, stride};
        compared += hostile_compare(&problem, &operands, &d);
    }
    assert_int_equal(compared, HOSTILE_ROUNDS * HOSTILE_GROUPS);
}

/* Runs, and asserts that nothing behind the rows of D was written. */
static void run_inside_d(const call *made)
{
    call_run(made);
    const bool masked = made->problem.grouping == HALFBYTE_GROUPING_MASKED;
    const size_t element_bytes = made->problem.d_type == HALFBYTE_TYPE_F32 ? 4 : 2;
    const size_t used = (masked ? CALL_GROUPS : 1) * CALL_M * CALL_N * element_bytes;
    assert_true(used <= CALL_D_BYTES);
    for (size_t i = used; i < CALL_D_BYTES; i++) {
        assert_int_equal(call_d()[i], CALL_POISON);
    }
}

/* A run with wild sizes succeeds and stays inside D. */
static void hostile_values_run(void **state)
{
    (void)state;
    static call made;
    static const int32_t wild[] = {INT32_MIN, -1, 0, 23, 24, 25, INT32_MAX};
    for (size_t i = 0; i < COUNT(wild); i++) {
        for (int g = 0; g < CALL_GROUPS; g++) {
            call_make(&made, BASE_W4A8);
            made.starts[g] = wild[i];
            run_inside_d(&made);
            call_make(&made, BASE_W4A8);
            made.ends[g] = wild[i];
            run_inside_d(&made);
            call_make(&made, BASE_PACKED);
            made.counts[g] = wild[i];
            run_inside_d(&made);
            call_make(&made, BASE_MASKED);
            made.counts64[g] = wild[i] == INT32_MIN ? INT64_MIN : wild[i];
            run_inside_d(&made);
            call_make(&made, BASE_LABELS);
            made.labels[g] = wild[i];
            run_inside_d(&made);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(sound_groups_pass),
        cmocka_unit_test(hostile_values_are_clamped),
        cmocka_unit_test(hostile_values_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
