/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io_fixture.h"

static char folder[512];

int fixture_setup(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/halfbyte io XXXXXX",
             base != NULL && base[0] != '\0' && strlen(base) < 256 ? base : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

void fixture_clear(void)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) != 0)
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

int fixture_teardown(void **state)
{
    (void)state;
    fixture_clear();
    return rmdir(folder);
}

const char *fixture_path(const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];
    int length = snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    assert_true(length > 0 && (size_t)length < sizeof paths[0]);
    return path;
}

void fixture_write(const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(fixture_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

unsigned char *fixture_read(const char *name, size_t *bytes)
{
    FILE *file = fopen(fixture_path(name), "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size >= 0);
    rewind(file);
    unsigned char *data = malloc((size_t)size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, file), size);
    fclose(file);
    *bytes = (size_t)size;
    return data;
}

bool fixture_exists(const char *name)
{
    struct stat status;
    return lstat(fixture_path(name), &status) == 0;
}

size_t fixture_count(const char *part)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    size_t count = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strstr(entry->d_name, part) != NULL)
            count++;
    closedir(dir);
    return count;
}

unsigned char *safetensors_bytes(const char *json, size_t data_bytes, size_t *bytes)
{
    size_t length = strlen(json);
    *bytes = 8 + length + data_bytes;
    unsigned char *file = malloc(*bytes);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(file + 8, json, length);
    for (size_t i = 0; i < data_bytes; i++)
        file[8 + length + i] = PATTERN_BYTE(i);
    return file;
}

io_source memory_source(const void *data, size_t bytes)
{
    io_source source;
    io_error error;
    assert_int_equal(io_source_open_memory(&source, data, bytes, "file", &error), IO_OK);
    return source;
}

void check_error(io_status status, const io_error *error, io_status want, const char *text)
{
    if (status != want)
        fail_msg("status is '%s', not '%s'; text: %s", io_status_name(status), io_status_name(want),
                 status != IO_OK ? error->text : "");
    assert_int_equal(error->code, want);
    assert_string_equal(error->text, text);
}

unsigned long fixture_number(const char *variable, unsigned long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && text[0] != '\0' ? strtoul(text, NULL, 10) : otherwise;
}
