/* SPDX-License-Identifier: Apache-2.0 */
/* Files that must be refused, each with its sentence, and how little memory hostile ones get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/io_fixture.h"
#include "io/safetensors.h"

static io_status open_bytes(const void *data, size_t bytes, io_error *error)
{
    io_source source = memory_source(data, bytes);
    safetensors_file *file;
    io_status status = safetensors_open_source(&file, &source, error);
    if (status == IO_OK)
        safetensors_close(file);
    else
        assert_null(file);
    return status;
}

static io_status open_json(const char *json, size_t data_bytes, io_error *error)
{
    size_t bytes;
    unsigned char *data = safetensors_bytes(json, data_bytes, &bytes);
    io_status status = open_bytes(data, bytes, error);
    free(data);
    return status;
}

/* A tensor of the header, in the order of its keys. */
#define T(name, dtype, shape, offsets)                                                             \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define W "'file': tensor 'w': "
#define NOT_JSON "'file': the description of tensor 'w' is not valid JSON at byte "
#define DTYPES                                                                                     \
    "accepted are BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 I16 U16 F16 BF16 I32 U32 F32 F64 I64 U64"

typedef struct refused_header {
    const char *json;
    size_t data_bytes;
    io_status status;
    const char *text;
} refused_header;

static const refused_header refused[] = {
    /* JSON */
    {"[]", 0, IO_MALFORMED, "'file': the header starts with byte 0x5b; '{' is accepted"},
    {" {}", 0, IO_MALFORMED, "'file': the header starts with byte 0x20; '{' is accepted"},
    {"{ ", 0, IO_MALFORMED,
     "'file': byte 2 of the header is the end of the text; a name in double quotes is expected "
     "there"},
    {"{}x", 0, IO_MALFORMED,
     "'file': byte 2 of the header is 'x'; only white space behind the closing brace is expected "
     "there"},
    {"{} {}", 0, IO_MALFORMED,
     "'file': byte 3 of the header is '{'; only white space behind the closing brace is expected "
     "there"},
    {"{\"w\"}", 0, IO_MALFORMED, "'file': byte 4 of the header is '}'; ':' is expected there"},
    {"{\"w\":}", 0, IO_MALFORMED, W "its description is not a JSON object"},
    {"{\"w\":[]}", 0, IO_MALFORMED, W "its description is not a JSON object"},
    {"{,}", 0, IO_MALFORMED,
     "'file': byte 1 of the header is ','; a name in double quotes is expected there"},
    {"{" T("w", "U8", "[1]", "[0,1]") ",}", 1, IO_MALFORMED,
     "'file': byte 53 of the header is '}'; a name in double quotes is expected there"},
    {"{" T("w", "U8", "[1]", "[0,1]") " " T("v", "U8", "[0]", "[0,0]") "}", 1, IO_MALFORMED,
     "'file': byte 53 of the header is '\"'; ',' or '}' is expected there"},
    {"{w:1}", 0, IO_MALFORMED,
     "'file': byte 1 of the header is 'w'; a name in double quotes is expected there"},
    {"{\"w\":{\"dtype\":\"U8\",", 0, IO_MALFORMED,
     NOT_JSON "19 of the header: string or '}' expected"},
    {"{\"w\":{'dtype':1}}", 0, IO_MALFORMED, NOT_JSON "7 of the header: string or '}' expected"},
    {"{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, IO_MALFORMED,
     NOT_JSON "26 of the header: duplicate object key"},
    {"{\"a\xff\":1}", 0, IO_MALFORMED,
     "'file': a name is not valid JSON at byte 3 of the header: unable to decode byte 0xff"},
    {"{\"a\xc0\x80\":1}", 0, IO_MALFORMED,
     "'file': a name is not valid JSON at byte 3 of the header: unable to decode byte 0xc0"},
    {"{\"a\\u0000\":1}", 0, IO_MALFORMED,
     "'file': a name is not valid JSON at byte 10 of the header: \\u0000 is not allowed without "
     "JSON_ALLOW_NUL"},
    {"{\"\\ud800\":1}", 0, IO_MALFORMED,
     "'file': a name is not valid JSON at byte 9 of the header: invalid Unicode '\\uD800'"},
    {"{\"a\nb\":1}", 0, IO_MALFORMED,
     "'file': a name is not valid JSON at byte 3 of the header: unexpected newline"},
    {"{\"a\x1b[2J\":1}", 0, IO_MALFORMED,
     "'file': a name is not valid JSON at byte 3 of the header: control character 0x1b"},
    /* the description of a tensor */
    {"{\"w\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, IO_MALFORMED, W "has no dtype"},
    {"{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, IO_MALFORMED, W "has no shape"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, IO_MALFORMED, W "has no data_offsets"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"strides\":[1],\"data_offsets\":[0,1]}}", 1,
     IO_MALFORMED, W "key 'strides' is not known; dtype, shape and data_offsets are accepted"},
    {"{\"w\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, IO_MALFORMED,
     W "dtype is not a string"},
    {"{" T("w", "f32", "[1]", "[0,4]") "}", 4, IO_MALFORMED, W "dtype 'f32' is not known; " DTYPES},
    {"{" T("w", "F\\u001b8", "[1]", "[0,4]") "}", 4, IO_MALFORMED,
     W "dtype 'F\\x1b8' is not known; " DTYPES},
    {"{" T("w", "F4", "[2]", "[0,1]") "}", 1, IO_UNSUPPORTED,
     W "dtype F4 is not supported; " DTYPES},
    {"{" T("w", "F6_E2M3", "[4]", "[0,3]") "}", 3, IO_UNSUPPORTED,
     W "dtype F6_E2M3 is not supported; " DTYPES},
    {"{" T("w", "F6_E3M2", "[4]", "[0,3]") "}", 3, IO_UNSUPPORTED,
     W "dtype F6_E3M2 is not supported; " DTYPES},
    {"{" T("w", "C64", "[1]", "[0,8]") "}", 8, IO_UNSUPPORTED,
     W "dtype C64 is not supported; " DTYPES},
    {"{" T("w", "U8", "1", "[0,1]") "}", 1, IO_MALFORMED, W "shape is not an array"},
    {"{" T("w", "U8", "null", "[0,1]") "}", 1, IO_MALFORMED, W "shape is not an array"},
    {"{" T("w", "U8", "[1,1.0]", "[0,1]") "}", 1, IO_MALFORMED, W "shape[1] is not an integer"},
    {"{" T("w", "U8", "[true]", "[0,1]") "}", 1, IO_MALFORMED, W "shape[0] is not an integer"},
    {"{" T("w", "U8", "[2,-1]", "[0,1]") "}", 1, IO_MALFORMED,
     W "shape[1] is -1; 0 or more is accepted"},
    {"{" T("w", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, IO_UNSUPPORTED,
     W "9 dimensions; at most 8 are accepted"},
    {"{" T("w", "U8", "[9223372036854775808]", "[0,1]") "}", 1, IO_MALFORMED,
     NOT_JSON "47 of the header: too big integer"},
    {"{" T("w", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0, IO_TOO_LARGE,
     W "the byte size overflows at dimension 1 (4294967296); at most 2^63-1 bytes are accepted"},
    {"{" T("w", "U8", "[4294967296,0,4294967296]", "[0,0]") "}", 0, IO_TOO_LARGE,
     W "the byte size overflows at dimension 2 (4294967296); at most 2^63-1 bytes are accepted"},
    {"{" T("w", "F64", "[1152921504606846976]", "[0,0]") "}", 0, IO_TOO_LARGE,
     W "the byte size overflows at dimension 0 (1152921504606846976); at most 2^63-1 bytes are "
       "accepted"},
    /* byte ranges */
    {"{" T("w", "U8", "[1]", "{}") "}", 1, IO_MALFORMED, W "data_offsets is not an array"},
    {"{" T("w", "U8", "[1]", "[0]") "}", 1, IO_MALFORMED,
     W "data_offsets has 1 elements; [begin, end] is accepted"},
    {"{" T("w", "U8", "[1]", "[0,1,2]") "}", 1, IO_MALFORMED,
     W "data_offsets has 3 elements; [begin, end] is accepted"},
    {"{" T("w", "U8", "[1]", "[-1,0]") "}", 1, IO_MALFORMED,
     W "data_offsets[0] is -1; 0 or more is accepted"},
    {"{" T("w", "U8", "[1]", "[0,\"1\"]") "}", 1, IO_MALFORMED,
     W "data_offsets[1] is not an integer"},
    {"{" T("w", "U8", "[1]", "[1,0]") "}", 1, IO_MALFORMED,
     W "data_offsets [1, 0] do not hold the 1 bytes of shape [1] of U8"},
    {"{" T("w", "F32", "[2,3]", "[0,20]") "}", 20, IO_MALFORMED,
     W "data_offsets [0, 20] do not hold the 24 bytes of shape [2, 3] of F32"},
    {"{" T("w", "F32", "[]", "[0,8]") "}", 8, IO_MALFORMED,
     W "data_offsets [0, 8] do not hold the 4 bytes of shape [] of F32"},
    {"{" T("w", "U8", "[0]", "[9223372036854775807,9223372036854775807]") "}", 0, IO_MALFORMED,
     W "ends at byte 9223372036854775807 of the data, but the file has only 0 bytes of data (is "
       "it truncated?)"},
    {"{" T("w", "U8", "[9]", "[0,9]") "}", 8, IO_MALFORMED,
     W "ends at byte 9 of the data, but the file has only 8 bytes of data (is it truncated?)"},
    /* between tensors */
    {"{" T("w", "U8", "[1]", "[0,1]") "," T("w", "U8", "[1]", "[1,2]") "}", 2, IO_MALFORMED,
     "'file': tensor 'w' occurs twice; each name may occur once"},
    {"{" T("w", "U8", "[1]", "[0,1]") "," T("\\u0077", "U8", "[1]", "[1,2]") "}", 2, IO_MALFORMED,
     "'file': tensor 'w' occurs twice; each name may occur once"},
    {"{" T("w", "U8", "[4]", "[0,4]") "," T("v", "U8", "[4]", "[3,7]") "}", 7, IO_MALFORMED,
     "'file': tensor 'v' (from byte 3 of the data) overlaps tensor 'w' (up to byte 4)"},
    {"{" T("w", "U8", "[4]", "[0,4]") "," T("v", "U8", "[4]", "[0,4]") "}", 4, IO_MALFORMED,
     NULL}, /* either order */
    {"{" T("w", "U8", "[4]", "[0,4]") "," T("v", "U8", "[0]", "[2,2]") "}", 4, IO_MALFORMED,
     "'file': tensor 'v' (from byte 2 of the data) overlaps tensor 'w' (up to byte 4)"},
    {"{" T("w", "U8", "[4]", "[0,4]") "," T("v", "U8", "[4]", "[5,9]") "}", 9, IO_MALFORMED,
     "'file': tensor 'v' starts at byte 5 of the data but the tensors before it end at 4; gaps are "
     "not accepted"},
    {"{" T("w", "U8", "[4]", "[1,5]") "}", 5, IO_MALFORMED,
     "'file': tensor 'w' starts at byte 1 of the data but the tensors before it end at 0; gaps are "
     "not accepted"},
    {"{" T("w", "U8", "[4]", "[0,4]") "}", 5, IO_MALFORMED,
     "'file': the tensors end at byte 4 of the data, which has 5 bytes; every byte must belong to "
     "a tensor"},
    {"{}", 1, IO_MALFORMED,
     "'file': the tensors end at byte 0 of the data, which has 1 bytes; every byte must belong to "
     "a tensor"},
    /* metadata */
    {"{\"__metadata__\":[]}", 0, IO_MALFORMED,
     "'file': byte 16 of the header is '['; the '{' of __metadata__ is expected there"},
    {"{\"__metadata__\":null}", 0, IO_MALFORMED,
     "'file': byte 16 of the header is 'n'; the '{' of __metadata__ is expected there"},
    {"{\"__metadata__\":{\"a\":1}}", 0, IO_MALFORMED,
     "'file': the value of 'a' in __metadata__ is not a string"},
    {"{\"__metadata__\":{\"a\":{}}}", 0, IO_MALFORMED,
     "'file': the value of 'a' in __metadata__ is not a string"},
    {"{\"__metadata__\":{\"a\":\"1\",\"b\":\"\",\"\\u0061\":\"1\"}}", 0, IO_MALFORMED,
     "'file': __metadata__ has the key 'a' twice; each may occur once"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, IO_MALFORMED,
     "'file': __metadata__ occurs twice"},
    {"{\"__metadata__\":{\"a\":\"\xed\xa0\x80\"}}", 0, IO_MALFORMED,
     "'file': __metadata__ is not valid JSON at byte 22 of the header: unable to decode byte "
     "0xed"},
};

static void test_refused_headers(void **state)
{
    (void)state;
    size_t right = 0;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        io_error error = {IO_OK, 0, "accepted"};
        io_status status = open_json(refused[i].json, refused[i].data_bytes, &error);
        bool ok = status == refused[i].status && error.code == status &&
                  (refused[i].text == NULL || strcmp(error.text, refused[i].text) == 0);
        if (!ok)
            print_message("%s\n  gives %s: %s\n  wanted: %s\n", refused[i].json,
                          io_status_name(status), error.text, refused[i].text);
        right += ok;
    }
    assert_int_equal(right, sizeof refused / sizeof refused[0]);
}

/* ---- the length field ----------------------------------------------------------------------- */

static void check_prefix(uint64_t length, size_t bytes, io_status want, const char *text)
{
    unsigned char *data = calloc(bytes > 8 ? bytes : 8, 1);
    assert_non_null(data);
    for (int i = 0; i < 8; i++)
        data[i] = (unsigned char)(length >> (8 * i));
    io_error error;
    check_error(open_bytes(data, bytes, &error), &error, want, text);
    free(data);
}

static void test_header_length(void **state)
{
    (void)state;
    check_prefix(0, 0, IO_MALFORMED, "'file': has 0 bytes; a safetensors file has at least 10");
    check_prefix(2, 9, IO_MALFORMED, "'file': has 9 bytes; a safetensors file has at least 10");
    check_prefix(0, 10, IO_MALFORMED, "'file': header length is 0; 2 or more is accepted");
    check_prefix(1, 10, IO_MALFORMED, "'file': header length is 1; 2 or more is accepted");
    check_prefix(3, 10, IO_MALFORMED,
                 "'file': header length is 3 but only 2 bytes follow (truncated, or not a "
                 "safetensors file)");
    check_prefix(UINT64_MAX, 100, IO_MALFORMED,
                 "'file': header length is 18446744073709551615 but only 92 bytes follow "
                 "(truncated, or not a safetensors file)");
    check_prefix(100000001, 100000009, IO_TOO_LARGE,
                 "'file': header length is 100000001; at most 100000000 is accepted");
    check_prefix(100000000, 100000008, IO_MALFORMED,
                 "'file': the header starts with byte 0x00; '{' is accepted");
}

static void test_lfs_pointer(void **state)
{
    (void)state;
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
    io_error error;
    check_error(open_bytes(pointer, sizeof pointer - 1, &error), &error, IO_MALFORMED,
                "'file': is a Git LFS pointer, not the file that it stands for");
}

/* Every proper prefix of a good file is refused, and every one-byte extension. */
static void test_every_truncation(void **state)
{
    (void)state;
    static const char json[] = "{\"__metadata__\":{\"a\":\"b\"}," T(
        "w", "F32", "[2,2]", "[0,16]") "," T("v", "U8", "[3]", "[16,19]") "}  ";
    size_t bytes;
    unsigned char *data = safetensors_bytes(json, 20, &bytes);
    io_error error;
    assert_int_equal(open_bytes(data, bytes - 1, &error), IO_OK);
    assert_int_equal(open_bytes(data, bytes, &error), IO_MALFORMED);
    size_t refused_count = 0;
    for (size_t length = 0; length < bytes - 1; length++)
        refused_count += open_bytes(data, length, &error) == IO_MALFORMED;
    assert_int_equal(refused_count, bytes - 1);
    /* The same with a header length that fits: the JSON is cut instead. */
    refused_count = 0;
    for (size_t length = 2; length < strlen(json) - 2; length++) {
        data[0] = (unsigned char)length;
        refused_count += open_bytes(data, 8 + length, &error) == IO_MALFORMED;
    }
    assert_int_equal(refused_count, strlen(json) - 4);
    free(data);
}

/* ---- hostile headers ------------------------------------------------------------------------ */

/* What the JSON library holds at once. */
static size_t json_now;
static size_t json_peak;

static void *counting_malloc(size_t bytes)
{
    size_t *block = malloc(bytes + 16);
    if (block == NULL)
        return NULL;
    block[0] = bytes;
    json_now += bytes;
    json_peak = json_now > json_peak ? json_now : json_peak;
    return (char *)block + 16;
}

static void counting_free(void *pointer)
{
    if (pointer == NULL)
        return;
    size_t *block = (size_t *)(void *)((char *)pointer - 16);
    json_now -= block[0];
    free(block);
}

/* `head`, `part` over and over, up to a header of `bytes` bytes. */
static void check_bomb(const char *head, const char *part, size_t bytes, size_t peak_bytes,
                       io_status want, const char *text)
{
    unsigned char *data = malloc(8 + bytes);
    assert_non_null(data);
    for (int i = 0; i < 8; i++)
        data[i] = (unsigned char)((uint64_t)bytes >> (8 * i));
    size_t at = strlen(head);
    memcpy(data + 8, head, at);
    for (size_t i = 0; at < bytes; i++, at++)
        data[8 + at] = (unsigned char)part[i % strlen(part)];
    size_t before = json_peak = json_now;
    io_error error;
    io_status status = open_bytes(data, 8 + bytes, &error);
    free(data);
    check_error(status, &error, want, text);
    if (json_peak - before > peak_bytes)
        fail_msg("%s: the JSON library took %zu bytes", head, json_peak - before);
    assert_int_equal(json_now, before);
}

#define BOMB_BYTES 20000000u
#define MB ((size_t)1000000)
#define ENTRY_LIMIT                                                                                \
    "'file': the description of tensor 'w' takes more than 65536 bytes of JSON in the header, "    \
    "the most that is accepted"

static void test_bombs(void **state)
{
    (void)state;
    json_set_alloc_funcs(counting_malloc, counting_free);
    check_bomb("{\"w\":", "[", BOMB_BYTES, 1 * MB, IO_MALFORMED,
               W "its description is not a JSON object");
    check_bomb("{\"w\":{\"a\":", "[", BOMB_BYTES, 1 * MB, IO_MALFORMED,
               NOT_JSON "2058 of the header: maximum parsing depth reached");
    check_bomb("{\"w\":{\"a\":", "{\"a\":", BOMB_BYTES, 2 * MB, IO_MALFORMED,
               NOT_JSON "10246 of the header: maximum parsing depth reached");
    check_bomb("{\"w\":{\"shape\":[0", ",0", BOMB_BYTES, 3 * MB, IO_TOO_LARGE, ENTRY_LIMIT);
    check_bomb("{\"w\":{\"shape\":[\"\"", ",\"\"", BOMB_BYTES, 3 * MB, IO_TOO_LARGE, ENTRY_LIMIT);
    check_bomb("{\"w\":{\"shape\":[{}", ",{}", BOMB_BYTES, 6 * MB, IO_TOO_LARGE, ENTRY_LIMIT);
    check_bomb("{\"w\":{\"a", "a", BOMB_BYTES, 1 * MB, IO_TOO_LARGE, ENTRY_LIMIT);
    check_bomb("{\"w\":{\"a", "\xe2\x82\xac", BOMB_BYTES, 1 * MB, IO_TOO_LARGE, ENTRY_LIMIT);
    check_bomb("{\"w\":{", " ", BOMB_BYTES, 1 * MB, IO_TOO_LARGE, ENTRY_LIMIT);
    check_bomb("{\"", "a", BOMB_BYTES, 1 * MB, IO_TOO_LARGE,
               "'file': a name takes more than 24578 bytes of JSON in the header, the most that is "
               "accepted");
    check_bomb("{", " ", BOMB_BYTES, 1 * MB, IO_MALFORMED,
               "'file': byte 20000000 of the header is the end of the text; a name in double "
               "quotes is expected there");
    check_bomb("{\"__metadata__\":{\"\":\"\"", ",\"\":\"\"", BOMB_BYTES, 1 * MB, IO_TOO_LARGE,
               "'file': __metadata__ has more than 65536 keys, the most that is accepted");
    check_bomb("{\"__metadata__\":{\"a\":\"", "a", BOMB_BYTES, 60 * MB, IO_TOO_LARGE,
               "'file': __metadata__ takes more than 16777216 bytes of JSON in the header, the "
               "most that is accepted");
    check_bomb("{\"__metadata__\":{\"", "a", BOMB_BYTES, 60 * MB, IO_TOO_LARGE,
               "'file': a name takes more than 16777216 bytes of JSON in the header, the most that "
               "is accepted");
    check_bomb("{\"__metadata__\":{", " ", BOMB_BYTES, 1 * MB, IO_MALFORMED,
               "'file': byte 20000000 of the header is the end of the text; a name in double "
               "quotes is expected there");
    check_bomb("{" T("v", "U8", "[0]", "[0,0]"), "," T("v", "U8", "[0]", "[0,0]"), BOMB_BYTES,
               1 * MB, IO_TOO_LARGE,
               "'file': tensor 'v': is one too many; at most 262144 are accepted");
    json_set_alloc_funcs(malloc, free);
}

static void test_longest_name(void **state)
{
    (void)state;
    char json[6 * 4097 + 100];
    io_error error;
    for (int longer = 0; longer < 2; longer++) {
        /* Each character of the name as an escape of six bytes. */
        char *at = json + sprintf(json, "{\"");
        for (int i = 0; i < 4096; i++)
            at += sprintf(at, "\\u0061");
        sprintf(at, "%s\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                longer ? "b" : "");
        io_status status = open_json(json, 0, &error);
        assert_int_equal(status, longer ? IO_TOO_LARGE : IO_OK);
    }
    char *at = json + sprintf(json, "{\"");
    memset(at, 'n', 4097);
    strcpy(at + 4097, "\":{}}");
    assert_int_equal(open_json(json, 0, &error), IO_TOO_LARGE);
    assert_non_null(strstr(error.text, "the name has 4097 bytes; at most 4096 are accepted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_headers), cmocka_unit_test(test_header_length),
        cmocka_unit_test(test_lfs_pointer),     cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_bombs),           cmocka_unit_test(test_longest_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
