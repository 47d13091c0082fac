/* SPDX-License-Identifier: Apache-2.0 */
#include "api/error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char error_text[ERROR_TEXT_BYTES];

halfbyte_status status_fail(halfbyte_status status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (vsnprintf(error_text, sizeof error_text, format, values) < 0) {
        error_text[0] = '\0';
    }
    va_end(values);
    return status;
}

const char *halfbyte_last_error(void)
{
    return error_text;
}
