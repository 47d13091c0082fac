/* SPDX-License-Identifier: Apache-2.0 */
/* What `halfbyte tune` writes: the order of candidates, ranges of rows, and that the library reads
 * it. */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../cli/tune_file.h"
#include "api/tune.h"
#include "cuda/kernel_table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void add(tune_result *result, const char *name, double us)
{
    snprintf(result->kernel[result->count].name, TUNE_NAME_BYTES, "%s", name);
    result->kernel[result->count++].us = us;
}

static void assert_order(const tune_result *result, int chosen, const char *names)
{
    char found[256] = "";
    for (int i = 0; i < result->count; i++) {
        const size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%s ", result->kernel[i].name);
    }
    assert_string_equal(found, names);
    assert_int_equal(result->chosen, chosen);
}

static void launches(void **state)
{
    (void)state;
    assert_true(tune_launches("a", "a"));
    assert_true(tune_launches("group_bounds+a_1", "a_1"));
    assert_true(tune_launches("a+b+c", "b"));
    assert_false(tune_launches("a_1", "a"));
    assert_false(tune_launches("a", "a_1"));
    assert_false(tune_launches("", "a"));
}

static void ranks(void **state)
{
    (void)state;
    tune_result result = {.count = 0};
    add(&result, "d", 40);
    add(&result, "absent", 0);
    add(&result, "b", 20);
    add(&result, "a", 10);
    add(&result, "c", 30);
    tune_result own_fastest = result, own_slow = result, own_unknown = result;
    tune_rank(&own_fastest, "a");
    assert_order(&own_fastest, 0, "a b c d ");
    tune_rank(&own_slow, "group_bounds+c");
    assert_order(&own_slow, 2, "a b c d ");
    tune_rank(&own_unknown, "elsewhere");
    assert_order(&own_unknown, -1, "a b c d ");
    /* Of two products in one run the first is the own choice, however slow. */
    tune_result shared = own_slow, shared_near = {.count = 0};
    tune_rank(&shared, "group_bounds+b+d");
    assert_order(&shared, 1, "a b c d ");
    add(&shared_near, "few", 100);
    add(&shared_near, "many", 100.5);
    tune_rank(&shared_near, "few+many");
    assert_order(&shared_near, 0, "few many ");
    /* Within 1 %, the library's own choice stays; beyond, it does not. */
    tune_result near = {.count = 0}, far = {.count = 0};
    add(&near, "a", 100);
    add(&near, "b", 100.5);
    add(&near, "c", 101);
    tune_rank(&near, "c");
    assert_order(&near, 0, "c a b ");
    add(&far, "a", 100);
    add(&far, "c", 101.1);
    tune_rank(&far, "c");
    assert_order(&far, 1, "a c ");
    tune_result none = {.count = 0};
    tune_rank(&none, "a");
    assert_order(&none, -1, "");
}

/* ---- the file -------------------------------------------------------------------------------- */

static const char *short_name(int kernel)
{
    return kernel_table[kernel].name + strlen("halfbyte_sm90_");
}

static bench_shape shape_of(halfbyte_grouping grouping, int64_t groups, int64_t m)
{
    bench_shape shape = {.groups = groups, .m = m};
    shape.problem = halfbyte_problem_init();
    shape.problem.family = HALFBYTE_FAMILY_FP8;
    shape.problem.grouping = grouping;
    shape.problem.groups = groups;
    shape.problem.n = 64;
    shape.problem.k = 256;
    return shape;
}

static int find(const tune_table *table, const bench_shape *shape, int64_t rows, int sms)
{
    return tune_find(table, UINT64_MAX, &shape->problem, rows, sms);
}

static void write_and_read(const char *path, bool append, tune_result *results, size_t count,
                           tune_table **table)
{
    tune_results_sort(results, count);
    assert_int_equal(tune_file_write(path, append, "# remark\n", results, count), 0);
    if (tune_read(path, table) != HALFBYTE_SUCCESS) {
        fail_msg("%s", halfbyte_last_error());
    }
}

static void files(void **state)
{
    (void)state;
    static const struct {
        int shape;
        int64_t rows;
        int kernel;
    } queries[] = {{0, 1, 2},    {0, 16, 2}, {0, 17, 1}, {0, 64, 1}, {0, 65, -1},
                   {0, 0, -1},   {3, 1, 0},  {3, 17, 0}, {3, 65, 0}, {3, 99, 0},
                   {3, 100, -1}, {4, 1, 1},  {4, 64, 1}, {4, 65, -1}};
    const bench_shape shapes[] = {
        shape_of(HALFBYTE_GROUPING_DENSE, 1, 64), shape_of(HALFBYTE_GROUPING_DENSE, 1, 16),
        shape_of(HALFBYTE_GROUPING_DENSE, 1, 64), /* again, as with other scales */
        shape_of(HALFBYTE_GROUPING_MASKED, 4, 99), shape_of(HALFBYTE_GROUPING_MASKED, 8, 64)};
    static const int kernels[] = {1, 2, 1, 0, 1};
    tune_result results[COUNT(shapes)];
    memset(results, 0, sizeof results);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        results[i].shape = &shapes[i];
        results[i].sms = 132;
        add(&results[i], short_name(kernels[i]), 10);
        add(&results[i], "slower", 11);
    }
    char path[] = "test_tune_file_XXXXXX";
    assert_true(mkstemp(path) >= 0);
    tune_table *table = NULL;
    write_and_read(path, false, results, COUNT(shapes), &table);
    assert_int_equal(table->count, COUNT(shapes));
    for (size_t i = 0; i < COUNT(queries); i++) {
        const bench_shape *shape = &shapes[queries[i].shape];
        assert_int_equal(find(table, shape, queries[i].rows, 132), queries[i].kernel);
        assert_int_equal(find(table, shape, queries[i].rows, 66), -1);
    }
    tune_free(table);
    /* Appended entries go before those that stood there. */
    tune_result later = {.shape = &shapes[1], .sms = 132};
    add(&later, short_name(0), 9);
    write_and_read(path, true, &later, 1, &table);
    assert_int_equal(table->count, COUNT(shapes) + 1);
    assert_int_equal(find(table, &shapes[0], 16, 132), 0);
    assert_int_equal(find(table, &shapes[0], 17, 132), 1);
    tune_free(table);
    /* Otherwise the file is replaced; appending makes one that is not there. */
    write_and_read(path, false, &later, 1, &table);
    assert_int_equal(table->count, 1);
    tune_free(table);
    assert_int_equal(remove(path), 0);
    write_and_read(path, true, &later, 1, &table);
    assert_int_equal(table->count, 1);
    tune_free(table);
    remove(path);
    assert_int_not_equal(tune_file_write("/nonexistent/file", false, "", &later, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches), cmocka_unit_test(ranks),
                                       cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
