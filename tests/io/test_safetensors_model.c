/* SPDX-License-Identifier: Apache-2.0 */
/* Models over several files: indexes, directories, and what is wrong with them. */
#define _XOPEN_SOURCE 700

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/io_fixture.h"
#include "io/safetensors.h"

#define T(name, begin, end, count)                                                                 \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" count "],\"data_offsets\":[" begin "," end "]}"

static void write_safetensors(const char *name, const char *json, size_t data_bytes)
{
    size_t bytes;
    unsigned char *data = safetensors_bytes(json, data_bytes, &bytes);
    fixture_write(name, data, bytes);
    free(data);
}

static void write_text(const char *name, const char *text)
{
    fixture_write(name, text, strlen(text));
}

/* one.safetensors: a (bytes 0..3), b (3..5); two.safetensors: c (0..1), extra (1..3). */
static void write_shards(void)
{
    static const char one[] = "{" T("a", "0", "3", "3") "," T("b", "3", "5", "2") "}";
    static const char two[] = "{" T("c", "0", "1", "1") "," T("extra", "1", "3", "2") "}";
    write_safetensors("one.safetensors", one, 5);
    write_safetensors("two.safetensors", two, 3);
}

static const char good_index[] = "{\"metadata\":{\"total_size\":6,\"x\":[1.5,null]},"
                                 "\"weight_map\":{\"c\":\"two.safetensors\","
                                 "\"b\":\"one.safetensors\",\"a\":\"one.safetensors\"},"
                                 "\"other\":true}";

static safetensors_model *open_model(const char *path)
{
    safetensors_model *model;
    io_error error;
    if (safetensors_model_open(&model, path, &error) != IO_OK)
        fail_msg("%s", error.text);
    return model;
}

static void check_tensor(const safetensors_model *model, const char *name, size_t shard,
                         size_t begin, size_t bytes)
{
    const safetensors_tensor *tensor = safetensors_model_find(model, name);
    assert_non_null(tensor);
    assert_string_equal(tensor->name, name);
    assert_int_equal(tensor->shard, shard);
    assert_int_equal(tensor->spec.bytes, bytes);
    unsigned char got[16];
    io_error error;
    assert_int_equal(safetensors_model_read(model, tensor, 0, got, bytes, &error), IO_OK);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(got[i], PATTERN_BYTE(begin + i));
    assert_int_equal(safetensors_model_read(model, tensor, 1, got, bytes, &error), IO_ARGUMENT);
}

static void check_sharded(const safetensors_model *model)
{
    static const char *const names[] = {"c", "b", "a"};
    assert_int_equal(safetensors_model_count(model), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(safetensors_model_at(model, i)->name, names[i]);
    assert_null(safetensors_model_at(model, 3));
    check_tensor(model, "c", 0, 0, 1);
    check_tensor(model, "b", 1, 3, 2);
    check_tensor(model, "a", 1, 0, 3);
    assert_null(safetensors_model_find(model, "extra"));
    assert_int_equal(safetensors_model_unlisted_count(model), 1);
    assert_int_equal(safetensors_model_shard_count(model), 2);
    assert_non_null(safetensors_find(safetensors_model_shard(model, 0), "extra"));
    const char *path = safetensors_path(safetensors_model_shard(model, 1));
    assert_string_equal(path + strlen(path) - strlen("one.safetensors"), "one.safetensors");
}

static void test_sharded(void **state)
{
    (void)state;
    fixture_clear();
    write_shards();
    write_text("model.safetensors.index.json", good_index);
    safetensors_model *model = open_model(fixture_path("model.safetensors.index.json"));
    check_sharded(model);
    io_error error;
    assert_int_equal(safetensors_model_read(model, NULL, 0, NULL, 0, &error), IO_ARGUMENT);
    safetensors_tensor foreign = *safetensors_model_at(model, 0);
    foreign.shard = 2;
    assert_int_equal(safetensors_model_read(model, &foreign, 0, NULL, 0, &error), IO_ARGUMENT);
    safetensors_model_close(model);
    model = open_model(fixture_path(""));
    check_sharded(model);
    safetensors_model_close(model);

    /* Relative to the current folder, without a slash. */
    char here[1024];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(fixture_path("")), 0);
    model = open_model("model.safetensors.index.json");
    check_sharded(model);
    safetensors_model_close(model);
    assert_int_equal(chdir(here), 0);
}

static void test_single_file(void **state)
{
    (void)state;
    fixture_clear();
    write_shards();
    write_text("model.safetensors.index.json", good_index);
    safetensors_model *model = open_model(fixture_path("one.safetensors"));
    assert_int_equal(safetensors_model_count(model), 2);
    assert_int_equal(safetensors_model_unlisted_count(model), 0);
    check_tensor(model, "a", 0, 0, 3);
    check_tensor(model, "b", 0, 3, 2);
    safetensors_model_close(model);
    /* In a directory the whole file comes before the index. */
    write_safetensors("model.safetensors", "{" T("whole", "0", "1", "1") "}", 1);
    model = open_model(fixture_path(""));
    assert_int_equal(safetensors_model_count(model), 1);
    check_tensor(model, "whole", 0, 0, 1);
    safetensors_model_close(model);
    safetensors_model_close(NULL);
}

typedef struct refused_index {
    const char *text;
    io_status status;
    const char *tail;
} refused_index;

static const refused_index refused[] = {
    {"", IO_MALFORMED, "byte 0 of the index is the end of the text; '{' is expected there"},
    {"[]", IO_MALFORMED, "byte 0 of the index is '['; '{' is expected there"},
    {"{}", IO_MALFORMED, "has no weight_map"},
    {"{\"metadata\":{}}", IO_MALFORMED, "has no weight_map"},
    {"{\"weight_map\":[]}", IO_MALFORMED,
     "byte 14 of the index is '['; the '{' of weight_map is expected there"},
    {"{\"weight_map\":{},\"weight_map\":{}}", IO_MALFORMED, "weight_map occurs twice"},
    {"{\"weight_map\":{}}x", IO_MALFORMED,
     "byte 17 of the index is 'x'; only white space behind the closing brace is expected there"},
    {"{\"weight_map\":{\"a\":1}}", IO_MALFORMED,
     "weight_map, tensor 'a': the file name is not a string"},
    {"{\"weight_map\":{\"a\":\"../one.safetensors\"}}", IO_MALFORMED,
     "weight_map names the file '../one.safetensors'; a name without '/' is accepted"},
    {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", IO_MALFORMED,
     "weight_map names the file '/etc/passwd'; a name without '/' is accepted"},
    {"{\"weight_map\":{\"a\":\"\"}}", IO_MALFORMED,
     "weight_map names the file ''; a name without '/' is accepted"},
    {"{\"weight_map\":{\"a\":\"..\"}}", IO_MALFORMED,
     "weight_map names the file '..'; a name without '/' is accepted"},
    {"{\"weight_map\":{\"c\":\"one.safetensors\"}}", IO_MALFORMED,
     "weight_map says that tensor 'c' is in 'one.safetensors', which does not hold it"},
    {"{\"weight_map\":{\"a\":\"one.safetensors\",\"\\u0061\":\"one.safetensors\"}}", IO_MALFORMED,
     "weight_map has tensor 'a' twice; each name may occur once"},
    {"{\"metadata\":[1,]}", IO_MALFORMED,
     "'metadata' is not valid JSON at byte 16 of the index: unexpected token"},
};

static void test_refused_indexes(void **state)
{
    (void)state;
    fixture_clear();
    write_shards();
    const char *path = fixture_path("m.json");
    size_t compared = 0;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        write_text("m.json", refused[i].text);
        safetensors_model *model;
        io_error error;
        char text[512];
        snprintf(text, sizeof text, "%s: %s", io_quote_path(path).text, refused[i].tail);
        check_error(safetensors_model_open(&model, path, &error), &error, refused[i].status, text);
        assert_null(model);
        compared++;
    }
    assert_int_equal(compared, sizeof refused / sizeof refused[0]);
}

static void check_refused(const char *name, io_status want, const char *part)
{
    safetensors_model *model;
    io_error error;
    assert_int_equal(safetensors_model_open(&model, fixture_path(name), &error), want);
    assert_null(model);
    if (strstr(error.text, part) == NULL)
        fail_msg("'%s' is not in: %s", part, error.text);
}

static void test_missing_files(void **state)
{
    (void)state;
    fixture_clear();
    check_refused("", IO_NOT_FOUND,
                  "the directory holds neither model.safetensors nor model.safetensors.index.json");
    check_refused("m.json", IO_NOT_FOUND, "m.json': cannot be opened for reading: No such file");
    check_refused("m.safetensors", IO_NOT_FOUND, "cannot be opened for reading: No such file");
    write_text("model.safetensors.index.json", good_index);
    check_refused("", IO_NOT_FOUND, "two.safetensors': cannot be opened for reading: No such file");
    write_shards();
    write_text("one.safetensors", "broken");
    check_refused("", IO_MALFORMED, "one.safetensors': has 6 bytes; a safetensors file has");
}

/* As many names as an index can have in 40 MB: refused at the limit, quickly. */
static void test_large_indexes(void **state)
{
    (void)state;
    fixture_clear();
    const size_t bytes = 40000000;
    char *text = malloc(bytes + 64);
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, "{\"weight_map\":{\"0\":\"a\"");
    for (unsigned i = 1; at < bytes; i++)
        at += (size_t)sprintf(text + at, ",\"%x\":\"a\"", i);
    fixture_write("m.json", text, at);
    check_refused("m.json", IO_TOO_LARGE,
                  "at most 1048576 tensors with names of at most 4096 bytes are accepted");
    at = (size_t)sprintf(text, "{\"weight_map\":{\"0\":\"0\"");
    for (unsigned i = 1; i < 5000; i++)
        at += (size_t)sprintf(text + at, ",\"%x\":\"%x\"", i, i);
    fixture_write("m.json", text, at);
    check_refused("m.json", IO_TOO_LARGE,
                  "weight_map names more than 4096 files, the most that is accepted");
    at = (size_t)sprintf(text, "{\"metadata\":[");
    memset(text + at, ' ', 70000);
    fixture_write("m.json", text, at + 70000);
    check_refused("m.json", IO_TOO_LARGE, "'metadata' takes more than 65536 bytes of JSON");
    free(text);
    FILE *file = fopen(fixture_path("m.json"), "wb");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), 100000001), 0);
    fclose(file);
    check_refused("m.json", IO_TOO_LARGE,
                  "has 100000001 bytes; at most 100000000 are accepted of an index");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sharded),         cmocka_unit_test(test_single_file),
        cmocka_unit_test(test_refused_indexes), cmocka_unit_test(test_missing_files),
        cmocka_unit_test(test_large_indexes),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
