/* SPDX-License-Identifier: Apache-2.0 */
#include "io/string_pool.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 16)

typedef struct string_pool_block {
    struct string_pool_block *next;
    size_t used;
    size_t capacity;
    char text[];
} string_pool_block;

const char *string_pool_add(string_pool *pool, const char *text, size_t length)
{
    string_pool_block *block = pool->blocks;
    if (block == NULL || block->capacity - block->used <= length) {
        size_t capacity = length < BLOCK_BYTES / 4 ? BLOCK_BYTES : length + 1;
        block = malloc(sizeof *block + capacity);
        if (block == NULL)
            return NULL;
        block->used = 0;
        block->capacity = capacity;
        block->next = pool->blocks;
        pool->blocks = block;
    }
    char *copy = block->text + block->used;
    memcpy(copy, text, length);
    copy[length] = '\0';
    block->used += length + 1;
    return copy;
}

void string_pool_free(string_pool *pool)
{
    while (pool->blocks != NULL) {
        string_pool_block *block = pool->blocks;
        pool->blocks = block->next;
        free(block);
    }
}
