/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_SAFETENSORS_WRITER_H
#define HALFBYTE_IO_SAFETENSORS_WRITER_H

/*
 * Streaming writer of safetensors files: declare everything, begin, append the data of the tensors
 * in pieces (tensors in any order, also interleaved; inside a tensor from its first byte to its
 * last), commit. Memory: the declarations and the header, never tensor data. The file appears under
 * its name whole or not at all (atomic_file.h).
 *
 * Layout: __metadata__ first if there is any, then tensors by element type from the most aligned to
 * the least, then by name; the header is padded with spaces to a multiple of 8, so every tensor is
 * aligned to its element size. The bytes of the file depend on what was declared and appended, not
 * on the order of either (metadata keep their order).
 *
 * The limits of safetensors.h hold here too: what is written can be read.
 * A writer is for one thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "io/io_error.h"
#include "io/tensor_spec.h"

typedef struct safetensors_writer safetensors_writer;

io_status safetensors_writer_create(safetensors_writer **writer, io_error *error);

/* Strings are copied and must be UTF-8; a key may be given once (checked in begin). Before begin
 * only. */
io_status safetensors_writer_add_metadata(safetensors_writer *writer, const char *key,
                                          const char *value, io_error *error);

/* Declares a tensor; *index (may be NULL) counts the declarations from 0. The name is copied, must
 * be UTF-8, not "__metadata__", and unique (checked in begin). Before begin only. */
io_status safetensors_writer_add_tensor(safetensors_writer *writer, const char *name,
                                        tensor_dtype dtype, int rank, const int64_t *shape,
                                        size_t *index, io_error *error);

/* Creates the temporary beside `path`, reserves the space where the file system can, and writes
 * the header. */
io_status safetensors_writer_begin(safetensors_writer *writer, const char *path, io_error *error);

/* The next `bytes` bytes of tensor `index`. IO_ARGUMENT if they exceed the tensor. */
io_status safetensors_writer_append(safetensors_writer *writer, size_t index, const void *data,
                                    size_t bytes, io_error *error);

/* Size of the finished file in bytes; 0 before begin. */
uint64_t safetensors_writer_file_bytes(const safetensors_writer *writer);

/* Checks that every tensor is complete (IO_ARGUMENT names one that is not), then makes the file
 * appear. After any outcome the writer can only be destroyed; on failure the final name is as
 * atomic_file_commit states. */
io_status safetensors_writer_commit(safetensors_writer *writer, io_error *error);

/* Frees the writer; a file that was begun and not committed is removed. NULL is allowed. */
void safetensors_writer_destroy(safetensors_writer *writer);

#endif
