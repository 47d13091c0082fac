/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Equality with the oracle where there is much of something: rows beyond one tile and beyond what
 * is scheduled at once, hundreds of groups, columns over several packed panels, k of many blocks.
 */
#include "oracle/gemm_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct size {
    int64_t m, n, k, groups; /* groups of all forms but DENSE */
};

static void check_size(const struct size *size, uint64_t seed)
{
    struct random r = {seed};
    struct comparison sum = {0, 0, 0};
    halfbyte_device *devices[2] = {case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AUTO),
                                   case_device(HALFBYTE_PROFILE_ANY, 3, HALFBYTE_ISA_AUTO)};
    for (int i = 0; i < 2 * FORM_COUNT; i++) {
        enum group_form form = (enum group_form)(i % FORM_COUNT);
        halfbyte_family family = i < FORM_COUNT ? HALFBYTE_FAMILY_FP8 : HALFBYTE_FAMILY_W4A8;
        bool masked = form == FORM_MASKED_ALL || form == FORM_MASKED_COUNTS;
        struct case_kind kind =
            case_kind_at(family, (int)random_below(&r, case_kind_count(family)), form);
        struct case_options options = {
            .m = size->m, .n = size->n, .k = size->k, .groups = size->groups};
        if (masked) /* rows a group */
            options.m = (size->m + size->groups - 1) / size->groups;
        struct gemm_case c;
        case_make(&c, &r, &kind, &options);
        case_run(&c, devices[i % 2]);
        struct comparison one = case_compare(&c);
        if (one.equal != one.compared)
            case_print(&c);
        sum.compared += one.compared;
        sum.equal += one.equal;
        sum.owned += one.owned;
        case_free(&c);
    }
    for (int i = 0; i < 2; i++)
        halfbyte_device_close(devices[i]);
    assert_true(sum.owned > 4 * size->m * size->n);
    assert_int_equal(sum.equal, sum.compared);
}

static void rows(void **state)
{
    (void)state;
    check_size(&(struct size){200, 70, 200, 3}, 101);
}

/* More than 256 tiles of 64 rows. */
static void very_many_rows(void **state)
{
    (void)state;
    check_size(&(struct size){17000, 2, 33, 2}, 102);
}

static void groups(void **state)
{
    (void)state;
    check_size(&(struct size){400, 5, 64, 300}, 103);
}

static void columns(void **state)
{
    (void)state;
    check_size(&(struct size){3, 1000, 130, 2}, 104);
}

static void long_k(void **state)
{
    (void)state;
    check_size(&(struct size){4, 10, 9000, 2}, 105);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),    cmocka_unit_test(very_many_rows), cmocka_unit_test(groups),
        cmocka_unit_test(columns), cmocka_unit_test(long_k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
