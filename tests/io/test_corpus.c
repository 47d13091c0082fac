/* SPDX-License-Identifier: Apache-2.0 */
/* The starting inputs of the fuzzers say in their names whether they are good: they must be. */
#define _XOPEN_SOURCE 700

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "io/npy.h"
#include "io/safetensors.h"
#include "io/safetensors_index.h"

static io_status open_safetensors(io_source *source, io_error *error)
{
    safetensors_file *file;
    io_status status = safetensors_open_source(&file, source, error);
    safetensors_close(file);
    return status;
}

static io_status open_npy(io_source *source, io_error *error)
{
    npy_file *file;
    io_status status = npy_open_source(&file, source, error);
    npy_close(file);
    return status;
}

static io_status open_index(io_source *source, io_error *error)
{
    safetensors_index index = {0};
    io_status status = safetensors_index_read(&index, source, error);
    safetensors_index_free(&index);
    io_source_close(source);
    return status;
}

static void check_folder(const char *name, io_status (*open_file)(io_source *, io_error *))
{
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", HALFBYTE_SOURCE_DIR, name);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    size_t good = 0, bad = 0, wrong = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        bool want_good = strncmp(entry->d_name, "good_", 5) == 0;
        if (!want_good && strncmp(entry->d_name, "bad_", 4) != 0)
            continue;
        char path[2048];
        io_source source;
        io_error error = {IO_OK, 0, "accepted"};
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_int_equal(io_source_open_file(&source, path, &error), IO_OK);
        bool accepted = open_file(&source, &error) == IO_OK;
        if (accepted != want_good) {
            print_message("%s: %s\n", entry->d_name, error.text);
            wrong++;
        }
        good += want_good;
        bad += !want_good;
    }
    closedir(dir);
    assert_int_equal(wrong, 0);
    assert_true(good >= 3 && bad >= 10);
}

static void test_safetensors(void **state)
{
    (void)state;
    check_folder("safetensors", open_safetensors);
}

static void test_index(void **state)
{
    (void)state;
    check_folder("safetensors_index", open_index);
}

static void test_npy(void **state)
{
    (void)state;
    check_folder("npy", open_npy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_npy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
