/* SPDX-License-Identifier: Apache-2.0 */
/* The one-line texts of the describe functions. */
#ifndef HALFBYTE_API_DESCRIBE_H
#define HALFBYTE_API_DESCRIBE_H

#include <stddef.h>

#include "halfbyte.h"

typedef struct describe_line {
    char text[HALFBYTE_TEXT_BYTES];
    size_t length; /* characters that were added, NUL not counted; begins as 0 */
} describe_line;

/* Appends to the line. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void describe_add(describe_line *line, const char *format, ...);

/*
 * Gives the line to the caller of a describe function.  ERR_INVALID_ARGUMENT (text NULL),
 * ERR_BUFFER_TOO_SMALL; then text is untouched.
 */
halfbyte_status describe_finish(const describe_line *line, char *text, size_t text_bytes);

#endif
