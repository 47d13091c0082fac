/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_IO_ERROR_H
#define HALFBYTE_IO_IO_ERROR_H

/*
 * How the file library reports: every function that can fail returns an io_status and fills the
 * caller's io_error with one sentence that names the file, the tensor, the value found and what
 * would be accepted. Nothing here prints, exits or touches signals.
 */

#include <stddef.h>
#include <stdint.h>

typedef enum io_status {
    IO_OK = 0,
    IO_NOT_FOUND = 1,     /* no such file (system_errno is ENOENT) or no such tensor (0) */
    IO_SYSTEM = 2,        /* the operating system refused; system_errno says why */
    IO_MALFORMED = 3,     /* the file breaks its format */
    IO_UNSUPPORTED = 4,   /* the file is of a form that is known but not served */
    IO_TOO_LARGE = 5,     /* a stated limit, or the range of a 64-bit size, is exceeded */
    IO_OUT_OF_MEMORY = 6, /* malloc failed */
    IO_ARGUMENT = 7       /* the caller broke the contract: range, order or NULL */
} io_status;

typedef struct io_error {
    io_status code;
    int system_errno; /* 0 unless an operating-system call failed */
    char text[512];   /* one sentence without a final full stop; valid UTF-8, NUL-terminated */
} io_error;

/* A name made safe for a message: see io_quote. */
typedef struct io_quoted {
    char text[168];
} io_quoted;

#if defined(__GNUC__)
#define IO_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define IO_PRINTF(format_index, first)
#endif

/* Fills *error (which may be NULL) and returns `code`, so that callers can write
 * `return io_error_set(...)`. A text that does not fit ends in "...". */
io_status io_error_set(io_error *error, io_status code, const char *format, ...) IO_PRINTF(3, 4);

/* The same for a failed system call: appends ": " and the system's description of `system_errno`;
 * the status is IO_NOT_FOUND for ENOENT, IO_OUT_OF_MEMORY for ENOMEM, else IO_SYSTEM. */
io_status io_error_set_system(io_error *error, int system_errno, const char *format, ...)
    IO_PRINTF(3, 4);

io_status io_error_out_of_memory(io_error *error, const char *label, uint64_t bytes);

/* "ok", "not found", "system error" ... for logs and JSON. Never NULL. */
const char *io_status_name(io_status status);

/*
 * `name` (NUL-terminated, any bytes) between single quotes for use in a message: control
 * characters, backslashes, single quotes and bytes that are not UTF-8 become \xNN, so that a file
 * cannot send escape sequences to a terminal. Long names keep their head (tensor names, values) or
 * their tail (io_quote_path).
 * Used as `io_quote(name).text` inside one expression.
 */
io_quoted io_quote(const char *name);
io_quoted io_quote_bytes(const char *name, size_t length);
io_quoted io_quote_path(const char *path);

/* Length in bytes (1..4) of the valid UTF-8 sequence at `text`, 0 if there is none. */
size_t utf8_sequence_length(const char *text, size_t available);

#endif
