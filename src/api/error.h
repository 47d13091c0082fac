/* SPDX-License-Identifier: Apache-2.0 */
/* How a function of the library fails: a status and one sentence. */
#ifndef HALFBYTE_API_ERROR_H
#define HALFBYTE_API_ERROR_H

#include "halfbyte.h"

enum { ERROR_TEXT_BYTES = 512 }; /* of the sentence, NUL included; longer ones are cut */

/*
 * Sets the sentence of halfbyte_last_error() for this thread and returns `status`.
 *
 * The sentence names the argument, its value and what is accepted, in this form:
 *
 *     problem.k = 33: must be a multiple of 32 (profile sm90, family w4a8)
 */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
halfbyte_status
status_fail(halfbyte_status status, const char *format, ...);

/* Fails out of the enclosing function unless `condition` holds; then the format and its values. */
#define CHECK(condition, status, ...)                                                              \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return status_fail(status, __VA_ARGS__);                                               \
        }                                                                                          \
    } while (0)

/* The same with the status of almost every check. */
#define CHECK_ARGUMENT(condition, ...) CHECK(condition, HALFBYTE_ERR_INVALID_ARGUMENT, __VA_ARGS__)

/* Passes on the failure of `call`, whose sentence is already set. */
#define CHECK_STATUS(call)                                                                         \
    do {                                                                                           \
        const halfbyte_status status_of_call = (call);                                             \
        if (status_of_call != HALFBYTE_SUCCESS) {                                                  \
            return status_of_call;                                                                 \
        }                                                                                          \
    } while (0)

#endif
