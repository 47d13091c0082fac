/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation fails in turn: the status is IO_OUT_OF_MEMORY, nothing leaks, nothing is left on
 * disk. The linker sends malloc and its like to the functions here (--wrap).
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "io/io_fixture.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"

static size_t calls_left = SIZE_MAX; /* allocations until one fails */
static size_t live;                  /* blocks of this program, jansson's included */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t limit);
void __wrap_free(void *block);

static bool fails(void)
{
    if (calls_left == SIZE_MAX)
        return false;
    if (calls_left == 0) {
        errno = ENOMEM;
        return true;
    }
    calls_left--;
    return false;
}

void *__wrap_malloc(size_t bytes)
{
    void *block = fails() ? NULL : __real_malloc(bytes);
    live += block != NULL;
    return block;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    void *block = fails() ? NULL : __real_calloc(count, bytes);
    live += block != NULL;
    return block;
}

void *__wrap_realloc(void *old, size_t bytes)
{
    void *block = fails() ? NULL : __real_realloc(old, bytes);
    live += block != NULL && old == NULL;
    return block;
}

char *__wrap_strndup(const char *text, size_t limit)
{
    size_t length = strnlen(text, limit);
    char *copy = __wrap_malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

void __wrap_free(void *block)
{
    live -= block != NULL;
    __real_free(block);
}

static const char json[] = "{\"__metadata__\":{\"a\":\"b\",\"c\":\"d\"},"
                           "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                           "\"v\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]}}";

static io_status read_model(io_error *error)
{
    safetensors_model *model;
    io_status status = safetensors_model_open(&model, fixture_path("m.json"), error);
    if (status == IO_OK)
        assert_int_equal(safetensors_model_count(model), 2);
    else
        assert_null(model);
    safetensors_model_close(model);
    return status;
}

static io_status read_npy(io_error *error)
{
    npy_file *file;
    io_status status = npy_open(&file, fixture_path("a.npy"), error);
    assert_true((file != NULL) == (status == IO_OK));
    npy_close(file);
    return status;
}

static io_status write_npy(io_error *error)
{
    const int64_t three = 3;
    return npy_write(fixture_path("new"), TENSOR_U8, 1, &three, "abc", error);
}

static io_status write_safetensors(io_error *error)
{
    safetensors_writer *writer;
    const int64_t shape[2] = {1, 3};
    size_t index = 0;
    io_status status = safetensors_writer_create(&writer, error);
    if (status == IO_OK)
        status = safetensors_writer_add_metadata(writer, "k", "v", error);
    if (status == IO_OK)
        status = safetensors_writer_add_tensor(writer, "w", TENSOR_U8, 2, shape, &index, error);
    if (status == IO_OK)
        status = safetensors_writer_begin(writer, fixture_path("new"), error);
    if (status == IO_OK)
        status = safetensors_writer_append(writer, index, "abc", 3, error);
    if (status == IO_OK)
        status = safetensors_writer_commit(writer, error);
    safetensors_writer_destroy(writer);
    return status;
}

/* Fails the first, the second ... allocation until all of `body` succeeds. */
static void check_all_failures(io_status (*body)(io_error *), size_t at_least)
{
    size_t files = fixture_count("");
    for (size_t allowed = 0;; allowed++) {
        io_error error = {IO_OK, 0, ""};
        size_t before = live;
        calls_left = allowed;
        io_status status = body(&error);
        calls_left = SIZE_MAX;
        assert_int_equal(live, before);
        if (status == IO_OK) {
            assert_true(allowed >= at_least);
            print_message("%zu allocations\n", allowed);
            return;
        }
        if (status != IO_OUT_OF_MEMORY)
            fail_msg("allocation %zu: %s: %s", allowed, io_status_name(status), error.text);
        assert_int_equal(error.code, IO_OUT_OF_MEMORY);
        assert_non_null(strstr(error.text, "out of memory"));
        assert_int_equal(fixture_count(""), files);
    }
}

static void test_every_allocation(void **state)
{
    (void)state;
    static const char index[] = "{\"weight_map\":{\"w\":\"one\",\"v\":\"one\"},\"metadata\":{}}";
    size_t bytes;
    unsigned char *data = safetensors_bytes(json, 19, &bytes);
    fixture_write("one", data, bytes);
    free(data);
    fixture_write("m.json", index, sizeof index - 1);
    const int64_t three = 3;
    io_error error;
    assert_int_equal(npy_write(fixture_path("a.npy"), TENSOR_U8, 1, &three, "abc", &error), IO_OK);
    json_set_alloc_funcs(__wrap_malloc, __wrap_free);
    check_all_failures(read_model, 40);
    check_all_failures(read_npy, 3);
    check_all_failures(write_npy, 5);
    check_all_failures(write_safetensors, 15);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
