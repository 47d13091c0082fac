/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include "io/io_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

size_t utf8_sequence_length(const char *text, size_t available)
{
    const unsigned char *p = (const unsigned char *)text;
    if (available == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || available < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and code points above U+10FFFF. */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
        return 0;
    return length;
}

/* Ends a text that snprintf cut with "...", on a character boundary. */
static void mark_cut(char *text, size_t text_bytes)
{
    size_t keep = text_bytes - 4;
    size_t at = 0;
    for (;;) {
        size_t length = utf8_sequence_length(text + at, text_bytes - 1 - at);
        if (length == 0 || at + length > keep)
            break;
        at += length;
    }
    memcpy(text + at, "...", 4);
}

static void format_text(io_error *error, const char *format, va_list arguments)
{
    int length = vsnprintf(error->text, sizeof error->text, format, arguments);
    if (length < 0)
        snprintf(error->text, sizeof error->text, "no text for this error");
    else if ((size_t)length >= sizeof error->text)
        mark_cut(error->text, sizeof error->text);
}

io_status io_error_set(io_error *error, io_status code, const char *format, ...)
{
    if (error == NULL)
        return code;
    va_list arguments;
    va_start(arguments, format);
    format_text(error, format, arguments);
    va_end(arguments);
    error->code = code;
    error->system_errno = 0;
    return code;
}

io_status io_error_set_system(io_error *error, int system_errno, const char *format, ...)
{
    io_status code = system_errno == ENOENT   ? IO_NOT_FOUND
                     : system_errno == ENOMEM ? IO_OUT_OF_MEMORY
                                              : IO_SYSTEM;
    if (error == NULL)
        return code;
    va_list arguments;
    va_start(arguments, format);
    format_text(error, format, arguments);
    va_end(arguments);
    error->code = code;
    error->system_errno = system_errno;

    char reason[128];
    if (strerror_r(system_errno, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", system_errno);
    size_t used = strlen(error->text);
    int length = snprintf(error->text + used, sizeof error->text - used, ": %s", reason);
    if (length < 0 || (size_t)length >= sizeof error->text - used)
        mark_cut(error->text, sizeof error->text);
    return code;
}

io_status io_error_out_of_memory(io_error *error, const char *label, uint64_t bytes)
{
    return io_error_set(error, IO_OUT_OF_MEMORY, "%s: out of memory for %" PRIu64 " bytes",
                        io_quote_path(label).text, bytes);
}

const char *io_status_name(io_status status)
{
    switch (status) {
    case IO_OK: return "ok";
    case IO_NOT_FOUND: return "not found";
    case IO_SYSTEM: return "system error";
    case IO_MALFORMED: return "malformed";
    case IO_UNSUPPORTED: return "unsupported";
    case IO_TOO_LARGE: return "too large";
    case IO_OUT_OF_MEMORY: return "out of memory";
    case IO_ARGUMENT: return "bad argument";
    }
    return "unknown status";
}

/* Bytes of the character at `text` in a message, and in *plain whether it stays as it is. Escaped:
 * bytes that are no UTF-8, C0 and C1 control characters, backslash, quote, and the invisible
 * characters that break lines or turn the direction of writing (U+200E, U+200F, U+2028..202F,
 * U+2066..2069). */
static size_t shown_bytes(const char *text, size_t available, size_t *consumed, bool *plain)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t length = utf8_sequence_length(text, available);
    *plain = length != 0 && p[0] >= 0x20 && p[0] != 0x7f && p[0] != '\\' && p[0] != '\'' &&
             !(p[0] == 0xc2 && p[1] < 0xa0);
    if (*plain && p[0] == 0xe2 && p[1] == 0x80)
        *plain = p[2] != 0x8e && p[2] != 0x8f && (p[2] < 0xa8 || p[2] > 0xaf);
    else if (*plain && p[0] == 0xe2 && p[1] == 0x81)
        *plain = p[2] < 0xa6 || p[2] > 0xa9;
    *consumed = length == 0 ? 1 : length;
    return *plain ? length : 4 * *consumed;
}

static size_t shown_length(const char *text, size_t length)
{
    size_t total = 0;
    size_t consumed;
    bool plain;
    for (size_t at = 0; at < length; at += consumed)
        total += shown_bytes(text + at, length - at, &consumed, &plain);
    return total;
}

/* Longest text between the quotes: room for both quotes, "..." and NUL is left. */
#define QUOTED_BYTES (sizeof(((io_quoted *)0)->text) - 6)

static size_t append_shown(char *out, const char *text, size_t length, size_t room)
{
    size_t used = 0;
    size_t consumed;
    bool plain;
    for (size_t at = 0; at < length; at += consumed) {
        size_t bytes = shown_bytes(text + at, length - at, &consumed, &plain);
        if (used + bytes > room)
            break;
        if (plain) {
            memcpy(out + used, text + at, bytes);
        } else {
            static const char digits[] = "0123456789abcdef";
            for (size_t i = 0; i < consumed; i++) {
                unsigned byte = (unsigned char)text[at + i];
                const char escape[4] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
                memcpy(out + used + 4 * i, escape, 4);
            }
        }
        used += bytes;
    }
    return used;
}

io_quoted io_quote_bytes(const char *name, size_t length)
{
    io_quoted quoted;
    /* Only a head can be shown, so only a head is looked at. */
    size_t looked_at = length < sizeof quoted.text ? length : sizeof quoted.text;
    bool cut = looked_at < length || shown_length(name, looked_at) > QUOTED_BYTES;
    quoted.text[0] = '\'';
    size_t used = 1 + append_shown(quoted.text + 1, name, looked_at, QUOTED_BYTES);
    memcpy(quoted.text + used, cut ? "...'" : "'", cut ? 5 : 2);
    return quoted;
}

io_quoted io_quote(const char *name)
{
    return io_quote_bytes(name, strlen(name));
}

io_quoted io_quote_path(const char *path)
{
    size_t length = strlen(path);
    size_t from = length > sizeof(io_quoted) ? length - sizeof(io_quoted) : 0;
    while (from > 0 && ((unsigned char)path[from] & 0xc0) == 0x80)
        from++;
    while (shown_length(path + from, length - from) > QUOTED_BYTES) {
        size_t step = utf8_sequence_length(path + from, length - from);
        from += step == 0 ? 1 : step;
    }
    io_quoted quoted;
    size_t used = from > 0 ? 4 : 1;
    memcpy(quoted.text, from > 0 ? "'..." : "'", used);
    used += append_shown(quoted.text + used, path + from, length - from, QUOTED_BYTES);
    memcpy(quoted.text + used, "'", 2);
    return quoted;
}
