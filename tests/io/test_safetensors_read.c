/* SPDX-License-Identifier: Apache-2.0 */
/* Files that must be accepted, and the sources they come from. */
#define _XOPEN_SOURCE 700

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io_fixture.h"
#include "io/safetensors.h"

static safetensors_file *open_json(const char *json, size_t data_bytes, unsigned char **bytes)
{
    size_t length;
    *bytes = safetensors_bytes(json, data_bytes, &length);
    io_source source = memory_source(*bytes, length);
    safetensors_file *file;
    io_error error;
    if (safetensors_open_source(&file, &source, &error) != IO_OK)
        fail_msg("%s", error.text);
    assert_null(source.label);
    return file;
}

/* All bytes of the tensor, read in pieces of `piece`, are those of the pattern from `begin` on. */
static void check_data(const safetensors_file *file, const char *name, size_t begin, size_t bytes,
                       size_t piece)
{
    const safetensors_tensor *tensor = safetensors_find(file, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->spec.bytes, bytes);
    size_t compared = 0;
    for (size_t at = 0; at < bytes; at += piece) {
        unsigned char got[64];
        size_t count = bytes - at < piece ? bytes - at : piece;
        io_error error;
        assert_int_equal(safetensors_read(file, tensor, at, got, count, &error), IO_OK);
        for (size_t i = 0; i < count; i++, compared++)
            assert_int_equal(got[i], PATTERN_BYTE(begin + at + i));
    }
    assert_int_equal(compared, bytes);
}

static void test_every_dtype(void **state)
{
    (void)state;
    for (int i = 0; i < TENSOR_DTYPE_COUNT; i++) {
        tensor_dtype dtype = (tensor_dtype)i;
        size_t bytes = 6 * tensor_dtype_bytes(dtype);
        char json[200];
        snprintf(json, sizeof json,
                 "{\"w\":{\"dtype\":\"%s\",\"shape\":[2,3],\"data_offsets\":[0,%zu]}}",
                 tensor_dtype_name(dtype), bytes);
        unsigned char *data;
        safetensors_file *file = open_json(json, bytes, &data);
        assert_int_equal(safetensors_count(file), 1);
        const safetensors_tensor *tensor = safetensors_at(file, 0);
        assert_string_equal(tensor->name, "w");
        assert_int_equal(tensor->spec.dtype, dtype);
        assert_int_equal(tensor->spec.rank, 2);
        assert_int_equal(tensor->spec.shape[0], 2);
        assert_int_equal(tensor->spec.shape[1], 3);
        assert_int_equal(tensor->spec.shape[2], 0);
        assert_int_equal(tensor->spec.elems, 6);
        assert_int_equal(tensor->offset, 8 + strlen(json));
        assert_int_equal(tensor->shard, 0);
        check_data(file, "w", 0, bytes, 5);
        safetensors_close(file);
        free(data);
    }
}

static void test_any_order_empty_and_scalar(void **state)
{
    (void)state;
    /* Unaligned F32, tensors out of order, empty ones at the start, between and at the end. */
    static const char json[] =
        "{ \"last\" : {\"shape\":[1,2,1,1,1,1,1,1],\"dtype\":\"F32\",\"data_offsets\":[4,12]},\n"
        "\t\"scalar\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},\r\n"
        "\"zero\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[0,0]},"
        "\"hole\":{\"dtype\":\"F64\",\"shape\":[3,0,4294967296],\"data_offsets\":[4,4]},"
        "\"end\":{\"dtype\":\"I8\",\"shape\":[0,0],\"data_offsets\":[12,12]},"
        "\"\":{\"data_offsets\":[1,4],\"dtype\":\"U8\",\"shape\":[3]}}   \n";
    unsigned char *data;
    safetensors_file *file = open_json(json, 12, &data);
    static const char *const names[] = {"last", "scalar", "zero", "hole", "end", ""};
    assert_int_equal(safetensors_count(file), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(safetensors_at(file, i)->name, names[i]);
        assert_ptr_equal(safetensors_find(file, names[i]), safetensors_at(file, i));
    }
    assert_null(safetensors_at(file, 6));
    assert_null(safetensors_find(file, "las"));
    assert_null(safetensors_find(file, "lastt"));
    check_data(file, "last", 4, 8, 3);
    check_data(file, "scalar", 0, 1, 1);
    check_data(file, "zero", 0, 0, 1);
    check_data(file, "hole", 0, 0, 1);
    check_data(file, "", 1, 3, 64);
    assert_int_equal(safetensors_find(file, "scalar")->spec.elems, 1);
    assert_int_equal(safetensors_metadata_count(file), 0);
    safetensors_close(file);
    free(data);
}

static void test_no_tensors(void **state)
{
    (void)state;
    unsigned char *data;
    safetensors_file *file = open_json("{}", 0, &data);
    assert_int_equal(safetensors_count(file), 0);
    assert_null(safetensors_at(file, 0));
    assert_null(safetensors_find(file, ""));
    safetensors_close(file);
    free(data);
    safetensors_close(NULL);
}

static void test_names_and_metadata(void **state)
{
    (void)state;
    static const char json[] =
        "{\"\\u00e9\\ud834\\udd1e\\n\\\"\\\\\\/\":"
        "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"__metadata__\":{\"z\":\"1\",\"format\":\"pt\",\"a\":\"\",\"\":\"\\u20ac\xe2\x82\xac\"},"
        "\"\xcf\x80\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}";
    unsigned char *data;
    safetensors_file *file = open_json(json, 2, &data);
    assert_int_equal(safetensors_count(file), 2);
    assert_non_null(safetensors_find(file, "\xc3\xa9\xf0\x9d\x84\x9e\n\"\\/"));
    assert_non_null(safetensors_find(file, "\xcf\x80"));
    static const char *const keys[] = {"z", "format", "a", ""};
    static const char *const values[] = {"1", "pt", "", "\xe2\x82\xac\xe2\x82\xac"};
    assert_int_equal(safetensors_metadata_count(file), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(safetensors_metadata_key(file, i), keys[i]);
        assert_string_equal(safetensors_metadata_value(file, i), values[i]);
        assert_string_equal(safetensors_metadata_find(file, keys[i]), values[i]);
    }
    assert_null(safetensors_metadata_find(file, "b"));
    safetensors_close(file);
    free(data);
}

static void test_ranges(void **state)
{
    (void)state;
    unsigned char *data;
    safetensors_file *file =
        open_json("{\"w\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]}}", 9, &data);
    const safetensors_tensor *tensor = safetensors_at(file, 0);
    unsigned char got[16];
    io_error error;
    assert_int_equal(safetensors_read(file, tensor, 9, got, 0, &error), IO_OK);
    check_error(safetensors_read(file, tensor, 9, got, 1, &error), &error, IO_ARGUMENT,
                "'file': tensor 'w': 1 bytes from byte 9 on were asked for, but it has 9");
    check_error(safetensors_read(file, tensor, 10, got, 0, &error), &error, IO_ARGUMENT,
                "'file': tensor 'w': 0 bytes from byte 10 on were asked for, but it has 9");
    assert_int_equal(safetensors_read(file, tensor, UINT64_MAX, got, 2, &error), IO_ARGUMENT);
    assert_int_equal(safetensors_read(file, tensor, 1, got, SIZE_MAX, &error), IO_ARGUMENT);
    const safetensors_tensor copy = *tensor;
    check_error(safetensors_read(file, &copy, 0, got, 1, &error), &error, IO_ARGUMENT,
                "'file': the tensor to be read is not of this file");
    assert_int_equal(safetensors_read(file, NULL, 0, got, 1, &error), IO_ARGUMENT);
    safetensors_close(file);
    free(data);
}

/* ---- sources -------------------------------------------------------------------------------- */

typedef struct slow_source {
    const unsigned char *data;
    size_t bytes;
    size_t fail_from; /* reads at this offset or behind it fail with EIO */
    unsigned calls;
    bool closed;
} slow_source;

/* Interrupted every other call, otherwise one byte. */
static int64_t slow_read_at(void *context, uint64_t offset, void *buffer, size_t bytes)
{
    slow_source *slow = context;
    assert_true(bytes > 0);
    if (offset >= slow->fail_from) {
        errno = EIO;
        return -1;
    }
    if (slow->calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (offset >= slow->bytes)
        return 0;
    *(unsigned char *)buffer = slow->data[offset];
    return 1;
}

static void slow_close(void *context)
{
    ((slow_source *)context)->closed = true;
}

static io_source open_slow(slow_source *slow, size_t claimed_bytes)
{
    io_source source = {slow_read_at, slow_close, slow, claimed_bytes, strdup("slow")};
    return source;
}

static const char slow_json[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[60],\"data_offsets\":[0,60]}}";

static void test_short_and_interrupted_reads(void **state)
{
    (void)state;
    size_t length;
    unsigned char *data = safetensors_bytes(slow_json, 60, &length);
    slow_source slow = {data, length, SIZE_MAX, 0, false};
    io_source source = open_slow(&slow, length);
    safetensors_file *file;
    io_error error;
    assert_int_equal(safetensors_open_source(&file, &source, &error), IO_OK);
    check_data(file, "w", 0, 60, 60);
    assert_false(slow.closed);
    safetensors_close(file);
    assert_true(slow.closed);
    free(data);
}

static void test_source_that_fails_or_shrinks(void **state)
{
    (void)state;
    size_t length;
    unsigned char *data = safetensors_bytes(slow_json, 60, &length);
    safetensors_file *file;
    io_error error;

    slow_source failing = {data, length, 20, 0, false};
    io_source source = open_slow(&failing, length);
    check_error(safetensors_open_source(&file, &source, &error), &error, IO_SYSTEM,
                "'slow': reading at byte 20 failed: Input/output error");
    assert_null(file);
    assert_true(failing.closed);
    assert_int_equal(error.system_errno, EIO);

    slow_source shrunk = {data, 30, SIZE_MAX, 0, false};
    source = open_slow(&shrunk, length);
    check_error(safetensors_open_source(&file, &source, &error), &error, IO_MALFORMED,
                "'slow': ends at byte 30 but had 123 bytes when it was opened");
    assert_true(shrunk.closed);
    free(data);
}

static void test_file_that_shrinks(void **state)
{
    (void)state;
    size_t length;
    unsigned char *data = safetensors_bytes(slow_json, 60, &length);
    fixture_write("shrink", data, length);
    const char *path = fixture_path("shrink");
    safetensors_file *file;
    io_error error;
    assert_int_equal(safetensors_open(&file, path, &error), IO_OK);
    assert_string_equal(safetensors_path(file), path);
    check_data(file, "w", 0, 60, 64);
    assert_int_equal(truncate(path, (off_t)length - 20), 0);
    unsigned char got[60];
    assert_int_equal(safetensors_read(file, safetensors_at(file, 0), 0, got, 60, &error),
                     IO_MALFORMED);
    assert_non_null(strstr(error.text, "ends at byte 103 but had 123 bytes when it was opened"));
    assert_int_equal(safetensors_read(file, safetensors_at(file, 0), 0, got, 40, &error), IO_OK);
    safetensors_close(file);
    free(data);
}

/* The sentence about `path` is: its quoted form and `tail`. */
static void check_open_refused(const char *path, io_status want, const char *tail)
{
    safetensors_file *file;
    io_error error;
    char text[512];
    snprintf(text, sizeof text, "%s: %s", io_quote_path(path).text, tail);
    check_error(safetensors_open(&file, path, &error), &error, want, text);
    assert_null(file);
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(fixture_path("pipe"), 0600), 0);
    check_open_refused(fixture_path("pipe"), IO_UNSUPPORTED,
                       "is a pipe; a regular file is accepted");
    check_open_refused(fixture_path(""), IO_UNSUPPORTED,
                       "is a directory; a regular file is accepted");
    check_open_refused("/dev/null", IO_UNSUPPORTED,
                       "is a character device; a regular file is accepted");
    check_open_refused(fixture_path("none"), IO_NOT_FOUND,
                       "cannot be opened for reading: No such file or directory");
    check_open_refused("", IO_NOT_FOUND, "cannot be opened for reading: No such file or directory");
    assert_int_equal(symlink("loop", fixture_path("loop")), 0);
    check_open_refused(fixture_path("loop"), IO_SYSTEM,
                       "cannot be opened for reading: Too many levels of symbolic links");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_any_order_empty_and_scalar),
        cmocka_unit_test(test_no_tensors),
        cmocka_unit_test(test_names_and_metadata),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_short_and_interrupted_reads),
        cmocka_unit_test(test_source_that_fails_or_shrinks),
        cmocka_unit_test(test_file_that_shrinks),
        cmocka_unit_test(test_what_is_no_file),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
