/* SPDX-License-Identifier: Apache-2.0 */
#include "api/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/error.h"

void describe_add(describe_line *line, const char *format, ...)
{
    const size_t room = line->length < sizeof line->text ? sizeof line->text - line->length : 0;
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(line->text + (sizeof line->text - room), room, format, values);
    va_end(values);
    if (length > 0) {
        line->length += (size_t)length;
    }
}

halfbyte_status describe_finish(const describe_line *line, char *text, size_t text_bytes)
{
    const size_t bytes = line->length + 1;
    CHECK(bytes <= sizeof line->text, HALFBYTE_ERR_INTERNAL,
          "a description of %zu bytes does not fit into HALFBYTE_TEXT_BYTES (%zu)", bytes,
          sizeof line->text);
    CHECK_ARGUMENT(text != NULL, "text = NULL: must point to text_bytes bytes");
    CHECK(bytes <= text_bytes, HALFBYTE_ERR_BUFFER_TOO_SMALL,
          "text_bytes = %zu: this text needs %zu bytes; HALFBYTE_TEXT_BYTES (%zu) always suffices",
          text_bytes, bytes, sizeof line->text);
    memcpy(text, line->text, bytes);
    return HALFBYTE_SUCCESS;
}
