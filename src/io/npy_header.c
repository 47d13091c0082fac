/* SPDX-License-Identifier: Apache-2.0 */
#include "io/npy_header.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * The header is a Python dict literal. numpy reads it with Python's parser; this one knows the
 * forms that numpy writes:
 *
 *   dict  = '{' [ item { ',' item } [ ',' ] ] '}'
 *   item  = string ':' value
 *   value = string | 'True' | 'False' | tuple
 *   tuple = '(' ')' | '(' int ',' [ int { ',' int } [ ',' ] ] ')'
 *
 * with white space between tokens, strings in single or double quotes without escapes.
 */
typedef struct header_parser {
    const char *text;
    size_t length;
    size_t at;
    const char *label;
    io_error *error;
    /* what was found */
    bool has_descr;
    bool has_order;
    bool has_shape;
    bool fortran;
    tensor_dtype dtype;
    size_t rank; /* may exceed TENSOR_MAX_RANK: the rest is counted only */
    int64_t shape[TENSOR_MAX_RANK];
} header_parser;

/* Next byte that is not white space, not consumed; '\0' at the end. */
static char peek(header_parser *parser)
{
    while (parser->at < parser->length) {
        char c = parser->text[parser->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return c;
        parser->at++;
    }
    return '\0';
}

static io_status expected(const header_parser *parser, const char *what)
{
    io_quoted found = {"the end"};
    if (parser->at < parser->length)
        found = io_quote_bytes(parser->text + parser->at, 1);
    return io_error_set(parser->error, IO_MALFORMED,
                        "%s: byte %zu of the header is %s; %s is expected there",
                        io_quote_path(parser->label).text, parser->at, found.text, what);
}

static io_status consume(header_parser *parser, char c, const char *what)
{
    if (peek(parser) != c)
        return expected(parser, what);
    parser->at++;
    return IO_OK;
}

/* A quoted string; *start points into the text. */
static io_status parse_string(header_parser *parser, const char *what, const char **start,
                              size_t *length)
{
    char quote = peek(parser);
    if (quote != '\'' && quote != '"')
        return expected(parser, what);
    parser->at++;
    *start = parser->text + parser->at;
    size_t begin = parser->at;
    while (parser->at < parser->length && parser->text[parser->at] != quote) {
        unsigned char c = (unsigned char)parser->text[parser->at];
        if (c < 0x20 || c > 0x7e || c == '\\')
            return expected(parser, "a plain character of a string");
        parser->at++;
    }
    *length = parser->at - begin;
    return consume(parser, quote, "the closing quote");
}

static bool equals(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* ---- values --------------------------------------------------------------------------------- */

#define ACCEPTED_DESCR "accepted are |b1 |i1 |u1 <i2 <u2 <f2 <i4 <u4 <f4 <i8 <u8 <f8"

/* Why a descr that is not in the table is refused, if it is one that numpy knows. */
static const char *known_descr_kind(const char *text, size_t length)
{
    if (length == 0)
        return NULL;
    bool prefixed = text[0] == '<' || text[0] == '>' || text[0] == '|' || text[0] == '=';
    if (prefixed && length == 1)
        return NULL;
    char kind = prefixed ? text[1] : text[0];
    if (kind == 'O')
        return "an object type";
    if (kind == 'S' || kind == 'U' || kind == 'a')
        return "a text type";
    if (kind == 'V')
        return "a raw or structured type";
    if (kind == 'c')
        return "a complex type";
    if (kind == 'M' || kind == 'm')
        return "a time type";
    if (text[0] == '>')
        return "big-endian";
    return NULL;
}

static io_status parse_descr(header_parser *parser)
{
    if (peek(parser) == '[')
        return io_error_set(parser->error, IO_UNSUPPORTED,
                            "%s: descr is a structured type; " ACCEPTED_DESCR,
                            io_quote_path(parser->label).text);
    const char *text;
    size_t length;
    io_status status = parse_string(parser, "the string of descr", &text, &length);
    if (status != IO_OK)
        return status;
    for (int i = 0; i < TENSOR_DTYPE_COUNT; i++) {
        const char *descr = tensor_dtype_npy_descr((tensor_dtype)i);
        /* One-byte types have no byte order: '<' is as good as '|'. */
        if (descr != NULL && length == 3 && memcmp(descr + 1, text + 1, 2) == 0 &&
            (text[0] == descr[0] || (descr[0] == '|' && text[0] == '<'))) {
            parser->dtype = (tensor_dtype)i;
            return IO_OK;
        }
    }
    const char *kind = known_descr_kind(text, length);
    if (kind != NULL)
        return io_error_set(parser->error, IO_UNSUPPORTED, "%s: descr %s is %s; " ACCEPTED_DESCR,
                            io_quote_path(parser->label).text, io_quote_bytes(text, length).text,
                            kind);
    return io_error_set(parser->error, IO_MALFORMED, "%s: descr %s is not known; " ACCEPTED_DESCR,
                        io_quote_path(parser->label).text, io_quote_bytes(text, length).text);
}

static io_status parse_bool(header_parser *parser, bool *value)
{
    peek(parser);
    const char *text = parser->text + parser->at;
    size_t left = parser->length - parser->at;
    if (left >= 4 && memcmp(text, "True", 4) == 0)
        *value = true;
    else if (left >= 5 && memcmp(text, "False", 5) == 0)
        *value = false;
    else
        return expected(parser, "True or False");
    parser->at += *value ? 4 : 5;
    return IO_OK;
}

static io_status parse_dimension(header_parser *parser)
{
    char c = peek(parser);
    if (c < '0' || c > '9')
        return expected(parser, "a dimension (an integer of 0 or more)");
    size_t begin = parser->at;
    int64_t value = 0;
    while (parser->at < parser->length && parser->text[parser->at] >= '0' &&
           parser->text[parser->at] <= '9') {
        int digit = parser->text[parser->at] - '0';
        if (value > (INT64_MAX - digit) / 10)
            return io_error_set(parser->error, IO_TOO_LARGE,
                                "%s: dimension %zu of shape exceeds 2^63-1",
                                io_quote_path(parser->label).text, parser->rank);
        value = 10 * value + digit;
        parser->at++;
    }
    if (c == '0' && parser->at > begin + 1) {
        parser->at = begin;
        return expected(parser, "a dimension without leading zeros");
    }
    if (parser->rank < TENSOR_MAX_RANK)
        parser->shape[parser->rank] = value;
    parser->rank++;
    return IO_OK;
}

static io_status parse_shape(header_parser *parser)
{
    io_status status = consume(parser, '(', "the '(' of shape");
    while (status == IO_OK && peek(parser) != ')') {
        status = parse_dimension(parser);
        if (status != IO_OK)
            return status;
        if (peek(parser) == ',')
            parser->at++;
        else if (parser->rank == 1 || peek(parser) != ')')
            return expected(parser, parser->rank == 1 ? "','" : "',' or ')'");
    }
    if (status == IO_OK)
        status = consume(parser, ')', "the ')' of shape");
    return status;
}

/* ---- the dict ------------------------------------------------------------------------------- */

static io_status parse_item(header_parser *parser)
{
    const char *key;
    size_t length;
    io_status status = parse_string(parser, "a key in quotes or '}'", &key, &length);
    if (status != IO_OK)
        return status;
    bool *seen = equals(key, length, "descr")           ? &parser->has_descr
                 : equals(key, length, "fortran_order") ? &parser->has_order
                 : equals(key, length, "shape")         ? &parser->has_shape
                                                        : NULL;
    if (seen == NULL || *seen)
        return io_error_set(parser->error, IO_MALFORMED,
                            "%s: the header has the key %s%s; descr, fortran_order and shape are "
                            "accepted, each once",
                            io_quote_path(parser->label).text, io_quote_bytes(key, length).text,
                            seen != NULL ? " twice" : "");
    *seen = true;
    status = consume(parser, ':', "':'");
    if (status != IO_OK)
        return status;
    return seen == &parser->has_descr   ? parse_descr(parser)
           : seen == &parser->has_order ? parse_bool(parser, &parser->fortran)
                                        : parse_shape(parser);
}

static io_status parse_dict(header_parser *parser)
{
    io_status status = consume(parser, '{', "'{'");
    while (status == IO_OK && peek(parser) != '}') {
        status = parse_item(parser);
        if (status != IO_OK)
            return status;
        if (peek(parser) == ',')
            parser->at++;
        else if (peek(parser) != '}')
            return expected(parser, "',' or '}'");
    }
    if (status == IO_OK)
        status = consume(parser, '}', "'}'");
    if (status == IO_OK && (peek(parser) != '\0' || parser->at < parser->length))
        return expected(parser, "only white space behind the dict");
    return status;
}

io_status npy_header_parse(const char *text, size_t length, const char *label, tensor_spec *spec,
                           io_error *error)
{
    header_parser parser = {.text = text, .length = length, .label = label, .error = error};
    io_status status = parse_dict(&parser);
    if (status != IO_OK)
        return status;
    io_quoted quoted = io_quote_path(label);
    const char *missing = !parser.has_descr   ? "descr"
                          : !parser.has_order ? "fortran_order"
                          : !parser.has_shape ? "shape"
                                              : NULL;
    if (missing != NULL)
        return io_error_set(error, IO_MALFORMED, "%s: the header has no %s", quoted.text, missing);
    status =
        tensor_spec_init(spec, parser.dtype, (int)parser.rank, parser.shape, quoted.text, error);
    if (status != IO_OK)
        return status;
    if (parser.fortran && spec->rank > 1)
        return io_error_set(error, IO_UNSUPPORTED,
                            "%s: is in Fortran order with %d dimensions; C order is accepted",
                            quoted.text, spec->rank);
    if (text[length - 1] != '\n')
        return io_error_set(error, IO_MALFORMED,
                            "%s: the header does not end with a newline, as it must", quoted.text);
    return IO_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

size_t npy_header_format(const tensor_spec *spec, char *text)
{
    static const char start[8] = "\x93NUMPY\x01";
    memcpy(text, start, sizeof start);
    size_t used = 10;
    used += (size_t)snprintf(text + used, NPY_HEADER_FORMAT_BYTES - used,
                             "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             tensor_dtype_npy_descr(spec->dtype));
    for (int i = 0; i < spec->rank; i++)
        used += (size_t)snprintf(text + used, NPY_HEADER_FORMAT_BYTES - used, "%s%" PRId64,
                                 i > 0 ? ", " : "", spec->shape[i]);
    used += (size_t)snprintf(text + used, NPY_HEADER_FORMAT_BYTES - used, "%s), }",
                             spec->rank == 1 ? "," : "");
    while (used % 64 != 63)
        text[used++] = ' ';
    text[used++] = '\n';
    text[8] = (char)((used - 10) & 0xff);
    text[9] = (char)((used - 10) >> 8);
    return used;
}
