/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_append(text_writer *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(to->text + to->length, to->bytes - to->length, format, arguments);
    va_end(arguments);
    if (length > 0) {
        to->length += (size_t)length;
    }
    if (to->length >= to->bytes) {
        to->length = to->bytes - 1;
    }
}

typedef struct kept_text {
    struct kept_text *next;
    char text[];
} kept_text;

const char *text_keep(const char *text)
{
    static kept_text *all;
    for (const kept_text *one = all; one != NULL; one = one->next) {
        if (strcmp(one->text, text) == 0) {
            return one->text;
        }
    }
    kept_text *made = malloc(sizeof *made + strlen(text) + 1);
    if (made == NULL) {
        return NULL;
    }
    strcpy(made->text, text);
    made->next = all;
    all = made;
    return made->text;
}
