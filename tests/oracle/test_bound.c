/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error bound of docs/numerics.md section 9, demanded of every element of the library's results
 * on finite problems of every kind, with the figures that say how tight it is.
 */
#include "oracle/bound.h"
#include "oracle/gemm_case.h"
#include "oracle/operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static int rounds = 1;

#define MAX_RATIOS 2000000

struct ratios {
    double *value;
    long count;
};

struct tally {
    long elements, applied, held;
    struct ratios narrow, wide; /* error / bound with a 16-bit and an fp32 D */
};

static void keep_ratio(struct ratios *r, double ratio)
{
    if (r->count < MAX_RATIOS)
        r->value[r->count++] = ratio;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const struct ratios *r, double q)
{
    return r->value[(long)(q * (double)(r->count - 1))];
}

static void check_element(const struct gemm_case *c, int64_t group, int64_t row, int64_t column,
                          struct tally *tally)
{
    const halfbyte_problem *p = &c->problem;
    struct bounded b = bound_element(p, &c->before, group, row, column);
    uint32_t code = oracle_load(c->operands.d.data, p->d_type,
                                oracle_d_offset(p, &c->operands, group, row, column));
    tally->elements++;
    if (!b.applies)
        return;
    tally->applied++;
    bool held = bound_holds(&b, p->d_type, code);
    tally->held += held;
    double error = fabs(bound_code_value(p->d_type, code) - b.value);
    if (!held)
        print_error("row %lld column %lld: real %.9g, off by %.3g, bound %.3g\n", (long long)row,
                    (long long)column, b.value, error, b.bound);
    if (b.bound > 0)
        keep_ratio(p->d_type == HALFBYTE_TYPE_F32 ? &tally->wide : &tally->narrow, error / b.bound);
}

static void check_problem(halfbyte_device *device, struct random *r, const struct case_kind *kind,
                          bool plain, struct tally *tally)
{
    struct case_options options = {.finite = true, .plain = plain};
    struct gemm_case c;
    case_make(&c, r, kind, &options);
    case_run(&c, device);
    long before = tally->applied - tally->held;
    for (int64_t g = 0; g < oracle_groups(&c.problem); g++) {
        for (int64_t row = 0; row < c.operands.m; row++) {
            if (!oracle_group_owns(&c.problem, &c.before, g, row))
                continue;
            for (int64_t column = 0; column < c.problem.n; column++)
                check_element(&c, g, row, column, tally);
        }
    }
    if (tally->applied - tally->held != before)
        case_print(&c);
    case_free(&c);
}

static void check_family(halfbyte_family family, bool plain)
{
    struct tally tally = {0};
    tally.wide.value = malloc(MAX_RATIOS * sizeof(double));
    tally.narrow.value = malloc(MAX_RATIOS * sizeof(double));
    assert_non_null(tally.wide.value);
    assert_non_null(tally.narrow.value);
    halfbyte_device *device = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AUTO);
    struct random r = {31 + (uint64_t)family};
    int kinds = case_kind_count(family);
    int problems = rounds * kinds * (family == HALFBYTE_FAMILY_FP8 ? 4 : 1);
    for (int i = 0; i < problems; i++) {
        enum group_form form = (enum group_form)((i + i / kinds) % FORM_COUNT);
        struct case_kind kind = case_kind_at(family, i % kinds, form);
        check_problem(device, &r, &kind, plain, &tally);
    }
    halfbyte_device_close(device);

    qsort(tally.wide.value, (size_t)tally.wide.count, sizeof(double), compare_doubles);
    qsort(tally.narrow.value, (size_t)tally.narrow.count, sizeof(double), compare_doubles);
    print_message("%ld elements, bound applies to %ld, kept by %ld; error / bound: fp32 D median "
                  "%.3f, 99 %% %.3f, most %.3f; 16-bit D median %.3f, most %.3f\n",
                  tally.elements, tally.applied, tally.held, quantile(&tally.wide, 0.5),
                  quantile(&tally.wide, 0.99), quantile(&tally.wide, 1),
                  quantile(&tally.narrow, 0.5), quantile(&tally.narrow, 1));
    assert_true(tally.elements > 100L * problems);
    assert_true(tally.applied > tally.elements / 100 * (plain ? 97 : 75));
    assert_int_equal(tally.held, tally.applied);
    assert_true(quantile(&tally.wide, 1) > 0.5); /* a bound that nothing comes near says little */
    free(tally.wide.value);
    free(tally.narrow.value);
}

static void fp8_finite(void **state)
{
    (void)state;
    check_family(HALFBYTE_FAMILY_FP8, false);
}

static void w4a8_finite(void **state)
{
    (void)state;
    check_family(HALFBYTE_FAMILY_W4A8, false);
}

static void fp8_plain(void **state)
{
    (void)state;
    check_family(HALFBYTE_FAMILY_FP8, true);
}

static void w4a8_plain(void **state)
{
    (void)state;
    check_family(HALFBYTE_FAMILY_W4A8, true);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp8_finite),
        cmocka_unit_test(w4a8_finite),
        cmocka_unit_test(fp8_plain),
        cmocka_unit_test(w4a8_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
