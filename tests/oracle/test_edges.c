/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing to multiply, nobody to multiply for, and group sizes that lie: what is written, and that
 * nothing else is.
 */
#include "oracle/gemm_case.h"
#include "oracle/operand.h"
#include "oracle/oracle_element.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int rounds = 1;
static halfbyte_device *devices[3];

static const halfbyte_family families[2] = {HALFBYTE_FAMILY_FP8, HALFBYTE_FAMILY_W4A8};

static void make_any(struct gemm_case *c, struct random *r, int i, enum group_form form)
{
    halfbyte_family family = families[i % 2];
    struct case_kind kind = case_kind_at(family, i / 2 % case_kind_count(family), form);
    struct case_options options = {.aligned = false};
    case_make(c, r, &kind, &options);
}

/* Everything that m == 0, n == 0 must not look at is absent. */
static void nothing_to_do(void **state)
{
    (void)state;
    struct random r = {71};
    long problems = 0, untouched = 0;
    for (int i = 0; i < 600; i++) {
        struct gemm_case c;
        make_any(&c, &r, i, (enum group_form)(i % FORM_COUNT));
        halfbyte_operands empty = halfbyte_operands_init();
        bool no_rows = i / 2 % 2;
        empty.m = no_rows ? 0 : c.operands.m;
        empty.beta = c.operands.beta;
        if (random_percent(&r, 50))
            empty.d = c.operands.d;
        if (!no_rows)
            c.problem.n = 0;
        c.operands = empty;
        case_run(&c, devices[i % 3]);
        problems++;
        untouched += memcmp(c.d_base, c.d_before, c.d_bytes) == 0;
        case_free(&c);
    }
    assert_int_equal(untouched, problems);
}

/* k == 0: the epilogue of +0; A, B and the scales along k are absent. */
static void no_k(void **state)
{
    (void)state;
    struct random r = {72};
    struct comparison sum = {0, 0, 0};
    for (int i = 0; i < 1200; i++) {
        struct gemm_case c;
        make_any(&c, &r, i, (enum group_form)(i % FORM_COUNT));
        halfbyte_problem *p = &c.problem;
        p->k = 0;
        p->k_splits = random_below(&r, 2);
        p->b_layout = HALFBYTE_B_ROW_MAJOR;
        if (p->b_scale.layout == HALFBYTE_SCALE_INTERLEAVED4)
            p->group_k_offset = 0;
        c.operands.a = c.operands.b = (halfbyte_matrix_in){NULL, 0, 0};
        c.operands.b_header = NULL;
        if (p->a_scale.mode == HALFBYTE_SCALE_1X128)
            c.operands.a_scale = (halfbyte_scale_in){NULL, 0, 0, 0};
        if (p->b_scale.mode >= HALFBYTE_SCALE_1X128)
            c.operands.b_scale = (halfbyte_scale_in){NULL, 0, 0, 0};
        case_run(&c, devices[i % 3]);
        struct comparison one = case_compare(&c);
        if (one.equal != one.compared)
            case_print(&c);
        sum.compared += one.compared;
        sum.equal += one.equal;
        sum.owned += one.owned;
        case_free(&c);
    }
    assert_true(sum.owned > 100000);
    assert_int_equal(sum.equal, sum.compared);
}

/* Every group empty: D keeps its bits, or is zero where padding is filled. */
static void empty_groups(void **state)
{
    (void)state;
    static const int64_t zeros[24] = {0};
    struct random r = {73};
    long problems = 0, filled = 0;
    struct comparison sum = {0, 0, 0};
    for (int i = 0; i < 300; i++) {
        struct gemm_case c;
        enum group_form form = (enum group_form[]){FORM_STARTS_COUNTS, FORM_ENDS, FORM_COUNTS,
                                                   FORM_MASKED_COUNTS, FORM_LABELS}[i % 5];
        make_any(&c, &r, i, form);
        halfbyte_groups *g = &c.operands.groups;
        int32_t labels[24];
        memset(labels, 0xff, sizeof labels);
        if (g->counts)
            g->counts = zeros;
        if (g->ends)
            g->ends = zeros;
        if (g->labels)
            g->labels = labels;
        c.before.groups = *g;
        case_run(&c, devices[i % 3]);
        struct comparison one = case_compare(&c);
        assert_int_equal(one.owned, 0);
        sum.compared += one.compared;
        sum.equal += one.equal;
        filled += (c.problem.flags & HALFBYTE_ZERO_FILL_PADDING) != 0;
        problems++;
        case_free(&c);
    }
    assert_true(filled > problems / 3 && filled < problems);
    assert_int_equal(sum.equal, sum.compared);
}

/* ---- hostile values -------------------------------------------------------------------------- */

static int64_t hostile_value(struct random *r, int64_t m)
{
    const int64_t odd[] = {INT64_MIN, INT64_MAX,    INT32_MIN, INT32_MAX, -1, 0,
                           m,         m + 1,        -m,        2 * m,     1,  INT64_MIN + 1,
                           1 << 30,   INT64_MAX - 1};
    if (random_percent(r, 50))
        return random_between(r, -2, m + 2);
    return odd[random_below(r, (int64_t)(sizeof odd / sizeof odd[0]))];
}

static const void *hostile_array(struct gemm_case *c, struct random *r, int64_t *stride)
{
    int64_t groups = oracle_groups(&c->problem);
    bool wide = c->problem.index_type == HALFBYTE_INDEX_INT64;
    size_t element = wide ? 8 : 4;
    uint8_t *data = case_memory(c, (size_t)groups * element, 0);
    for (int64_t g = 0; g < groups; g++) {
        int64_t value = hostile_value(r, c->operands.m);
        int32_t narrow = (int32_t)(uint32_t)value;
        memcpy(data + (size_t)g * element, wide ? (const void *)&value : &narrow, element);
    }
    *stride = 1;
    return data;
}

static void make_hostile(struct gemm_case *c, struct random *r)
{
    halfbyte_groups *g = &c->operands.groups;
    if (g->starts)
        g->starts = hostile_array(c, r, &g->starts_stride);
    if (g->ends)
        g->ends = hostile_array(c, r, &g->ends_stride);
    if (g->counts)
        g->counts = hostile_array(c, r, &g->counts_stride);
    if (g->labels) {
        int32_t *labels = case_memory(c, (size_t)c->operands.m * sizeof *labels, 0);
        for (int64_t row = 0; row < c->operands.m; row++)
            labels[row] = random_percent(r, 60) ? (int32_t)random_between(r, -1, 5)
                                                : (int32_t)(uint32_t)hostile_value(r, 9);
        g->labels = labels;
    }
    c->before.groups = *g;
}

static bool element_is(const struct gemm_case *c, const uint8_t *image, int64_t at, uint32_t code)
{
    return oracle_load(image + c->d_at, c->problem.d_type, at) == code;
}

/* Element (row, column) of a matrix: the bits of one of the owners, or as before, or filled. */
static bool element_allowed(const struct gemm_case *c, int64_t matrix, int64_t row, int64_t column)
{
    const halfbyte_problem *p = &c->problem;
    int64_t at = oracle_d_offset(p, &c->before, matrix, row, column), owners = 0;
    bool masked = p->grouping == HALFBYTE_GROUPING_MASKED;
    bool aliased = p->c_type != HALFBYTE_TYPE_NONE && c->operands.c.data == c->operands.d.data;
    for (int64_t g = masked ? matrix : 0; g < (masked ? matrix + 1 : oracle_groups(p)); g++) {
        if (!oracle_group_owns(p, &c->before, g, row))
            continue;
        owners++;
        if (element_is(c, c->d_base, at, oracle_element(p, &c->before, g, row, column)))
            return true;
    }
    if (owners > 0)
        return owners > 1 && aliased; /* the second group's C is the first one's D */
    if (p->flags & HALFBYTE_ZERO_FILL_PADDING)
        return element_is(c, c->d_base, at, 0);
    return element_is(c, c->d_base, at, oracle_load(c->d_before + c->d_at, p->d_type, at));
}

/* Makes the elements of D in *image those of D itself, so that only what lies around them is left
 * to compare. */
static void copy_element(const struct gemm_case *c, uint8_t *image, int64_t matrix, int64_t row,
                         int64_t column)
{
    size_t element = (size_t)halfbyte_type_bits(c->problem.d_type) / 8;
    int64_t offset = oracle_d_offset(&c->problem, &c->before, matrix, row, column);
    size_t at = c->d_at + (size_t)offset * element;
    memcpy(image + at, c->d_base + at, element);
}

/* Labels that decrease are a fault of the caller: then rows may get another group's bits or none,
 * but nothing outside of D is touched. */
static bool labels_decrease(const struct gemm_case *c)
{
    int32_t last = 0;
    for (int64_t row = 0; c->operands.groups.labels && row < c->operands.m; row++) {
        int32_t label = c->operands.groups.labels[row];
        if (label < 0 || label >= oracle_groups(&c->problem))
            continue;
        if (label < last)
            return true;
        last = label;
    }
    return false;
}

static void hostile_groups(void **state)
{
    (void)state;
    static const enum group_form forms[6] = {FORM_STARTS_ENDS, FORM_STARTS_COUNTS, FORM_ENDS,
                                             FORM_COUNTS,      FORM_MASKED_COUNTS, FORM_LABELS};
    struct random r = {74};
    long problems = 0, around = 0, elements = 0, allowed = 0, decreasing = 0;
    for (int i = 0; i < 600 * rounds; i++) {
        struct gemm_case c;
        make_any(&c, &r, i, forms[i % 6]);
        make_hostile(&c, &r);
        case_run(&c, devices[i % 3]);
        bool any_bits = labels_decrease(&c);
        uint8_t *image = case_memory(&c, c.d_bytes, 0);
        memcpy(image, c.d_before, c.d_bytes);
        for (int64_t e = 0; e < case_matrices(&c.problem) * c.operands.m * c.problem.n; e++) {
            int64_t column = e % c.problem.n, row = e / c.problem.n % c.operands.m;
            int64_t matrix = e / c.problem.n / c.operands.m;
            elements++;
            bool good = any_bits || element_allowed(&c, matrix, row, column);
            allowed += good;
            if (!good && elements - allowed <= 3) {
                print_error("matrix %lld row %lld column %lld\n", (long long)matrix, (long long)row,
                            (long long)column);
                case_print(&c);
            }
            copy_element(&c, image, matrix, row, column);
        }
        around += memcmp(image, c.d_base, c.d_bytes) == 0;
        decreasing += any_bits;
        problems++;
        case_free(&c);
    }
    print_message("%ld problems, %ld elements\n", problems, elements);
    assert_int_equal(around, problems);
    assert_int_equal(allowed, elements);
    assert_true(elements > 50 * problems && decreasing < problems / 6);
}

static int open_devices(void **state)
{
    (void)state;
    static const int threads[3] = {1, 2, 7};
    for (int i = 0; i < 3; i++)
        devices[i] = case_device(HALFBYTE_PROFILE_ANY, threads[i], HALFBYTE_ISA_AUTO);
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        halfbyte_device_close(devices[i]);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(no_k),
        cmocka_unit_test(empty_groups),
        cmocka_unit_test(hostile_groups),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
