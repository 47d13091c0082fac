/* SPDX-License-Identifier: Apache-2.0 */
#include "io/json_cursor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

char json_cursor_peek(json_cursor *cursor)
{
    while (cursor->at < cursor->length) {
        char c = cursor->text[cursor->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        cursor->at++;
    }
    return '\0';
}

/* "'x'", or "the end of the text", for what stands at the cursor. */
static io_quoted found_at(const json_cursor *cursor)
{
    io_quoted end = {"the end of the text"};
    if (cursor->at >= cursor->length)
        return end;
    const char *p = cursor->text + cursor->at;
    size_t length = utf8_sequence_length(p, cursor->length - cursor->at);
    return io_quote_bytes(p, length == 0 ? 1 : length);
}

static io_status expected(const json_cursor *cursor, const char *what, io_error *error)
{
    return io_error_set(error, IO_MALFORMED, "%s: byte %zu of the %s is %s; %s is expected there",
                        io_quote_path(cursor->label).text, cursor->at, cursor->part,
                        found_at(cursor).text, what);
}

/* What the JSON library said, without the excerpt of the file that it appends. */
static void parser_message(const json_error_t *error, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%s", error->text);
    char *excerpt = strstr(text, " near ");
    if (excerpt != NULL)
        *excerpt = '\0';
    for (char *p = text; *p != '\0'; p++)
        if (*p < 0x20 || *p > 0x7e)
            *p = '?';
}

/* Parses one value at the cursor from a slice of at most `max_bytes`, and moves behind it. */
static io_status parse_slice(json_cursor *cursor, const char *what, size_t max_bytes,
                             json_t **value, io_error *error)
{
    size_t available = cursor->length - cursor->at;
    size_t slice = available < max_bytes ? available : max_bytes;
    json_error_t failure;
    errno = 0;
    *value =
        json_loadb(cursor->text + cursor->at, slice,
                   JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &failure);
    if (*value != NULL) {
        cursor->at += (size_t)failure.position;
        return IO_OK;
    }
    enum json_error_code code = json_error_code(&failure);
    /* A failed allocation inside a string is reported as an invalid token: errno knows better. */
    if (code == json_error_out_of_memory || code == json_error_unknown || errno == ENOMEM)
        return io_error_out_of_memory(error, cursor->label, slice);
    /* A slice that was cut short fails at its very end, perhaps inside a UTF-8 sequence. */
    size_t position = failure.position > 0 ? (size_t)failure.position : 0;
    if (slice < available && (code == json_error_premature_end_of_input || position + 8 >= slice))
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: %s takes more than %zu bytes of JSON in the %s, the most that is "
                            "accepted",
                            io_quote_path(cursor->label).text, what, max_bytes, cursor->part);
    char message[JSON_ERROR_TEXT_LENGTH];
    parser_message(&failure, message, sizeof message);
    return io_error_set(error, IO_MALFORMED, "%s: %s is not valid JSON at byte %zu of the %s: %s",
                        io_quote_path(cursor->label).text, what, cursor->at + position,
                        cursor->part, message);
}

io_status json_cursor_enter(json_cursor *cursor, const char *what, io_error *error)
{
    if (json_cursor_peek(cursor) != '{')
        return expected(cursor, what, error);
    cursor->at++;
    return IO_OK;
}

io_status json_cursor_key(json_cursor *cursor, bool *first, size_t max_bytes, json_t **key,
                          io_error *error)
{
    *key = NULL;
    char next = json_cursor_peek(cursor);
    if (next == '}') {
        cursor->at++;
        return IO_OK;
    }
    if (!*first) {
        if (next != ',')
            return expected(cursor, "',' or '}'", error);
        cursor->at++;
        next = json_cursor_peek(cursor);
    }
    if (next != '"')
        return expected(cursor, "a name in double quotes", error);
    *first = false;
    io_status status = parse_slice(cursor, "a name", max_bytes, key, error);
    if (status != IO_OK)
        return status;
    if (json_cursor_peek(cursor) != ':') {
        json_decref(*key);
        *key = NULL;
        return expected(cursor, "':'", error);
    }
    cursor->at++;
    return IO_OK;
}

io_status json_cursor_value(json_cursor *cursor, const char *what, size_t max_bytes, json_t **value,
                            io_error *error)
{
    *value = NULL;
    json_cursor_peek(cursor);
    return parse_slice(cursor, what, max_bytes, value, error);
}

io_status json_cursor_end(json_cursor *cursor, io_error *error)
{
    json_cursor_peek(cursor);
    if (cursor->at < cursor->length)
        return expected(cursor, "only white space behind the closing brace", error);
    return IO_OK;
}
