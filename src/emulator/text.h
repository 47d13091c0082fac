/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts put together piece by piece, and texts that stay.
 */
#ifndef HALFBYTE_EMULATOR_TEXT_H
#define HALFBYTE_EMULATOR_TEXT_H

#include <stddef.h>

/* A text of at most `bytes`, NUL included; what does not fit is cut off. */
typedef struct text_writer {
    char *text;
    size_t bytes, length;
} text_writer;

__attribute__((format(printf, 2, 3))) void text_append(text_writer *to, const char *format, ...);

/* A copy that lives as long as the process; equal texts share one.  NULL if memory is out. */
const char *text_keep(const char *text);

#endif
