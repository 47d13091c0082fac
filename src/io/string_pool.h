/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_STRING_POOL_H
#define HALFBYTE_IO_STRING_POOL_H

/* Many strings that live and die together: addresses stay valid until string_pool_free. */

#include <stddef.h>

typedef struct string_pool {
    struct string_pool_block *blocks;
} string_pool; /* zeroed = empty */

/* A NUL-terminated copy of `length` bytes; NULL if memory is short. */
const char *string_pool_add(string_pool *pool, const char *text, size_t length);

void string_pool_free(string_pool *pool);

#endif
