/* SPDX-License-Identifier: Apache-2.0 */
/* Tune files: what they say, what is refused and in which line, and which entry a run finds. */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/tune.h"
#include "cuda/kernel_table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define VERSION "halfbyte-tune 1\n"
#define REST " grouping=dense n=16 k=128 rows=1 kernel=x\n"

/* Name of a kernel as tune files have it. */
static const char *short_name(int kernel)
{
    return kernel_table[kernel].name + strlen("halfbyte_sm90_");
}

static tune_table *parse(const char *text)
{
    tune_table *table = NULL;
    const halfbyte_status status = tune_parse(text, strlen(text), "t", &table);
    if (status != HALFBYTE_SUCCESS) {
        fail_msg("%s", halfbyte_last_error());
    }
    return table;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"", "tune file t is empty: it begins with 'halfbyte-tune 1'"},
        {"# only this\n\n", "tune file t is empty"},
        {"halfbyte\n", "line 1: 'halfbyte': a tune file begins with"},
        {"\n# c\nfamily=fp8\n", "line 3: 'family=fp8': a tune file begins with"},
        {"halfbyte-tune\n", "line 1: 'halfbyte-tune': a tune file begins with"},
        {"halfbyte-tune 1 2\n", "line 1: "},
        {"halfbyte-tune one\n", "line 1: "},
        {"halfbyte-tune 2\n", "line 1: version 2: accepted: 1"},
        {VERSION "family=fp8\n", "line 2: no grouping="},
        {VERSION "family=fp8 grouping=dense n=1 k=1 rows=1\n", "line 2: no kernel="},
        {VERSION "\n\nfamily=int3" REST, "line 4: family=int3: accepted: fp8 or w4a8"},
        {VERSION "family=fp8 grouping=loose\n", "grouping=loose: accepted: dense, ranges"},
        {VERSION "family=fp8 family=fp8" REST, "line 2: family stands there twice"},
        {VERSION "n=\n", "n=: accepted: a number up to 2147483647"},
        {VERSION "n=2147483648\n", "n=2147483648: accepted: a number up to"},
        {VERSION "n=-1\n", "n=-1: "},
        {VERSION "k=1x\n", "k=1x: "},
        {VERSION "k=99999999999999999999\n", "k=99999999999999999999: "},
        {VERSION "rows=\n", "rows=: accepted: LOW..HIGH, or a number"},
        {VERSION "rows=1..\n", "rows=1..: "},
        {VERSION "rows=..4\n", "rows=..4: "},
        {VERSION "rows=1.4\n", "rows=1.4: "},
        {VERSION "rows=1...4\n", "rows=1...4: "},
        {VERSION "rows=5..4\n", "rows=5..4: "},
        {VERSION "groups=0\n", "groups=0: accepted: a number from 1"},
        {VERSION "sms=0\n", "sms=0: accepted: a number from 1"},
        {VERSION "kernel=\n", "kernel=: accepted: a name"},
        {VERSION "kernel=A\n", "kernel=A: accepted: a name"},
        {VERSION "kernel=a-b\n", "kernel=a-b: accepted: a name"},
        {VERSION "speed=1\n", "line 2: 'speed=1': accepted: family=, grouping=, n=, k=, rows="},
        {VERSION "fp8\n", "line 2: 'fp8': accepted: family="},
        {VERSION "=fp8\n", "line 2: '=fp8': accepted: family="},
        {VERSION "\x01\xff\n", "line 2: '\?\?': accepted: family="},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char untouched;
        tune_table *table = (tune_table *)&untouched;
        const halfbyte_status status = tune_parse(rows[i].text, strlen(rows[i].text), "t", &table);
        if (status != HALFBYTE_ERR_INVALID_ARGUMENT ||
            strstr(halfbyte_last_error(), rows[i].sentence) == NULL) {
            fail_msg("row %zu: %d, %s", i, (int)status, halfbyte_last_error());
        }
        assert_ptr_equal(table, &untouched);
    }
}

/* Bytes that are no text: NUL counts as a character of a word. */
static void no_text(void **state)
{
    (void)state;
    static const char text[] = VERSION "family=fp8\0" REST;
    tune_table *table = NULL;
    assert_int_equal(tune_parse(text, sizeof text - 1, "t", &table), HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), "family=fp8?: accepted: fp8 or w4a8"));
}

/* ---- entries --------------------------------------------------------------------------------- */

typedef struct query {
    halfbyte_family family;
    halfbyte_grouping grouping;
    int64_t n, k, groups, rows;
    int sms;
    int kernel;
} query;

static void check_queries(const char *text, const query *rows, size_t count)
{
    tune_table *table = parse(text);
    for (size_t i = 0; i < count; i++) {
        halfbyte_problem problem = halfbyte_problem_init();
        problem.family = rows[i].family;
        problem.grouping = rows[i].grouping;
        problem.n = rows[i].n;
        problem.k = rows[i].k;
        problem.groups = rows[i].groups;
        const int found = tune_find(table, UINT64_MAX, &problem, rows[i].rows, rows[i].sms);
        if (found != rows[i].kernel) {
            fail_msg("query %zu: found %d, not %d", i, found, rows[i].kernel);
        }
        /* Only a kernel of the set is taken, and without a table none. */
        assert_int_equal(tune_find(table, 0, &problem, rows[i].rows, rows[i].sms), -1);
        assert_int_equal(tune_find(NULL, UINT64_MAX, &problem, rows[i].rows, rows[i].sms), -1);
    }
    tune_free(table);
}

static void entries(void **state)
{
    (void)state;
    static const char form[] =
        "# measured somewhere\r\n\thalfbyte-tune   1\t# version\r\n\n"
        "family=fp8 grouping=dense n=64 k=256 rows=1..16 kernel=%s # fast\n"
        "kernel=%s rows=17..64 k=256 n=64 grouping=dense family=fp8\r\n"
        "family=w4a8 grouping=dense n=64 k=256 rows=1..16 kernel=%s\n"
        "family=fp8 grouping=masked n=64 k=256 rows=8 groups=4 kernel=%s\n"
        "family=fp8 grouping=ranges n=64 k=256 rows=0..2147483647 sms=66 kernel=%s\n"
        "family=fp8 grouping=labels n=64 k=128 rows=1 kernel=%s";
    const char *const a = short_name(0), *const b = short_name(1), *const c = short_name(2);
    static const query rows[] = {
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 64, 256, 1, 1, 132, 0},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 64, 256, 1, 16, 132, 0},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 64, 256, 1, 17, 132, 1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 64, 256, 1, 64, 132, 1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 64, 256, 1, 65, 132, -1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 64, 256, 1, 0, 132, -1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 65, 256, 1, 1, 132, -1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 64, 255, 1, 1, 132, -1},
        {HALFBYTE_FAMILY_W4A8, HALFBYTE_GROUPING_DENSE, 64, 256, 1, 9, 132, 2},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_MASKED, 64, 256, 4, 8, 132, 0},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_MASKED, 64, 256, 5, 8, 132, -1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_MASKED, 64, 256, 4, 9, 132, -1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_RANGES, 64, 256, 9, 77, 66, 1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_RANGES, 64, 256, 9, 77, 132, -1},
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_LABELS, 64, 128, 2, 1, 1, 2},
    };
    char text[2048];
    snprintf(text, sizeof text, form, a, b, c, a, b, c);
    check_queries(text, rows, COUNT(rows));
}

/* Of entries that fit, the last of the file; kernels of other versions are passed over. */
static void last_one_counts(void **state)
{
    (void)state;
    static const char key[] = "family=fp8 grouping=dense n=64 k=256 rows=1..16 kernel=";
    static const query rows[] = {
        {HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_DENSE, 64, 256, 1, 5, 132, 2}};
    char text[2048];
    snprintf(text, sizeof text, VERSION "%s%s\n%s%s\n%s%s\n%sof_another_version\n", key,
             short_name(0), key, short_name(1), key, short_name(2), key);
    check_queries(text, rows, COUNT(rows));
    tune_table *table = parse(text);
    assert_int_equal(table->count, 3);
    assert_int_equal(table->passed_over, 1);
    tune_free(table);
    tune_free(NULL);
}

/* Many shapes in any order: each is found. */
static void many(void **state)
{
    (void)state;
    enum { SHAPES = 3000, LINE = 160 };
    char *text = malloc(SHAPES * LINE);
    size_t used = (size_t)sprintf(text, VERSION);
    for (int i = 0; i < SHAPES; i++) {
        const int shape = i * 1009 % SHAPES; /* 1009 and 3000 share no factor: all, out of order */
        used += (size_t)snprintf(text + used, LINE,
                                 "family=fp8 grouping=dense n=%d k=%d rows=1 kernel=%s\n",
                                 shape % 50, shape / 50, short_name(shape % 2));
    }
    tune_table *table = parse(text);
    free(text);
    assert_int_equal(table->count, SHAPES);
    halfbyte_problem problem = halfbyte_problem_init();
    problem.family = HALFBYTE_FAMILY_FP8;
    for (int shape = 0; shape < SHAPES; shape++) {
        problem.n = shape % 50;
        problem.k = shape / 50;
        assert_int_equal(tune_find(table, UINT64_MAX, &problem, 1, 132), shape % 2);
    }
    tune_free(table);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_opens(const halfbyte_device_options *options, const char *described)
{
    char text[HALFBYTE_TEXT_BYTES];
    halfbyte_device *device = NULL;
    assert_int_equal(halfbyte_device_open(&device, options), HALFBYTE_SUCCESS);
    assert_int_equal(halfbyte_device_describe(device, text, sizeof text), HALFBYTE_SUCCESS);
    halfbyte_device_close(device);
    const char *found = strstr(text, " tuned=");
    assert_string_equal(found == NULL ? "" : found, described);
}

static void assert_refused(const halfbyte_device_options *options, const char *sentence)
{
    halfbyte_device *device = NULL;
    assert_int_equal(halfbyte_device_open(&device, options), HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_null(device);
    assert_non_null(strstr(halfbyte_last_error(), sentence));
}

static void devices(void **state)
{
    (void)state;
    char good[] = "test_tune_good_XXXXXX", bad[] = "test_tune_bad_XXXXXX", text[512];
    assert_true(mkstemp(good) >= 0 && mkstemp(bad) >= 0);
    snprintf(text, sizeof text, VERSION "family=fp8 grouping=dense n=64 k=256 rows=1 kernel=%s\n",
             short_name(0));
    write_file(good, text);
    write_file(bad, VERSION "\nnonsense\n");
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    options.threads = 1;
    unsetenv("HALFBYTE_TUNE_FILE");
    assert_opens(&options, "");
    options.tune_file = good;
    assert_opens(&options, " tuned=1");
    options.tune_file = bad;
    assert_refused(&options, "line 3: 'nonsense': accepted: ");
    options.tune_file = "/nonexistent/tune";
    assert_refused(&options, "tune file /nonexistent/tune: cannot be opened");
    /* The environment counts where the options name no file; "" names none. */
    options.tune_file = NULL;
    setenv("HALFBYTE_TUNE_FILE", good, 1);
    assert_opens(&options, " tuned=1");
    setenv("HALFBYTE_TUNE_FILE", bad, 1);
    assert_refused(&options, "line 3");
    options.tune_file = good;
    assert_opens(&options, " tuned=1");
    setenv("HALFBYTE_TUNE_FILE", "", 1);
    options.tune_file = NULL;
    assert_opens(&options, "");
    /* A program built before the field was there: what lies behind its struct is not looked at. */
    options.tune_file = bad;
    options.struct_size = offsetof(halfbyte_device_options, tune_file);
    assert_opens(&options, "");
    unsetenv("HALFBYTE_TUNE_FILE");
    remove(good);
    remove(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals), cmocka_unit_test(no_text),         cmocka_unit_test(entries),
        cmocka_unit_test(many),     cmocka_unit_test(last_one_counts), cmocka_unit_test(devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
