/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_JSON_CURSOR_H
#define HALFBYTE_IO_JSON_CURSOR_H

/*
 * Walks the members of a JSON object whose text may be large and hostile. Parsing such a text whole
 * lets it decide how much memory the parser takes: 100 MB of "[0,0,0..." become gigabytes. Here the
 * caller steps from key to value, each is parsed by the JSON library from a slice of bounded
 * length, and what was parsed is dropped before the next step.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "io/io_error.h"

typedef struct json_cursor {
    const char *text; /* not NUL-terminated */
    size_t length;
    size_t at;
    const char *label; /* path, for messages */
    const char *part;  /* what the text is in the file: "header" */
} json_cursor;

/* Next byte that is not white space, not consumed; '\0' at the end. */
char json_cursor_peek(json_cursor *cursor);

/* Consumes '{'. IO_MALFORMED names `what` if something else stands there. */
io_status json_cursor_enter(json_cursor *cursor, const char *what, io_error *error);

/*
 * The next key of the object that was entered and its ':'. *first is true before the first call.
 * At the closing brace (consumed) *key is NULL. A key whose text takes more than `max_bytes` is
 * IO_TOO_LARGE. The caller owns *key, a JSON string without NUL characters.
 */
io_status json_cursor_key(json_cursor *cursor, bool *first, size_t max_bytes, json_t **key,
                          io_error *error);

/* The next value, parsed whole from at most `max_bytes` bytes of text; objects in it may not repeat
 * a key. `what` names it in messages (already quoted). The caller owns *value. */
io_status json_cursor_value(json_cursor *cursor, const char *what, size_t max_bytes, json_t **value,
                            io_error *error);

/* Only white space may be left. */
io_status json_cursor_end(json_cursor *cursor, io_error *error);

#endif
