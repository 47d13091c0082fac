/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy writer: its bytes, what it refuses, what it leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/io_fixture.h"
#include "io/npy.h"

static void check_written(const char *dict, size_t header_bytes, const void *data, size_t bytes)
{
    size_t length;
    unsigned char *file = fixture_read("a.npy", &length);
    assert_int_equal(length, header_bytes + bytes);
    unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    start[8] = (unsigned char)((header_bytes - 10) & 0xff);
    start[9] = (unsigned char)((header_bytes - 10) >> 8);
    assert_memory_equal(file, start, 10);
    assert_memory_equal(file + 10, dict, strlen(dict));
    for (size_t i = 10 + strlen(dict); i < header_bytes - 1; i++)
        assert_int_equal(file[i], ' ');
    assert_int_equal(file[header_bytes - 1], '\n');
    assert_memory_equal(file + header_bytes, data, bytes);
    free(file);
}

static void test_written_bytes(void **state)
{
    (void)state;
    fixture_clear();
    static const float values[6] = {0, 1, -2, 3.5f, 1e30f, -0.0f};
    const int64_t shape[TENSOR_MAX_RANK] = {2, 3, 1, 1, 1, 1, 1, 1};
    const int64_t six = 6;
    io_error error;
    const char *path = fixture_path("a.npy");
    assert_int_equal(npy_write(path, TENSOR_F32, 2, shape, values, &error), IO_OK);
    check_written("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 128, values, 24);
    assert_int_equal(npy_write(path, TENSOR_F32, 1, &six, values, &error), IO_OK);
    check_written("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 128, values, 24);
    assert_int_equal(npy_write(path, TENSOR_BOOL, 0, NULL, "\1", &error), IO_OK);
    check_written("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 128, "\1", 1);
    assert_int_equal(npy_write(path, TENSOR_I16, 8, shape, values, &error), IO_OK);
    check_written("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3, 1, 1, 1, 1, 1, 1), }",
                  128, values, 12);
    const int64_t wide[8] = {1000000000, 1000000000, 0, 1, 1, 1, 1, 1};
    assert_int_equal(npy_write(path, TENSOR_U64, 8, wide, NULL, &error), IO_OK);
    check_written("{'descr': '<u8', 'fortran_order': False, 'shape': (1000000000, 1000000000, 0, "
                  "1, 1, 1, 1, 1), }",
                  128, "", 0);
    assert_int_equal(fixture_count(""), 1);
}

static void test_written_in_pieces(void **state)
{
    (void)state;
    fixture_clear();
    size_t types = 0;
    for (int i = 0; i < TENSOR_DTYPE_COUNT; i++) {
        tensor_dtype dtype = (tensor_dtype)i;
        const int64_t shape[3] = {3, 1, 5};
        npy_writer *writer;
        io_error error;
        const char *path = fixture_path("a.npy");
        io_status status = npy_writer_begin(&writer, path, dtype, 3, shape, &error);
        if (tensor_dtype_npy_descr(dtype) == NULL) {
            assert_int_equal(status, IO_UNSUPPORTED);
            assert_null(writer);
            assert_non_null(strstr(error.text, ": .npy has no type for "));
            continue;
        }
        assert_int_equal(status, IO_OK);
        size_t bytes = 15 * tensor_dtype_bytes(dtype);
        for (size_t at = 0; at < bytes; at++) {
            unsigned char value = PATTERN_BYTE(at);
            assert_int_equal(npy_writer_append(writer, &value, 1, &error), IO_OK);
        }
        assert_int_equal(npy_writer_commit(writer, &error), IO_OK);
        npy_file *file;
        assert_int_equal(npy_open(&file, path, &error), IO_OK);
        assert_int_equal(npy_spec(file)->dtype, dtype);
        unsigned char got[120];
        assert_int_equal(npy_read(file, 0, got, bytes, &error), IO_OK);
        for (size_t at = 0; at < bytes; at++)
            assert_int_equal(got[at], PATTERN_BYTE(at));
        npy_close(file);
        types++;
    }
    assert_int_equal(types, 12);
}

static void test_refused_writes(void **state)
{
    (void)state;
    fixture_clear();
    const int64_t four = 4;
    const int64_t negative = -4;
    npy_writer *writer;
    io_error error;
    const char *path = fixture_path("a.npy");
    fixture_write("a.npy", "old", 3);
    assert_int_equal(npy_writer_begin(&writer, path, TENSOR_U8, 1, &negative, &error),
                     IO_MALFORMED);
    assert_int_equal(npy_writer_begin(&writer, path, TENSOR_U8, 9, &four, &error), IO_UNSUPPORTED);
    const int64_t largest = INT64_MAX;
    assert_int_equal(npy_writer_begin(&writer, path, TENSOR_U8, 1, &largest, &error), IO_TOO_LARGE);
    assert_int_equal(npy_writer_begin(&writer, fixture_path("no/a"), TENSOR_U8, 1, &four, &error),
                     IO_NOT_FOUND);
    assert_null(writer);
    assert_int_equal(npy_writer_begin(&writer, path, TENSOR_U8, 1, &four, &error), IO_OK);
    char want[512];
    snprintf(want, sizeof want, "%s: 4 bytes are left to write, not 5", io_quote_path(path).text);
    check_error(npy_writer_append(writer, "12345", 5, &error), &error, IO_ARGUMENT, want);
    assert_int_equal(npy_writer_append(writer, "123", 3, &error), IO_OK);
    snprintf(want, sizeof want, "%s: 3 of 4 bytes were written; all must be before commit",
             io_quote_path(path).text);
    check_error(npy_writer_commit(writer, &error), &error, IO_ARGUMENT, want);
    assert_int_equal(npy_writer_begin(&writer, path, TENSOR_U8, 1, &four, &error), IO_OK);
    npy_writer_abort(writer);
    npy_writer_abort(NULL);
    assert_int_equal(fixture_count(""), 1);
    size_t bytes;
    unsigned char *data = fixture_read("a.npy", &bytes);
    assert_int_equal(bytes, 3);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_bytes),
        cmocka_unit_test(test_written_in_pieces),
        cmocka_unit_test(test_refused_writes),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
