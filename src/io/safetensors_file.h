/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_SAFETENSORS_FILE_H
#define HALFBYTE_IO_SAFETENSORS_FILE_H

/* Inside of the safetensors reader; not for users of the library. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io_source.h"
#include "io/safetensors.h"
#include "io/string_pool.h"

typedef struct metadata_entry {
    const char *key;
    const char *value;
} metadata_entry;

struct safetensors_file {
    io_source source;
    uint64_t data_offset; /* of the data section, from the start of the file */
    string_pool strings;
    safetensors_tensor *tensors; /* [count], in header order */
    size_t count;
    size_t capacity;
    const safetensors_tensor **by_name; /* [count] */
    metadata_entry *metadata;           /* [metadata_count], in header order */
    size_t metadata_count;
    size_t metadata_capacity;
};

/* Fills tensors and metadata from the JSON text [bytes]; offsets become absolute. Checks each entry
 * alone: what concerns several (names, tiling) is left to the caller. */
io_status safetensors_parse_header(safetensors_file *file, const char *text, size_t bytes,
                                   io_error *error);

/* *key = a key that occurs twice, NULL if none does. False if memory is short. */
bool metadata_find_repeated(const metadata_entry *entries, size_t count, const char **key);

/* qsort comparators over `const safetensors_tensor *` elements. */
int safetensors_compare_names(const void *left, const void *right);
int safetensors_compare_offsets(const void *left, const void *right);

/* Binary search in an array sorted by name; NULL if absent. */
const safetensors_tensor *safetensors_search(const safetensors_tensor *const *by_name, size_t count,
                                             const char *name);

/* Room for one more element of `element_bytes` in the array that the pointer at `array` points to,
 * growing it by half; false if memory is short. */
bool array_reserve(void *array, size_t count, size_t *capacity, size_t element_bytes);

#endif
