/* SPDX-License-Identifier: Apache-2.0 */
#include "io/npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/atomic_file.h"
#include "io/npy_header.h"

/* Magic, version and the longer form of the length field. */
#define MAX_PREFIX_BYTES 12u

struct npy_file {
    io_source source;
    tensor_spec spec;
    uint64_t data_offset;
};

/* ---- reading -------------------------------------------------------------------------------- */

/* Checks the fixed start of the file; *header_bytes is the length of the dict behind it, and
 * data_offset is set. */
static io_status read_prefix(npy_file *file, size_t *prefix_bytes, size_t *header_bytes,
                             io_error *error)
{
    const io_source *source = &file->source;
    io_quoted name = io_quote_path(source->label);
    unsigned char prefix[MAX_PREFIX_BYTES] = {0};
    size_t have = source->size_bytes < sizeof prefix ? (size_t)source->size_bytes : sizeof prefix;
    io_status status = io_source_read(source, 0, prefix, have, error);
    if (status != IO_OK)
        return status;
    if (have < 8 || memcmp(prefix, "\x93NUMPY", 6) != 0)
        return io_error_set(error, IO_MALFORMED,
                            "%s: does not start as a .npy file does (0x93, 'NUMPY')", name.text);
    unsigned major = prefix[6];
    if (major < 1 || major > 3 || prefix[7] != 0)
        return io_error_set(error, IO_UNSUPPORTED,
                            "%s: .npy version %u.%u is not supported; 1.0, 2.0 and 3.0 are",
                            name.text, major, prefix[7]);
    *prefix_bytes = major == 1 ? 10 : MAX_PREFIX_BYTES;
    uint64_t length = (uint64_t)prefix[8] | (uint64_t)prefix[9] << 8;
    if (major > 1)
        length |= (uint64_t)prefix[10] << 16 | (uint64_t)prefix[11] << 24;
    if (source->size_bytes < *prefix_bytes || length > source->size_bytes - *prefix_bytes)
        return io_error_set(error, IO_MALFORMED,
                            "%s: is truncated: the header should be %" PRIu64
                            " bytes long, the file has %" PRIu64,
                            name.text, length, source->size_bytes);
    if (length > NPY_MAX_HEADER_BYTES)
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: header length is %" PRIu64 "; at most %u is accepted", name.text,
                            length, NPY_MAX_HEADER_BYTES);
    *header_bytes = (size_t)length;
    file->data_offset = *prefix_bytes + length;
    return IO_OK;
}

static io_status read_header(npy_file *file, io_error *error)
{
    size_t prefix_bytes = 0;
    size_t header_bytes = 0;
    io_status status = read_prefix(file, &prefix_bytes, &header_bytes, error);
    if (status != IO_OK)
        return status;
    const char *label = file->source.label;
    char *text = malloc(header_bytes + 1);
    if (text == NULL)
        return io_error_out_of_memory(error, label, header_bytes);
    status = io_source_read(&file->source, prefix_bytes, text, header_bytes, error);
    if (status == IO_OK)
        status = npy_header_parse(text, header_bytes, label, &file->spec, error);
    free(text);
    if (status != IO_OK)
        return status;
    uint64_t data_bytes = file->source.size_bytes - file->data_offset;
    if (data_bytes == file->spec.bytes)
        return IO_OK;
    char shape[168];
    tensor_shape_format(&file->spec, shape, sizeof shape);
    return io_error_set(error, IO_MALFORMED,
                        "%s: has %" PRIu64 " bytes of data; shape %s of %s needs %" PRIu64 " (%s)",
                        io_quote_path(label).text, data_bytes, shape,
                        tensor_dtype_name(file->spec.dtype), file->spec.bytes,
                        data_bytes < file->spec.bytes ? "truncated" : "trailing bytes");
}

io_status npy_open_source(npy_file **result, io_source *source, io_error *error)
{
    *result = NULL;
    npy_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        io_status status = io_error_out_of_memory(error, source->label, sizeof *file);
        io_source_close(source);
        return status;
    }
    file->source = *source;
    memset(source, 0, sizeof *source);
    io_status status = read_header(file, error);
    if (status != IO_OK) {
        npy_close(file);
        return status;
    }
    *result = file;
    return IO_OK;
}

io_status npy_open(npy_file **file, const char *path, io_error *error)
{
    *file = NULL;
    io_source source;
    io_status status = io_source_open_file(&source, path, error);
    return status == IO_OK ? npy_open_source(file, &source, error) : status;
}

const tensor_spec *npy_spec(const npy_file *file)
{
    return &file->spec;
}

io_status npy_read(const npy_file *file, uint64_t offset, void *buffer, size_t bytes,
                   io_error *error)
{
    if (offset > file->spec.bytes || bytes > file->spec.bytes - offset)
        return io_error_set(error, IO_ARGUMENT,
                            "%s: %zu bytes from byte %" PRIu64
                            " of the data on were asked for, but it has %" PRIu64,
                            io_quote_path(file->source.label).text, bytes, offset,
                            file->spec.bytes);
    return io_source_read(&file->source, file->data_offset + offset, buffer, bytes, error);
}

void npy_close(npy_file *file)
{
    if (file == NULL)
        return;
    io_source_close(&file->source);
    free(file);
}

/* ---- writing -------------------------------------------------------------------------------- */

struct npy_writer {
    atomic_file *file;
    tensor_spec spec;
    uint64_t data_offset;
    uint64_t written;
};

static io_status start_file(npy_writer *writer, const char *path, io_error *error)
{
    char header[NPY_HEADER_FORMAT_BYTES];
    writer->data_offset = npy_header_format(&writer->spec, header);
    if (writer->spec.bytes > (uint64_t)INT64_MAX - writer->data_offset)
        return io_error_set(error, IO_TOO_LARGE, "%s: the file would exceed 2^63-1 bytes",
                            io_quote_path(path).text);
    io_status status = atomic_file_create(&writer->file, path, error);
    if (status == IO_OK)
        status = atomic_file_reserve(writer->file, writer->data_offset + writer->spec.bytes, error);
    if (status == IO_OK)
        status = atomic_file_write(writer->file, 0, header, (size_t)writer->data_offset, error);
    return status;
}

io_status npy_writer_begin(npy_writer **result, const char *path, tensor_dtype dtype, int rank,
                           const int64_t *shape, io_error *error)
{
    *result = NULL;
    tensor_spec spec;
    io_quoted name = io_quote_path(path);
    io_status status = tensor_spec_init(&spec, dtype, rank, shape, name.text, error);
    if (status != IO_OK)
        return status;
    if (tensor_dtype_npy_descr(dtype) == NULL)
        return io_error_set(error, IO_UNSUPPORTED,
                            "%s: .npy has no type for %s; its bits can be written as U8 or U16",
                            name.text, tensor_dtype_name(dtype));
    npy_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return io_error_out_of_memory(error, path, sizeof *writer);
    writer->spec = spec;
    status = start_file(writer, path, error);
    if (status != IO_OK) {
        npy_writer_abort(writer);
        return status;
    }
    *result = writer;
    return IO_OK;
}

io_status npy_writer_append(npy_writer *writer, const void *data, size_t bytes, io_error *error)
{
    uint64_t left = writer->spec.bytes - writer->written;
    if (bytes > left)
        return io_error_set(error, IO_ARGUMENT, "%s: %" PRIu64 " bytes are left to write, not %zu",
                            io_quote_path(atomic_file_path(writer->file)).text, left, bytes);
    io_status status =
        atomic_file_write(writer->file, writer->data_offset + writer->written, data, bytes, error);
    if (status == IO_OK)
        writer->written += bytes;
    return status;
}

io_status npy_writer_commit(npy_writer *writer, io_error *error)
{
    if (writer->written != writer->spec.bytes) {
        io_status status = io_error_set(error, IO_ARGUMENT,
                                        "%s: %" PRIu64 " of %" PRIu64
                                        " bytes were written; all must be before commit",
                                        io_quote_path(atomic_file_path(writer->file)).text,
                                        writer->written, writer->spec.bytes);
        npy_writer_abort(writer);
        return status;
    }
    io_status status = atomic_file_commit(writer->file, error);
    free(writer);
    return status;
}

void npy_writer_abort(npy_writer *writer)
{
    if (writer == NULL)
        return;
    atomic_file_abort(writer->file);
    free(writer);
}

io_status npy_write(const char *path, tensor_dtype dtype, int rank, const int64_t *shape,
                    const void *data, io_error *error)
{
    npy_writer *writer;
    io_status status = npy_writer_begin(&writer, path, dtype, rank, shape, error);
    if (status != IO_OK)
        return status;
    uint64_t bytes = writer->spec.bytes;
    if (bytes > SIZE_MAX)
        status =
            io_error_set(error, IO_ARGUMENT, "%s: %" PRIu64 " bytes of data cannot be in memory",
                         io_quote_path(path).text, bytes);
    else
        status = npy_writer_append(writer, data, (size_t)bytes, error);
    if (status != IO_OK) {
        npy_writer_abort(writer);
        return status;
    }
    return npy_writer_commit(writer, error);
}
