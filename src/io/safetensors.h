/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_SAFETENSORS_H
#define HALFBYTE_IO_SAFETENSORS_H

/*
 * Strict reader of safetensors files and of models sharded over several of them.
 *
 * File: u64 little-endian header length N; N bytes of JSON; data. Each tensor has dtype, shape
 * (row-major) and a byte range in the data section. A file is accepted only if
 *   - 2 <= N <= min(SAFETENSORS_MAX_HEADER_BYTES, file size - 8), the header starts with '{', is
 *     UTF-8 JSON, and only white space follows the object;
 *   - no name occurs twice, no tensor has a key other than dtype, shape, data_offsets, and
 *     __metadata__ maps strings to strings;
 *   - each byte range is as long as dtype and shape say, and the ranges tile the data section
 *     exactly: from 0, without gap or overlap, to the end of the file, in whatever order.
 * Tensors with a zero dimension and scalars (shape []) are fine. Alignment is not required.
 * F4, F6_E2M3, F6_E3M2 and C64 are refused by name (IO_UNSUPPORTED), unknown types as malformed.
 *
 * Memory: the header is parsed one member at a time, each from a bounded slice, so no nesting, no
 * number of tiny values and no giant name makes the JSON library allocate more than a few MB (a
 * metadata string at its limit: three times its length).
 * While opening, memory stays below N plus the tables (about 250 bytes and the name a tensor);
 * afterwards the tables alone remain. Tensor data are never held.
 */

#include <stddef.h>
#include <stdint.h>

#include "io/io_error.h"
#include "io/io_source.h"
#include "io/tensor_spec.h"

#define SAFETENSORS_MAX_HEADER_BYTES 100000000u  /* set by the format */
#define SAFETENSORS_MAX_TENSORS 262144u          /* in one file */
#define SAFETENSORS_MAX_NAME_BYTES 4096u         /* decoded, without NUL */
#define SAFETENSORS_MAX_ENTRY_BYTES 65536u       /* JSON text of one tensor's description */
#define SAFETENSORS_MAX_METADATA_BYTES 16777216u /* JSON text of __metadata__ */
#define SAFETENSORS_MAX_METADATA_ENTRIES 65536u
#define SAFETENSORS_MAX_SHARDS 4096u
#define SAFETENSORS_MAX_MODEL_TENSORS 1048576u /* over all shards */

typedef struct safetensors_tensor {
    const char *name; /* UTF-8, owned by the reader */
    tensor_spec spec;
    uint64_t offset; /* of the first byte, from the start of the file */
    size_t shard;    /* index of the file inside its model; 0 for a file opened alone */
} safetensors_tensor;

/* ---- one file ------------------------------------------------------------------------------- */

typedef struct safetensors_file safetensors_file;

/* Reads and checks the header. On failure *file is NULL. The reader is immutable afterwards: all
 * functions below may be called from many threads at once. */
io_status safetensors_open(safetensors_file **file, const char *path, io_error *error);

/* The same over any source. Takes the source over in every case, failure included. */
io_status safetensors_open_source(safetensors_file **file, io_source *source, io_error *error);

const char *safetensors_path(const safetensors_file *file);

/* Tensors in the order of the header. NULL if `index` is not below the count. */
size_t safetensors_count(const safetensors_file *file);
const safetensors_tensor *safetensors_at(const safetensors_file *file, size_t index);

/* By exact name, O(log count); NULL if there is none. */
const safetensors_tensor *safetensors_find(const safetensors_file *file, const char *name);

/* Bytes [offset, offset + bytes) of a tensor of this file into `buffer`. IO_ARGUMENT if the range
 * leaves the tensor or the tensor is not of this file. */
io_status safetensors_read(const safetensors_file *file, const safetensors_tensor *tensor,
                           uint64_t offset, void *buffer, size_t bytes, io_error *error);

/* __metadata__ in the order of the file. `index` must be below the count. Strings are owned by the
 * reader. find returns NULL if the key is absent. */
size_t safetensors_metadata_count(const safetensors_file *file);
const char *safetensors_metadata_key(const safetensors_file *file, size_t index);
const char *safetensors_metadata_value(const safetensors_file *file, size_t index);
const char *safetensors_metadata_find(const safetensors_file *file, const char *key);

/* NULL is allowed. */
void safetensors_close(safetensors_file *file);

/* ---- a model: one file or many -------------------------------------------------------------- */

typedef struct safetensors_model safetensors_model;

/*
 * `path` is one of
 *   - a directory: `model.safetensors` in it if there, else `model.safetensors.index.json`;
 *   - an index (name ends in ".json"): `weight_map` maps tensor names to files beside the index.
 *     File names must be plain (no '/', not "." or ".."). Each named tensor must be in its file;
 *   - a safetensors file.
 * All shards are opened and checked; one file descriptor a shard stays open.
 */
io_status safetensors_model_open(safetensors_model **model, const char *path, io_error *error);

/* Tensors in the order of the index (of the header for a single file). */
size_t safetensors_model_count(const safetensors_model *model);
const safetensors_tensor *safetensors_model_at(const safetensors_model *model, size_t index);
const safetensors_tensor *safetensors_model_find(const safetensors_model *model, const char *name);
io_status safetensors_model_read(const safetensors_model *model, const safetensors_tensor *tensor,
                                 uint64_t offset, void *buffer, size_t bytes, io_error *error);

/* The files, in order of first mention. `shard` must be below the count. */
size_t safetensors_model_shard_count(const safetensors_model *model);
const safetensors_file *safetensors_model_shard(const safetensors_model *model, size_t shard);

/* Tensors that lie in the files but not in the index; they are not in the list above. */
size_t safetensors_model_unlisted_count(const safetensors_model *model);

/* NULL is allowed. */
void safetensors_model_close(safetensors_model *model);

#endif
