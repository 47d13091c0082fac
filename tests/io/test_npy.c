/* SPDX-License-Identifier: Apache-2.0 */
/* .npy: good files of all versions and types, refused ones with their sentences. */
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

/* A file of the given version with `dict` as its whole header and the pattern as data. */
static unsigned char *npy_bytes(int version, const char *dict, size_t data_bytes, size_t *bytes)
{
    size_t prefix = version == 1 ? 10 : 12;
    size_t length = strlen(dict);
    *bytes = prefix + length + data_bytes;
    unsigned char *file = malloc(*bytes);
    assert_non_null(file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        file[i] = (unsigned char)(length >> (8 * (i - 8)));
    memcpy(file + prefix, dict, length);
    for (size_t i = 0; i < data_bytes; i++)
        file[prefix + length + i] = PATTERN_BYTE(i);
    return file;
}

static io_status open_bytes(npy_file **file, const void *data, size_t bytes, io_error *error)
{
    io_source source = memory_source(data, bytes);
    io_status status = npy_open_source(file, &source, error);
    if (status != IO_OK)
        assert_null(*file);
    return status;
}

/* Accepted; the data are the pattern. Returns the spec. */
static tensor_spec check_good(int version, const char *dict, size_t data_bytes)
{
    size_t bytes;
    unsigned char *data = npy_bytes(version, dict, data_bytes, &bytes);
    npy_file *file;
    io_error error;
    if (open_bytes(&file, data, bytes, &error) != IO_OK)
        fail_msg("%s: %s", dict, error.text);
    tensor_spec spec = *npy_spec(file);
    assert_int_equal(spec.bytes, data_bytes);
    unsigned char *got = malloc(data_bytes + 1);
    assert_int_equal(npy_read(file, 0, got, data_bytes, &error), IO_OK);
    for (size_t i = 0; i < data_bytes; i++)
        assert_int_equal(got[i], PATTERN_BYTE(i));
    if (data_bytes > 4) {
        assert_int_equal(npy_read(file, 3, got, data_bytes - 3, &error), IO_OK);
        assert_int_equal(got[0], 3);
    }
    check_error(npy_read(file, data_bytes, got, 1, &error), &error, IO_ARGUMENT, error.text);
    assert_int_equal(npy_read(file, UINT64_MAX, got, 0, &error), IO_ARGUMENT);
    npy_close(file);
    free(got);
    free(data);
    return spec;
}

static void test_types_and_versions(void **state)
{
    (void)state;
    size_t types = 0;
    for (int i = 0; i < TENSOR_DTYPE_COUNT; i++) {
        const char *descr = tensor_dtype_npy_descr((tensor_dtype)i);
        if (descr == NULL)
            continue;
        for (int version = 1; version <= 3; version++) {
            char dict[128];
            snprintf(dict, sizeof dict,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }    \n", descr);
            tensor_spec spec = check_good(version, dict, 6 * tensor_dtype_bytes((tensor_dtype)i));
            assert_int_equal(spec.dtype, i);
            assert_int_equal(spec.rank, 2);
            assert_int_equal(spec.shape[0], 2);
            assert_int_equal(spec.shape[1], 3);
        }
        types++;
    }
    assert_int_equal(types, 12);
}

static void test_other_spellings(void **state)
{
    (void)state;
    assert_int_equal(
        check_good(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}\n", 4).rank, 0);
    assert_int_equal(
        check_good(1, "{'descr': '<f4', 'fortran_order': True, 'shape': ()}\n", 4).rank, 0);
    assert_int_equal(check_good(1, "{'shape':(5,),'fortran_order':True,'descr':'<u1'}\n", 5).dtype,
                     TENSOR_U8);
    assert_int_equal(check_good(1,
                                " { \"descr\" : \"<i8\" ,\t\"fortran_order\" : False , \"shape\" : "
                                "( 1 , 2 , ) , } \n\n",
                                16)
                         .rank,
                     2);
    assert_int_equal(
        check_good(2, "{'descr':'|b1','fortran_order':False,'shape':(0,7)}\n", 0).elems, 0);
    assert_int_equal(
        check_good(1, "{'descr':'|i1','fortran_order':False,'shape':(1,2,1,2,1,1,1,1)}\n", 4).rank,
        8);
    assert_int_equal(
        check_good(1, "{'descr':'|i1','fortran_order':False,'shape':(9223372036854775807,0)}\n", 0)
            .elems,
        0);
}

typedef struct refused_dict {
    const char *dict;
    size_t data_bytes;
    io_status status;
    const char *tail;
} refused_dict;

#define DICT(descr, order, shape)                                                                  \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"
#define ACCEPTED "accepted are |b1 |i1 |u1 <i2 <u2 <f2 <i4 <u4 <f4 <i8 <u8 <f8"

static const refused_dict refused[] = {
    /* syntax */
    {"", 0, IO_MALFORMED, "byte 0 of the header is the end; '{' is expected there"},
    {"\n", 0, IO_MALFORMED, "byte 1 of the header is the end; '{' is expected there"},
    {"()\n", 0, IO_MALFORMED, "byte 0 of the header is '('; '{' is expected there"},
    {"{\n", 0, IO_MALFORMED,
     "byte 2 of the header is the end; a key in quotes or '}' is expected there"},
    {"{}\n", 0, IO_MALFORMED, "the header has no descr"},
    {"{descr: 1}\n", 0, IO_MALFORMED,
     "byte 1 of the header is 'd'; a key in quotes or '}' is expected there"},
    {"{'descr' '<f4'}\n", 0, IO_MALFORMED,
     "byte 9 of the header is '\\x27'; ':' is expected there"},
    {"{'descr: 1}\n", 0, IO_MALFORMED,
     "byte 11 of the header is '\\x0a'; a plain character of a string is expected there"},
    {"{'descr', 1}\n", 0, IO_MALFORMED, "byte 8 of the header is ','; ':' is expected there"},
    {"{'a\\x62': 1}\n", 0, IO_MALFORMED,
     "byte 3 of the header is '\\x5c'; a plain character of a string is expected there"},
    {"{'d\xe9': 1}\n", 0, IO_MALFORMED,
     "byte 3 of the header is '\\xe9'; a plain character of a string is expected there"},
    {"{'descr': '<f4' 'shape': ()}\n", 0, IO_MALFORMED,
     "byte 16 of the header is '\\x27'; ',' or '}' is expected there"},
    {"{,}\n", 0, IO_MALFORMED,
     "byte 1 of the header is ','; a key in quotes or '}' is expected there"},
    {"{'descr': '<f4'}\n", 0, IO_MALFORMED, "the header has no fortran_order"},
    {"{'descr': '<f4', 'fortran_order': False}\n", 0, IO_MALFORMED, "the header has no shape"},
    {"{'descr': '<f4', 'descr': '<f4'}\n", 0, IO_MALFORMED,
     "the header has the key 'descr' twice; descr, fortran_order and shape are accepted, each "
     "once"},
    {"{'strides': (1,)}\n", 0, IO_MALFORMED,
     "the header has the key 'strides'; descr, fortran_order and shape are accepted, each once"},
    {"{'': (1,)}\n", 0, IO_MALFORMED,
     "the header has the key ''; descr, fortran_order and shape are accepted, each once"},
    {DICT("'|u1'", "False", "(1,)") "x\n", 1, IO_MALFORMED,
     "byte 58 of the header is 'x'; only white space behind the dict is expected there"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} ", 1, IO_MALFORMED,
     "the header does not end with a newline, as it must"},
    /* descr */
    {DICT("[('a', '<f4')]", "False", "(1,)"), 4, IO_UNSUPPORTED,
     "descr is a structured type; " ACCEPTED},
    {DICT("4", "False", "(1,)"), 4, IO_MALFORMED,
     "byte 10 of the header is '4'; the string of descr is expected there"},
    {DICT("'>f4'", "False", "(1,)"), 4, IO_UNSUPPORTED, "descr '>f4' is big-endian; " ACCEPTED},
    {DICT("'>u1'", "False", "(1,)"), 1, IO_UNSUPPORTED, "descr '>u1' is big-endian; " ACCEPTED},
    {DICT("'|O'", "False", "(1,)"), 8, IO_UNSUPPORTED, "descr '|O' is an object type; " ACCEPTED},
    {DICT("'O'", "False", "(1,)"), 8, IO_UNSUPPORTED, "descr 'O' is an object type; " ACCEPTED},
    {DICT("'|S8'", "False", "(1,)"), 8, IO_UNSUPPORTED, "descr '|S8' is a text type; " ACCEPTED},
    {DICT("'<U2'", "False", "(1,)"), 8, IO_UNSUPPORTED, "descr '<U2' is a text type; " ACCEPTED},
    {DICT("'|V2'", "False", "(1,)"), 2, IO_UNSUPPORTED,
     "descr '|V2' is a raw or structured type; " ACCEPTED},
    {DICT("'<V1'", "False", "(1,)"), 1, IO_UNSUPPORTED,
     "descr '<V1' is a raw or structured type; " ACCEPTED},
    {DICT("'<c8'", "False", "(1,)"), 8, IO_UNSUPPORTED, "descr '<c8' is a complex type; " ACCEPTED},
    {DICT("'<M8[ns]'", "False", "(1,)"), 8, IO_UNSUPPORTED,
     "descr '<M8[ns]' is a time type; " ACCEPTED},
    {DICT("'f4'", "False", "(1,)"), 4, IO_MALFORMED, "descr 'f4' is not known; " ACCEPTED},
    {DICT("'=f4'", "False", "(1,)"), 4, IO_MALFORMED, "descr '=f4' is not known; " ACCEPTED},
    {DICT("'|f4'", "False", "(1,)"), 4, IO_MALFORMED, "descr '|f4' is not known; " ACCEPTED},
    {DICT("'<f3'", "False", "(1,)"), 3, IO_MALFORMED, "descr '<f3' is not known; " ACCEPTED},
    {DICT("'<f16'", "False", "(1,)"), 16, IO_MALFORMED, "descr '<f16' is not known; " ACCEPTED},
    {DICT("'<F4'", "False", "(1,)"), 4, IO_MALFORMED, "descr '<F4' is not known; " ACCEPTED},
    {DICT("''", "False", "(1,)"), 4, IO_MALFORMED, "descr '' is not known; " ACCEPTED},
    {DICT("'<'", "False", "(1,)"), 4, IO_MALFORMED, "descr '<' is not known; " ACCEPTED},
    /* fortran_order */
    {DICT("'|u1'", "True", "(2, 2)"), 4, IO_UNSUPPORTED,
     "is in Fortran order with 2 dimensions; C order is accepted"},
    {DICT("'|u1'", "false", "(2, 2)"), 4, IO_MALFORMED,
     "byte 34 of the header is 'f'; True or False is expected there"},
    {DICT("'|u1'", "0", "(2, 2)"), 4, IO_MALFORMED,
     "byte 34 of the header is '0'; True or False is expected there"},
    {DICT("'|u1'", "Falsey", "(2, 2)"), 4, IO_MALFORMED,
     "byte 39 of the header is 'y'; ',' or '}' is expected there"},
    /* shape */
    {DICT("'|u1'", "False", "[1]"), 1, IO_MALFORMED,
     "byte 50 of the header is '['; the '(' of shape is expected there"},
    {DICT("'|u1'", "False", "1"), 1, IO_MALFORMED,
     "byte 50 of the header is '1'; the '(' of shape is expected there"},
    {DICT("'|u1'", "False", "(1)"), 1, IO_MALFORMED,
     "byte 52 of the header is ')'; ',' is expected there"},
    {DICT("'|u1'", "False", "(,)"), 1, IO_MALFORMED,
     "byte 51 of the header is ','; a dimension (an integer of 0 or more) is expected there"},
    {DICT("'|u1'", "False", "(1,,)"), 1, IO_MALFORMED,
     "byte 53 of the header is ','; a dimension (an integer of 0 or more) is expected there"},
    {DICT("'|u1'", "False", "(1, 2 3)"), 6, IO_MALFORMED,
     "byte 56 of the header is '3'; ',' or ')' is expected there"},
    {DICT("'|u1'", "False", "(-1,)"), 1, IO_MALFORMED,
     "byte 51 of the header is '-'; a dimension (an integer of 0 or more) is expected there"},
    {DICT("'|u1'", "False", "(1.0,)"), 1, IO_MALFORMED,
     "byte 52 of the header is '.'; ',' is expected there"},
    {DICT("'|u1'", "False", "(1L,)"), 1, IO_MALFORMED,
     "byte 52 of the header is 'L'; ',' is expected there"},
    {DICT("'|u1'", "False", "(01,)"), 1, IO_MALFORMED,
     "byte 51 of the header is '0'; a dimension without leading zeros is expected there"},
    {DICT("'|u1'", "False", "(9223372036854775808,)"), 0, IO_TOO_LARGE,
     "dimension 0 of shape exceeds 2^63-1"},
    {DICT("'|u1'", "False", "(1, 99999999999999999999999)"), 0, IO_TOO_LARGE,
     "dimension 1 of shape exceeds 2^63-1"},
    {DICT("'<u2'", "False", "(9223372036854775807,)"), 0, IO_TOO_LARGE,
     "the byte size overflows at dimension 0 (9223372036854775807); at most 2^63-1 bytes are "
     "accepted"},
    {DICT("'|u1'", "False", "(4294967296, 4294967296)"), 0, IO_TOO_LARGE,
     "the byte size overflows at dimension 1 (4294967296); at most 2^63-1 bytes are accepted"},
    {DICT("'|u1'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 1, IO_UNSUPPORTED,
     "9 dimensions; at most 8 are accepted"},
    /* data */
    {DICT("'<f4'", "False", "(2, 3)"), 23, IO_MALFORMED,
     "has 23 bytes of data; shape [2, 3] of F32 needs 24 (truncated)"},
    {DICT("'<f4'", "False", "(2, 3)"), 25, IO_MALFORMED,
     "has 25 bytes of data; shape [2, 3] of F32 needs 24 (trailing bytes)"},
    {DICT("'<f4'", "False", "()"), 0, IO_MALFORMED,
     "has 0 bytes of data; shape [] of F32 needs 4 (truncated)"},
    {DICT("'<f4'", "False", "(0,)"), 1, IO_MALFORMED,
     "has 1 bytes of data; shape [0] of F32 needs 0 (trailing bytes)"},
};

static void test_refused_dicts(void **state)
{
    (void)state;
    size_t right = 0;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        size_t bytes;
        unsigned char *data = npy_bytes(1, refused[i].dict, refused[i].data_bytes, &bytes);
        npy_file *file;
        io_error error = {IO_OK, 0, "accepted"};
        io_status status = open_bytes(&file, data, bytes, &error);
        char want[512];
        snprintf(want, sizeof want, "'file': %s", refused[i].tail);
        bool ok =
            status == refused[i].status && error.code == status && strcmp(error.text, want) == 0;
        if (!ok)
            print_message("%s  gives %s: %s\n  wanted: %s\n", refused[i].dict,
                          io_status_name(status), error.text, want);
        right += ok;
        free(data);
    }
    assert_int_equal(right, sizeof refused / sizeof refused[0]);
}

static void check_start(const char *start, size_t bytes, io_status want, const char *text)
{
    npy_file *file;
    io_error error;
    check_error(open_bytes(&file, start, bytes, &error), &error, want, text);
}

static void test_refused_starts(void **state)
{
    (void)state;
    static const char magic[] = "'file': does not start as a .npy file does (0x93, 'NUMPY')";
    check_start("", 0, IO_MALFORMED, magic);
    check_start("\x93NUMPY\x01", 7, IO_MALFORMED, magic);
    check_start("\x93NUMPX\x01\0\0\0", 10, IO_MALFORMED, magic);
    check_start("PK\3\4xxxxxxxxxxxx", 16, IO_MALFORMED, magic);
    check_start("\x93NUMPY\0\0\0\0", 10, IO_UNSUPPORTED,
                "'file': .npy version 0.0 is not supported; 1.0, 2.0 and 3.0 are");
    check_start("\x93NUMPY\x04\0\0\0\0\0", 12, IO_UNSUPPORTED,
                "'file': .npy version 4.0 is not supported; 1.0, 2.0 and 3.0 are");
    check_start("\x93NUMPY\x01\x01\0\0", 10, IO_UNSUPPORTED,
                "'file': .npy version 1.1 is not supported; 1.0, 2.0 and 3.0 are");
    check_start("\x93NUMPY\x01\0\0", 9, IO_MALFORMED,
                "'file': is truncated: the header should be 0 bytes long, the file has 9");
    check_start("\x93NUMPY\x01\0\x01\0", 10, IO_MALFORMED,
                "'file': is truncated: the header should be 1 bytes long, the file has 10");
    check_start("\x93NUMPY\x02\0\xff\xff\xff\xff", 12, IO_MALFORMED,
                "'file': is truncated: the header should be 4294967295 bytes long, the file has "
                "12");
    check_start("\x93NUMPY\x02\0\0\0\0", 11, IO_MALFORMED,
                "'file': is truncated: the header should be 0 bytes long, the file has 11");
}

static void test_long_headers(void **state)
{
    (void)state;
    static const char dict[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
    char *text = malloc(70000);
    assert_non_null(text);
    memset(text, ' ', 70000);
    memcpy(text, dict, sizeof dict - 1);
    memcpy(text + 65000, "1,)}", 4);
    memcpy(text + 65534, "\n", 2);
    for (int version = 1; version <= 3; version++)
        assert_int_equal(check_good(version, text, 1).rank, 1);
    memcpy(text + 65534, " \n", 3);
    size_t bytes;
    unsigned char *data = npy_bytes(2, text, 1, &bytes);
    npy_file *file;
    io_error error;
    check_error(open_bytes(&file, data, bytes, &error), &error, IO_TOO_LARGE,
                "'file': header length is 65536; at most 65535 is accepted");
    free(data);
    /* A shape of thousands of dimensions is counted, not stored. */
    for (size_t i = sizeof dict - 1; i + 2 < 65000; i += 2)
        memcpy(text + i, "1,", 2);
    memcpy(text + 65534, "\n", 2);
    data = npy_bytes(1, text, 1, &bytes);
    assert_int_equal(open_bytes(&file, data, bytes, &error), IO_UNSUPPORTED);
    assert_non_null(strstr(error.text, "dimensions; at most 8 are accepted"));
    free(data);
    free(text);
}

static void test_every_truncation(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = npy_bytes(2, DICT("'<u2'", "False", "(2, 5)"), 20, &bytes);
    npy_file *file;
    io_error error;
    size_t refused_count = 0;
    for (size_t length = 0; length < bytes; length++)
        refused_count += open_bytes(&file, data, length, &error) == IO_MALFORMED;
    assert_int_equal(refused_count, bytes);
    assert_int_equal(open_bytes(&file, data, bytes, &error), IO_OK);
    npy_close(file);
    npy_close(NULL);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_versions), cmocka_unit_test(test_other_spellings),
        cmocka_unit_test(test_refused_dicts),      cmocka_unit_test(test_refused_starts),
        cmocka_unit_test(test_long_headers),       cmocka_unit_test(test_every_truncation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
