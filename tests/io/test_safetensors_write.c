/* SPDX-License-Identifier: Apache-2.0 */
/* The streaming writer: what it writes, what it refuses, and what it leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/io_fixture.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"

static safetensors_writer *create(void)
{
    safetensors_writer *writer;
    io_error error;
    assert_int_equal(safetensors_writer_create(&writer, &error), IO_OK);
    return writer;
}

static void add(safetensors_writer *writer, const char *name, tensor_dtype dtype, int64_t elems,
                size_t want_index)
{
    io_error error;
    size_t index;
    assert_int_equal(safetensors_writer_add_tensor(writer, name, dtype, 1, &elems, &index, &error),
                     IO_OK);
    assert_int_equal(index, want_index);
}

static void append(safetensors_writer *writer, size_t index, const char *text)
{
    io_error error;
    if (safetensors_writer_append(writer, index, text, strlen(text), &error) != IO_OK)
        fail_msg("%s", error.text);
}

/* The bytes of a small file, written out by hand from the format's description. */
static void test_bytes(void **state)
{
    (void)state;
    fixture_clear();
    safetensors_writer *writer = create();
    io_error error;
    assert_int_equal(safetensors_writer_file_bytes(writer), 0);
    add(writer, "b", TENSOR_U8, 3, 0);
    add(writer, "a\"\n", TENSOR_U8, 1, 1);
    add(writer, "z", TENSOR_F32, 1, 2);
    assert_int_equal(safetensors_writer_add_metadata(writer, "k2", "\xc3\xa9", &error), IO_OK);
    assert_int_equal(safetensors_writer_add_metadata(writer, "k1", "", &error), IO_OK);
    assert_int_equal(safetensors_writer_begin(writer, fixture_path("out"), &error), IO_OK);
    append(writer, 0, "bb");
    append(writer, 2, "zzzz");
    append(writer, 1, "a");
    append(writer, 0, "B");
    assert_int_equal(safetensors_writer_append(writer, 0, NULL, 0, &error), IO_OK);
    static const char json[] = "{\"__metadata__\":{\"k2\":\"\xc3\xa9\",\"k1\":\"\"},"
                               "\"z\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                               "\"a\\\"\\n\":"
                               "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]},"
                               "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[5,8]}}";
    size_t padded = (sizeof json - 1 + 7) / 8 * 8;
    assert_int_equal(safetensors_writer_file_bytes(writer), 8 + padded + 8);
    assert_false(fixture_exists("out"));
    assert_int_equal(safetensors_writer_commit(writer, &error), IO_OK);
    safetensors_writer_destroy(writer);

    size_t bytes;
    unsigned char *file = fixture_read("out", &bytes);
    assert_int_equal(bytes, 8 + padded + 8);
    unsigned char length[8] = {(unsigned char)(padded & 0xff), (unsigned char)(padded >> 8)};
    assert_memory_equal(file, length, 8);
    assert_memory_equal(file + 8, json, sizeof json - 1);
    for (size_t i = sizeof json - 1; i < padded; i++)
        assert_int_equal(file[8 + i], ' ');
    assert_memory_equal(file + 8 + padded, "zzzzabbB", 8);
    free(file);
    assert_int_equal(fixture_count(""), 1);
}

/* Every type in one file, declared and appended in `order`; the bytes must not depend on it. */
static unsigned char *write_all_types(const size_t *order, size_t *bytes)
{
    safetensors_writer *writer = create();
    io_error error;
    size_t index[TENSOR_DTYPE_COUNT];
    for (size_t i = 0; i < TENSOR_DTYPE_COUNT; i++) {
        size_t type = order[i];
        tensor_dtype dtype = (tensor_dtype)type;
        const int64_t shape[3] = {3, (int64_t)type + 1, 1};
        assert_int_equal(safetensors_writer_add_tensor(writer, tensor_dtype_name(dtype), dtype, 3,
                                                       shape, &index[type], &error),
                         IO_OK);
    }
    assert_int_equal(safetensors_writer_begin(writer, fixture_path("types"), &error), IO_OK);
    for (size_t i = TENSOR_DTYPE_COUNT; i > 0; i--) {
        size_t type = order[i - 1];
        size_t left = 3 * (type + 1) * tensor_dtype_bytes((tensor_dtype)type);
        for (unsigned char value = (unsigned char)type; left > 0; left--, value++)
            assert_int_equal(safetensors_writer_append(writer, index[type], &value, 1, &error),
                             IO_OK);
    }
    assert_int_equal(safetensors_writer_commit(writer, &error), IO_OK);
    safetensors_writer_destroy(writer);
    return fixture_read("types", bytes);
}

static void test_order_does_not_matter(void **state)
{
    (void)state;
    fixture_clear();
    size_t forward[TENSOR_DTYPE_COUNT], stride[TENSOR_DTYPE_COUNT];
    for (size_t i = 0; i < TENSOR_DTYPE_COUNT; i++) {
        forward[i] = i;
        stride[i] = (5 * i + 3) % TENSOR_DTYPE_COUNT;
    }
    size_t bytes_a, bytes_b;
    unsigned char *a = write_all_types(forward, &bytes_a);
    unsigned char *b = write_all_types(stride, &bytes_b);
    assert_int_equal(bytes_a, bytes_b);
    assert_memory_equal(a, b, bytes_a);
    free(a);
    free(b);

    safetensors_file *file;
    io_error error;
    assert_int_equal(safetensors_open(&file, fixture_path("types"), &error), IO_OK);
    assert_int_equal(safetensors_count(file), TENSOR_DTYPE_COUNT);
    size_t compared = 0;
    for (size_t type = 0; type < TENSOR_DTYPE_COUNT; type++) {
        const safetensors_tensor *tensor =
            safetensors_find(file, tensor_dtype_name((tensor_dtype)type));
        assert_non_null(tensor);
        assert_int_equal(tensor->offset % tensor_dtype_bytes((tensor_dtype)type), 0);
        unsigned char got[3 * TENSOR_DTYPE_COUNT * 8];
        assert_true(tensor->spec.bytes <= sizeof got);
        assert_int_equal(safetensors_read(file, tensor, 0, got, (size_t)tensor->spec.bytes, &error),
                         IO_OK);
        for (size_t i = 0; i < tensor->spec.bytes; i++, compared++)
            assert_int_equal(got[i], (unsigned char)(type + i));
    }
    assert_true(compared > 1000);
    safetensors_close(file);
}

static void test_empty_file_and_empty_tensors(void **state)
{
    (void)state;
    fixture_clear();
    io_error error;
    safetensors_writer *writer = create();
    assert_int_equal(safetensors_writer_begin(writer, fixture_path("none"), &error), IO_OK);
    assert_int_equal(safetensors_writer_commit(writer, &error), IO_OK);
    safetensors_writer_destroy(writer);
    size_t bytes;
    unsigned char *data = fixture_read("none", &bytes);
    assert_int_equal(bytes, 16);
    assert_memory_equal(data, "\x08\0\0\0\0\0\0\0{}      ", 16);
    free(data);

    writer = create();
    const int64_t shape[2] = {0, 7};
    assert_int_equal(
        safetensors_writer_add_tensor(writer, "e", TENSOR_BF16, 2, shape, NULL, &error), IO_OK);
    assert_int_equal(safetensors_writer_add_tensor(writer, "s", TENSOR_F32, 0, NULL, NULL, &error),
                     IO_OK);
    assert_int_equal(safetensors_writer_begin(writer, fixture_path("empty"), &error), IO_OK);
    append(writer, 1, "1234");
    assert_int_equal(safetensors_writer_commit(writer, &error), IO_OK);
    safetensors_writer_destroy(writer);
    safetensors_file *file;
    assert_int_equal(safetensors_open(&file, fixture_path("empty"), &error), IO_OK);
    assert_int_equal(safetensors_find(file, "e")->spec.shape[1], 7);
    assert_int_equal(safetensors_find(file, "s")->spec.rank, 0);
    safetensors_close(file);
}

static void test_refused_declarations(void **state)
{
    (void)state;
    fixture_clear();
    safetensors_writer *writer = create();
    io_error error;
    const int64_t negative = -1;
    const int64_t wide[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    char name[4098];
    memset(name, 'n', 4097);
    name[4097] = '\0';
#define ADD(name, dtype, rank, shape)                                                              \
    safetensors_writer_add_tensor(writer, name, dtype, rank, shape, NULL, &error), &error
    check_error(ADD("a\xff", TENSOR_U8, 0, NULL), IO_ARGUMENT,
                "tensor 'a\\xff': the name must be UTF-8 and not __metadata__");
    check_error(ADD("__metadata__", TENSOR_U8, 0, NULL), IO_ARGUMENT,
                "tensor '__metadata__': the name must be UTF-8 and not __metadata__");
    check_error(ADD("w", TENSOR_U8, 1, &negative), IO_MALFORMED,
                "tensor 'w': dimension 0 is -1; 0 or more is accepted");
    check_error(ADD("w", TENSOR_U8, 9, wide), IO_UNSUPPORTED,
                "tensor 'w': 9 dimensions; at most 8 are accepted");
    check_error(ADD("w", TENSOR_DTYPE_COUNT, 0, NULL), IO_ARGUMENT,
                "tensor 'w': dtype number 16 is not in the table");
    assert_int_equal(safetensors_writer_add_tensor(writer, name, TENSOR_U8, 0, NULL, NULL, &error),
                     IO_TOO_LARGE);
    check_error(safetensors_writer_add_metadata(writer, "a", "\xc0", &error), &error, IO_ARGUMENT,
                "metadata 'a': key and value must be UTF-8");
    check_error(safetensors_writer_append(writer, 0, "", 0, &error), &error, IO_ARGUMENT,
                "safetensors writer: append was called out of order");
    check_error(safetensors_writer_commit(writer, &error), &error, IO_ARGUMENT,
                "safetensors writer: commit was called out of order");
    /* None of the refused ones counts. */
    add(writer, "w", TENSOR_U8, 1, 0);
    safetensors_writer_destroy(writer);
    safetensors_writer_destroy(NULL);
    assert_int_equal(fixture_count(""), 0);
}

/* begin fails with this sentence about 'out', once for good, and leaves nothing. */
static void check_begin(safetensors_writer *writer, io_status want, const char *tail)
{
    io_error error;
    const char *path = fixture_path("out");
    char text[512];
    snprintf(text, sizeof text, "%s: %s", io_quote_path(path).text, tail);
    check_error(safetensors_writer_begin(writer, path, &error), &error, want, text);
    assert_int_equal(safetensors_writer_begin(writer, path, &error), IO_ARGUMENT);
    safetensors_writer_destroy(writer);
    assert_int_equal(fixture_count(""), 0);
}

static void test_refused_at_begin(void **state)
{
    (void)state;
    fixture_clear();
    io_error error;
    safetensors_writer *writer = create();
    add(writer, "a", TENSOR_U8, 1, 0);
    add(writer, "b", TENSOR_U8, 1, 1);
    add(writer, "a", TENSOR_F32, 1, 2);
    check_begin(writer, IO_ARGUMENT, "tensor 'a' is declared twice");

    writer = create();
    assert_int_equal(safetensors_writer_add_metadata(writer, "k", "0", &error), IO_OK);
    assert_int_equal(safetensors_writer_add_metadata(writer, "k", "1", &error), IO_OK);
    check_begin(writer, IO_ARGUMENT, "the metadata key 'k' is given twice");

    writer = create();
    add(writer, "a", TENSOR_U8, INT64_MAX / 2, 0);
    add(writer, "b", TENSOR_U8, INT64_MAX / 2, 1);
    check_begin(writer, IO_TOO_LARGE, "with tensor 'b' the file would exceed 2^63-1 bytes");

    writer = create();
    char *value = malloc(16777217);
    assert_non_null(value);
    memset(value, 'v', 16777216);
    value[16777216] = '\0';
    assert_int_equal(safetensors_writer_add_metadata(writer, "k", value, &error), IO_OK);
    free(value);
    check_begin(writer, IO_TOO_LARGE,
                "the header or its metadata would exceed 100000000 or 16777216 bytes");
}

static void check_write_error(io_status status, const io_error *error, const char *tail)
{
    char text[512];
    snprintf(text, sizeof text, "%s: %s", io_quote_path(fixture_path("out")).text, tail);
    check_error(status, error, IO_ARGUMENT, text);
}

static void test_refused_data(void **state)
{
    (void)state;
    fixture_clear();
    fixture_write("out", "old", 3);
    io_error error;
    safetensors_writer *writer = create();
    add(writer, "a", TENSOR_U8, 4, 0);
    add(writer, "b", TENSOR_U8, 4, 1);
    assert_int_equal(safetensors_writer_begin(writer, fixture_path("out"), &error), IO_OK);
    check_write_error(safetensors_writer_append(writer, 2, "x", 1, &error), &error,
                      "tensor number 2 was asked for; 2 exist");
    check_write_error(safetensors_writer_append(writer, 0, "xxxxx", 5, &error), &error,
                      "tensor 'a' has 4 bytes left to write, not 5");
    append(writer, 0, "aaaa");
    check_write_error(safetensors_writer_append(writer, 0, "x", 1, &error), &error,
                      "tensor 'a' has 0 bytes left to write, not 1");
    append(writer, 1, "bbb");
    assert_int_equal(safetensors_writer_add_tensor(writer, "c", TENSOR_U8, 0, NULL, NULL, &error),
                     IO_ARGUMENT);
    assert_int_equal(safetensors_writer_add_metadata(writer, "c", "", &error), IO_ARGUMENT);
    assert_int_equal(fixture_count(""), 2);
    check_write_error(safetensors_writer_commit(writer, &error), &error,
                      "tensor 'b' has 3 of its 4 bytes; all must be written before commit");
    assert_int_equal(safetensors_writer_append(writer, 1, "b", 1, &error), IO_ARGUMENT);
    assert_int_equal(safetensors_writer_commit(writer, &error), IO_ARGUMENT);
    safetensors_writer_destroy(writer);
    /* The old file stands, no temporary is left. */
    assert_int_equal(fixture_count(""), 1);
    size_t bytes;
    unsigned char *data = fixture_read("out", &bytes);
    assert_int_equal(bytes, 3);
    assert_memory_equal(data, "old", 3);
    free(data);
}

static void test_destroy_removes(void **state)
{
    (void)state;
    fixture_clear();
    io_error error;
    safetensors_writer *writer = create();
    add(writer, "a", TENSOR_U8, 4, 0);
    assert_int_equal(safetensors_writer_begin(writer, fixture_path("out"), &error), IO_OK);
    append(writer, 0, "aaaa");
    assert_int_equal(fixture_count(".tmp"), 1);
    safetensors_writer_destroy(writer);
    assert_int_equal(fixture_count(""), 0);
}

/* The most tensors: written and read back. */
static void test_largest_table(void **state)
{
    (void)state;
    fixture_clear();
    io_error error;
    safetensors_writer *writer = create();
    char name[64];
    memset(name, 'n', sizeof name);
    for (unsigned i = 0; i < SAFETENSORS_MAX_TENSORS; i++) {
        snprintf(name + 40, sizeof name - 40, "%u", i * 2654435761u);
        add(writer, name, TENSOR_U8, 1, i);
    }
    assert_int_equal(safetensors_writer_add_tensor(writer, "x", TENSOR_U8, 0, NULL, NULL, &error),
                     IO_TOO_LARGE);
    assert_int_equal(safetensors_writer_begin(writer, fixture_path("out"), &error), IO_OK);
    for (unsigned i = 0; i < SAFETENSORS_MAX_TENSORS; i++) {
        char value = (char)(i % 127);
        assert_int_equal(safetensors_writer_append(writer, i, &value, 1, &error), IO_OK);
    }
    assert_int_equal(safetensors_writer_commit(writer, &error), IO_OK);
    safetensors_writer_destroy(writer);
    safetensors_file *file;
    assert_int_equal(safetensors_open(&file, fixture_path("out"), &error), IO_OK);
    assert_int_equal(safetensors_count(file), SAFETENSORS_MAX_TENSORS);
    size_t compared = 0;
    for (unsigned i = 0; i < SAFETENSORS_MAX_TENSORS; i += 8) {
        snprintf(name + 40, sizeof name - 40, "%u", i * 2654435761u);
        char value = -1;
        const safetensors_tensor *tensor = safetensors_find(file, name);
        assert_int_equal(safetensors_read(file, tensor, 0, &value, 1, &error), IO_OK);
        compared += value == (char)(i % 127);
    }
    assert_int_equal(compared, SAFETENSORS_MAX_TENSORS / 8);
    safetensors_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_empty_file_and_empty_tensors),
        cmocka_unit_test(test_refused_declarations),
        cmocka_unit_test(test_refused_at_begin),
        cmocka_unit_test(test_refused_data),
        cmocka_unit_test(test_destroy_removes),
        cmocka_unit_test(test_largest_table),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
