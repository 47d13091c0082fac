/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_NPY_H
#define HALFBYTE_IO_NPY_H

/*
 * Reader and writer of numpy's .npy files.
 *
 * Read: format versions 1.0, 2.0 and 3.0; types b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8, little-endian
 * (descr "<f4", or "|u1" for one byte an element); C order (Fortran order only where it is the
 * same: at most one dimension). Refused by name: big-endian, structured, object, text, complex and
 * time types, Fortran order of matrices. The header must be the dict that numpy writes: keys descr,
 * fortran_order and shape, each once, a final newline; at most NPY_MAX_HEADER_BYTES long. The data
 * must be exactly as long as the header says.
 *
 * bf16 and fp8 have no .npy type. Their bits travel as u2 and u1, and the program that reads them
 * is told so by its user; no private descr is accepted.
 */

#include <stddef.h>
#include <stdint.h>

#include "io/io_error.h"
#include "io/io_source.h"
#include "io/tensor_spec.h"

#define NPY_MAX_HEADER_BYTES 65535u

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct npy_file npy_file;

/* On failure *file is NULL. Immutable afterwards: usable from many threads. */
io_status npy_open(npy_file **file, const char *path, io_error *error);

/* The same over any source. Takes the source over in every case, failure included. */
io_status npy_open_source(npy_file **file, io_source *source, io_error *error);

/* Element type, shape, sizes; owned by the reader. */
const tensor_spec *npy_spec(const npy_file *file);

/* Bytes [offset, offset + bytes) of the data. IO_ARGUMENT if the range leaves the data. */
io_status npy_read(const npy_file *file, uint64_t offset, void *buffer, size_t bytes,
                   io_error *error);

/* NULL is allowed. */
void npy_close(npy_file *file);

/* ---- writing -------------------------------------------------------------------------------- */

typedef struct npy_writer npy_writer;

/* Creates the temporary beside `path` and writes a version 1.0 header whose end is 64-byte aligned.
 * IO_UNSUPPORTED for a type that .npy does not have. */
io_status npy_writer_begin(npy_writer **writer, const char *path, tensor_dtype dtype, int rank,
                           const int64_t *shape, io_error *error);

/* The next `bytes` bytes, row-major. IO_ARGUMENT if they exceed the array. */
io_status npy_writer_append(npy_writer *writer, const void *data, size_t bytes, io_error *error);

/* Checks that all bytes came (IO_ARGUMENT if not) and makes the file appear. Frees the writer in
 * every case; on failure the final name is as atomic_file_commit states. */
io_status npy_writer_commit(npy_writer *writer, io_error *error);

/* Removes the temporary and frees. NULL is allowed. */
void npy_writer_abort(npy_writer *writer);

/* All in one: `data` holds the whole array. */
io_status npy_write(const char *path, tensor_dtype dtype, int rank, const int64_t *shape,
                    const void *data, io_error *error);

#endif
