/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_TESTS_FUZZ_FUZZ_CHECK_H
#define HALFBYTE_TESTS_FUZZ_FUZZ_CHECK_H

/* What must hold for every input: a fuzzer finds more than crashes. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/io_error.h"

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A refusal has one of the statuses that a file can cause and a printable sentence. */
static inline void fuzz_check_error(io_status status, const io_error *error)
{
    FUZZ_CHECK(status == IO_MALFORMED || status == IO_UNSUPPORTED || status == IO_TOO_LARGE);
    FUZZ_CHECK(error->code == status);
    size_t length = strlen(error->text);
    FUZZ_CHECK(length > 0);
    for (size_t at = 0; at < length;) {
        size_t step = utf8_sequence_length(error->text + at, length - at);
        FUZZ_CHECK(step > 0 && (unsigned char)error->text[at] >= 0x20);
        at += step;
    }
}

#endif
