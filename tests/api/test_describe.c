/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: describe lines, status table, version, and the sentence of a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/call.h"
#include "api/describe.h"
#include "api/error.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define END " executor=model profile=sm90 isa=portable threads=1"

static const struct {
    call_base base;
    const char *text;
} plans[CALL_BASES] = {
    {BASE_FP8, "fp8 dense groups=1 m<=24 n=32 k=256 a=e4m3:1x128/mn b=e4m3:128x128/k d=bf16 "
               "alpha=host c=bf16 bias=f32" END},
    {BASE_W4A8,
     "w4a8 ranges groups=4 m<=24 n=32 k=256 a=e4m3:outer b=int4:k_group128:bf16/mn d=f32 "
     "channel_scale=f32 alpha=device c=f32 bias=bf16 index=int32" END},
    {BASE_MASKED, "fp8 masked groups=4 m<=24 n=32 k=256 a=e4m3:1x128/k b=e4m3:1x128/mn d=f32 "
                  "index=int64" END},
    {BASE_LABELS, "w4a8 labels groups=4 m<=24 n=32 k=256 a=e4m3:tensor b=int4:tensor d=f16" END},
    {BASE_PACKED,
     "w4a8 ranges groups=4 m<=24 n=32 k=224 a=e4m3 b=int4:packed:k_group64/interleaved4 "
     "group_k_offset=32 d=bf16 index=int32" END},
};

typedef halfbyte_status describe_function(const void *object, char *text, size_t text_bytes);

static halfbyte_status describe_plan(const void *plan, char *text, size_t text_bytes)
{
    return halfbyte_plan_describe(plan, text, text_bytes);
}

static halfbyte_status describe_device(const void *device, char *text, size_t text_bytes)
{
    return halfbyte_device_describe(device, text, text_bytes);
}

/* The text exactly, in a buffer that it just fits; one byte less and nothing is written. */
static void check_description(describe_function *describe, const void *object, const char *text)
{
    char got[HALFBYTE_TEXT_BYTES];
    char needs[128];
    const size_t bytes = strlen(text) + 1;
    memset(got, CALL_POISON, sizeof got);
    assert_int_equal(describe(object, got, sizeof got), HALFBYTE_SUCCESS);
    assert_string_equal(got, text);
    memset(got, CALL_POISON, sizeof got);
    assert_int_equal(describe(object, got, bytes), HALFBYTE_SUCCESS);
    assert_string_equal(got, text);
    assert_int_equal((unsigned char)got[bytes], CALL_POISON);

    (void)snprintf(needs, sizeof needs, "text_bytes = %zu: this text needs %zu bytes", bytes - 1,
                   bytes);
    memset(got, CALL_POISON, sizeof got);
    assert_int_equal(describe(object, got, bytes - 1), HALFBYTE_ERR_BUFFER_TOO_SMALL);
    assert_non_null(strstr(halfbyte_last_error(), needs));
    assert_int_equal(describe(object, got, 0), HALFBYTE_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(describe(object, NULL, sizeof got), HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), "text = NULL"));
    assert_int_equal(describe(NULL, got, sizeof got), HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), " = NULL"));
    for (size_t i = 0; i < sizeof got; i++) {
        assert_int_equal((unsigned char)got[i], CALL_POISON);
    }
}

static void plans_and_devices(void **state)
{
    (void)state;
    static call made;
    for (size_t i = 0; i < COUNT(plans); i++) {
        halfbyte_device *device;
        halfbyte_plan *plan;
        call_make(&made, plans[i].base);
        made.options.isa = HALFBYTE_ISA_PORTABLE;
        assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_SUCCESS);
        assert_int_equal(halfbyte_plan_create(&plan, &made.problem, device), HALFBYTE_SUCCESS);
        check_description(describe_plan, plan, plans[i].text);
        check_description(describe_device, device, &END[1]);
        halfbyte_plan_destroy(plan);
        halfbyte_device_close(device);
    }
}

/* Every option at once, with the largest numbers: still one line of HALFBYTE_TEXT_BYTES. */
static void longest_description(void **state)
{
    (void)state;
    static call made;
    halfbyte_device *device;
    halfbyte_plan *plan;
    call_make(&made, BASE_W4A8);
    made.options.isa = HALFBYTE_ISA_PORTABLE;
    made.problem.m_max = INT32_MAX;
    made.problem.n = 2147483640;
    made.problem.k = 2147483616;
    made.problem.groups = 1 << 20;
    made.problem.k_splits = 16777216;
    made.problem.b_layout = HALFBYTE_B_PACKED;
    made.problem.group_k_offset = 96;
    made.problem.flags = 7;
    made.problem.num_sms = INT32_MAX;
    assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_SUCCESS);
    assert_int_equal(halfbyte_plan_create(&plan, &made.problem, device), HALFBYTE_SUCCESS);
    check_description(
        describe_plan, plan,
        "w4a8 ranges groups=1048576 m<=2147483647 n=2147483640 k=2147483616 "
        "a=e4m3:outer b=int4:packed:k_group128:bf16/mn group_k_offset=96 d=f32 "
        "channel_scale=f32 alpha=device c=f32 bias=bf16 k_splits=16777216 index=int32 "
        "zero_fill_padding weights_constant launch_dependents "
        "num_sms=2147483647" END);
    halfbyte_plan_destroy(plan);
    halfbyte_device_close(device);
}

static void statuses(void **state)
{
    (void)state;
    static const struct {
        halfbyte_status status;
        int code;
        const char *name;
        const char *text;
    } table[] = {
#define TABLE_ROW(name, code, text) {HALFBYTE_##name, code, #name, text},
        HALFBYTE_STATUS_MAP(TABLE_ROW)
#undef TABLE_ROW
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_int_equal(table[i].status, table[i].code);
        assert_string_equal(halfbyte_status_name(table[i].status), table[i].name);
        assert_string_equal(halfbyte_status_text(table[i].status), table[i].text);
    }
    assert_int_equal(COUNT(table), 9);
    static const int others[] = {-1, 1, 999, 1003, 9999, 2147483647};
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_string_equal(halfbyte_status_name((halfbyte_status)others[i]), "unknown status");
        assert_string_equal(halfbyte_status_text((halfbyte_status)others[i]), "unknown status");
    }
}

static void version(void **state)
{
    (void)state;
    char text[32];
    const unsigned int number = halfbyte_version();
    (void)snprintf(text, sizeof text, "%u.%u.%u", number / 1000000, number / 1000 % 1000,
                   number % 1000);
    assert_string_equal(halfbyte_version_text(), text);
    assert_int_equal(number / 1000000, HALFBYTE_VERSION_MAJOR);
    assert_int_equal(number / 1000 % 1000, HALFBYTE_VERSION_MINOR);
    assert_int_equal(number % 1000, HALFBYTE_VERSION_PATCH);
}

/* A sentence is kept until the next failure, and a long one is cut, not overrun. */
static void sentences(void **state)
{
    (void)state;
    char longest[2 * ERROR_TEXT_BYTES];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(status_fail(HALFBYTE_ERR_INTERNAL, "%s", longest), HALFBYTE_ERR_INTERNAL);
    assert_int_equal(strlen(halfbyte_last_error()), ERROR_TEXT_BYTES - 1);
    assert_int_equal(strspn(halfbyte_last_error(), "x"), ERROR_TEXT_BYTES - 1);

    assert_int_equal(halfbyte_device_open(NULL, NULL), HALFBYTE_ERR_INVALID_ARGUMENT);
    char kept[ERROR_TEXT_BYTES];
    (void)snprintf(kept, sizeof kept, "%s", halfbyte_last_error());
    assert_non_null(strstr(kept, "device = NULL"));
    halfbyte_device *device;
    assert_int_equal(halfbyte_device_open(&device, NULL), HALFBYTE_SUCCESS);
    assert_string_equal(halfbyte_last_error(), kept);
    halfbyte_device_close(device);
}

/* A line that does not fit is reported, not cut. */
static void overlong_line(void **state)
{
    (void)state;
    describe_line line = {.length = 0};
    char text[HALFBYTE_TEXT_BYTES + 1] = "";
    for (int i = 0; i < HALFBYTE_TEXT_BYTES - 1; i++) {
        describe_add(&line, "x");
    }
    assert_int_equal(describe_finish(&line, text, sizeof text), HALFBYTE_SUCCESS);
    assert_int_equal(strlen(text), HALFBYTE_TEXT_BYTES - 1);
    describe_add(&line, "%s", "yz");
    describe_add(&line, "%s", "and more");
    text[0] = '\0';
    assert_int_equal(describe_finish(&line, text, sizeof text), HALFBYTE_ERR_INTERNAL);
    assert_int_equal(text[0], '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_and_devices), cmocka_unit_test(longest_description),
        cmocka_unit_test(statuses),          cmocka_unit_test(version),
        cmocka_unit_test(sentences),         cmocka_unit_test(overlong_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
