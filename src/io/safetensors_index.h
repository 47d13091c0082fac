/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_SAFETENSORS_INDEX_H
#define HALFBYTE_IO_SAFETENSORS_INDEX_H

/* What a model.safetensors.index.json says; not for users of the library. */

#include <stddef.h>

#include "io/io_error.h"
#include "io/io_source.h"
#include "io/string_pool.h"

typedef struct index_entry {
    const char *name; /* of the tensor */
    size_t shard;     /* index into shard_names */
} index_entry;

typedef struct safetensors_index {
    string_pool strings;
    index_entry *entries; /* [count], in the order of the file; a name may still occur twice */
    size_t count;
    size_t capacity;
    const char **shard_names; /* [shard_count], plain file names in order of first mention */
    size_t shard_count;
    size_t shard_capacity;
} safetensors_index;

/* Fills the zeroed *index; safetensors_index_free whatever the outcome. Members other than
 * weight_map are checked to be JSON and dropped. */
io_status safetensors_index_read(safetensors_index *index, const io_source *source,
                                 io_error *error);

void safetensors_index_free(safetensors_index *index);

#endif
