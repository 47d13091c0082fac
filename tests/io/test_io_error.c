/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: quoting, cutting, UTF-8, and the tables of types and sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "io/io_error.h"
#include "io/tensor_spec.h"

/* The definition, spelled out from the code point. */
static size_t encode(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[length] | code);
    return length;
}

static void test_utf8_accepts_every_code_point(void **state)
{
    (void)state;
    size_t compared = 0;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char text[4];
        size_t length = encode(code, text);
        size_t want = code >= 0xd800 && code <= 0xdfff ? 0 : length;
        if (utf8_sequence_length(text, length) != want)
            fail_msg("U+%04X", code);
        if (utf8_sequence_length(text, length - 1) != 0)
            fail_msg("U+%04X cut short", code);
        compared++;
    }
    assert_int_equal(compared, 0x110000);
}

static void test_utf8_refuses(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xc3\x28",
                                      "\xe2\x28\xa1",
                                      "\xf0\x9f\x92\x28"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(utf8_sequence_length(bad[i], strlen(bad[i])), 0);
}

static void test_quote(void **state)
{
    (void)state;
    assert_string_equal(io_quote("a.weight").text, "'a.weight'");
    assert_string_equal(io_quote("").text, "''");
    assert_string_equal(io_quote("\xc3\xa9 \xe2\x82\xac \xf0\x9d\x84\x9e").text,
                        "'\xc3\xa9 \xe2\x82\xac \xf0\x9d\x84\x9e'");
    assert_string_equal(io_quote("\x1b[31m\n\t\x7f").text, "'\\x1b[31m\\x0a\\x09\\x7f'");
    assert_string_equal(io_quote("it's \\").text, "'it\\x27s \\x5c'");
    assert_string_equal(io_quote("\xff\xc3").text, "'\\xff\\xc3'");
    /* C1 control, right-to-left override, line separator. */
    assert_string_equal(io_quote("\xc2\x9b").text, "'\\xc2\\x9b'");
    assert_string_equal(io_quote("\xe2\x80\xae").text, "'\\xe2\\x80\\xae'");
    assert_string_equal(io_quote("\xe2\x80\xa8").text, "'\\xe2\\x80\\xa8'");
    assert_string_equal(io_quote_bytes("a\0b", 3).text, "'a\\x00b'");
    /* Punctuation from the same blocks stays. */
    assert_string_equal(io_quote("\xe2\x80\x93 \xe2\x81\x87").text, "'\xe2\x80\x93 \xe2\x81\x87'");
}

static void check_is_utf8(const char *text)
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        size_t step = utf8_sequence_length(text + at, length - at);
        assert_int_not_equal(step, 0);
        at += step;
    }
}

static void test_quote_cuts(void **state)
{
    (void)state;
    char name[2000];
    for (size_t length = 1; length < 400; length++) {
        /* Each start phase of a three-byte character at the cut. */
        memset(name, 'x', length % 3);
        for (size_t at = length % 3; at < length; at += 3)
            memcpy(name + at, "\xe2\x82\xac", 3);
        size_t end = length % 3 + (length - length % 3 + 2) / 3 * 3;
        name[end] = '\0';
        io_quoted head = io_quote(name);
        io_quoted tail = io_quote_path(name);
        check_is_utf8(head.text);
        check_is_utf8(tail.text);
        assert_true(strlen(head.text) < sizeof head.text);
        size_t shown = strlen(head.text);
        if (end <= 162) {
            assert_int_equal(shown, end + 2);
            assert_string_equal(head.text, tail.text);
        } else {
            assert_string_equal(head.text + shown - 4, "...'");
            assert_memory_equal(head.text + 1, name, shown - 5);
            assert_memory_equal(tail.text, "'...", 4);
            size_t kept = strlen(tail.text) - 5;
            assert_true(kept >= 150);
            assert_memory_equal(tail.text + 4, name + end - kept, kept);
        }
    }
}

static void test_long_text_is_cut(void **state)
{
    (void)state;
    char longer[1200];
    for (size_t i = 0; i + 3 < sizeof longer; i += 3)
        memcpy(longer + i, "\xe2\x82\xac", 4);
    io_error error;
    assert_int_equal(io_error_set(&error, IO_MALFORMED, "%s", longer), IO_MALFORMED);
    check_is_utf8(error.text);
    assert_int_equal(strlen(error.text), 510); /* 169 characters of 3 bytes, "..." */
    assert_string_equal(error.text + 507, "...");
    assert_int_equal(io_error_set_system(&error, EACCES, "%s", longer), IO_SYSTEM);
    check_is_utf8(error.text);
    assert_int_equal(error.system_errno, EACCES);
}

static void test_status_of_system_errors(void **state)
{
    (void)state;
    io_error error;
    assert_int_equal(io_error_set_system(&error, ENOENT, "x"), IO_NOT_FOUND);
    assert_string_equal(error.text, "x: No such file or directory");
    assert_int_equal(io_error_set_system(&error, ENOMEM, "x"), IO_OUT_OF_MEMORY);
    assert_int_equal(io_error_set_system(&error, ENOSPC, "x"), IO_SYSTEM);
    assert_string_equal(error.text, "x: No space left on device");
    assert_int_equal(io_error_set_system(NULL, ENOSPC, "x"), IO_SYSTEM);
    assert_int_equal(io_error_set(NULL, IO_TOO_LARGE, "x"), IO_TOO_LARGE);
    assert_string_equal(io_status_name(IO_OK), "ok");
    assert_string_equal(io_status_name((io_status)77), "unknown status");
}

static void test_dtype_table(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t bytes;
        const char *npy;
    } rows[] = {{"BOOL", 1, "|b1"},   {"U8", 1, "|u1"},     {"I8", 1, "|i1"},  {"F8_E5M2", 1, NULL},
                {"F8_E4M3", 1, NULL}, {"F8_E8M0", 1, NULL}, {"I16", 2, "<i2"}, {"U16", 2, "<u2"},
                {"F16", 2, "<f2"},    {"BF16", 2, NULL},    {"I32", 4, "<i4"}, {"U32", 4, "<u4"},
                {"F32", 4, "<f4"},    {"F64", 8, "<f8"},    {"I64", 8, "<i8"}, {"U64", 8, "<u8"}};
    assert_int_equal(sizeof rows / sizeof rows[0], TENSOR_DTYPE_COUNT);
    for (int i = 0; i < TENSOR_DTYPE_COUNT; i++) {
        tensor_dtype dtype;
        assert_true(tensor_dtype_from_name(rows[i].name, &dtype));
        assert_int_equal(dtype, i);
        assert_string_equal(tensor_dtype_name(dtype), rows[i].name);
        assert_int_equal(tensor_dtype_bytes(dtype), rows[i].bytes);
        const char *descr = tensor_dtype_npy_descr(dtype);
        if (rows[i].npy == NULL)
            assert_null(descr);
        else
            assert_string_equal(descr, rows[i].npy);
    }
    tensor_dtype none;
    assert_false(tensor_dtype_from_name("f32", &none));
    assert_string_equal(tensor_dtype_name(TENSOR_DTYPE_COUNT), "?");
    assert_int_equal(tensor_dtype_bytes(TENSOR_DTYPE_COUNT), 0);
    assert_null(tensor_dtype_npy_descr(TENSOR_DTYPE_COUNT));
}

static void test_spec(void **state)
{
    (void)state;
    tensor_spec spec;
    io_error error;
    char text[168];
    const int64_t largest = INT64_MAX;
    assert_int_equal(tensor_spec_init(&spec, TENSOR_U8, 1, &largest, "t", &error), IO_OK);
    assert_int_equal(spec.bytes, INT64_MAX);
    assert_int_equal(tensor_spec_init(&spec, TENSOR_U16, 1, &largest, "t", &error), IO_TOO_LARGE);
    const int64_t half[] = {(int64_t)1 << 31, (int64_t)1 << 31, 0};
    assert_int_equal(tensor_spec_init(&spec, TENSOR_U8, 2, half, "t", &error), IO_OK);
    assert_int_equal(spec.elems, (uint64_t)1 << 62);
    assert_int_equal(tensor_spec_init(&spec, TENSOR_U8, 3, half, "t", &error), IO_OK);
    assert_int_equal(spec.bytes, 0);
    assert_int_equal(tensor_spec_init(&spec, TENSOR_U16, 3, half, "t", &error), IO_TOO_LARGE);
    assert_int_equal(tensor_spec_init(&spec, TENSOR_F64, 0, NULL, "t", &error), IO_OK);
    assert_int_equal(spec.elems, 1);
    assert_int_equal(spec.bytes, 8);
    tensor_shape_format(&spec, text, sizeof text);
    assert_string_equal(text, "[]");
    const int64_t wide[TENSOR_MAX_RANK] = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(tensor_spec_init(&spec, TENSOR_I32, 8, wide, "t", &error), IO_OK);
    tensor_shape_format(&spec, text, sizeof text);
    assert_string_equal(text, "[1, 2, 3, 4, 5, 6, 7, 8]");
    tensor_shape_format(&spec, text, 8);
    assert_int_equal(strlen(text), 7);
    assert_int_equal(tensor_spec_init(&spec, TENSOR_DTYPE_COUNT, 0, NULL, "t", &error),
                     IO_ARGUMENT);
    assert_int_equal(tensor_spec_init(&spec, TENSOR_U8, -1, NULL, "t", &error), IO_UNSUPPORTED);
    const int64_t negative = -1;
    assert_int_equal(tensor_spec_init(&spec, TENSOR_U8, 1, &negative, "t", &error), IO_MALFORMED);
    assert_string_equal(error.text, "t: dimension 0 is -1; 0 or more is accepted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8_accepts_every_code_point),
        cmocka_unit_test(test_utf8_refuses),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_quote_cuts),
        cmocka_unit_test(test_long_text_is_cut),
        cmocka_unit_test(test_status_of_system_errors),
        cmocka_unit_test(test_dtype_table),
        cmocka_unit_test(test_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
