/* SPDX-License-Identifier: Apache-2.0 */
#include "io/safetensors_writer.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/atomic_file.h"
#include "io/safetensors_file.h"
#include "io/string_pool.h"

#define PREFIX_BYTES 8u

typedef struct declared_tensor {
    const char *name;
    tensor_spec spec;
    uint64_t offset;  /* in the data section, then (after begin) in the file */
    uint64_t written; /* bytes */
} declared_tensor;

typedef enum writer_state { WRITER_DECLARING, WRITER_WRITING, WRITER_ENDED } writer_state;

struct safetensors_writer {
    writer_state state;
    string_pool strings;
    declared_tensor *tensors;
    size_t count;
    size_t capacity;
    metadata_entry *metadata;
    size_t metadata_count;
    size_t metadata_capacity;
    uint64_t file_bytes;
    atomic_file *file;
};

/* The header as it grows. */
typedef struct text_buffer {
    char *text;
    size_t length;
    size_t capacity;
    size_t limit;
    bool over_limit; /* else a failed append means that memory is short */
} text_buffer;

static io_status refuse_state(io_error *error, const char *call)
{
    return io_error_set(error, IO_ARGUMENT, "safetensors writer: %s was called out of order", call);
}

static io_status out_of_memory(io_error *error)
{
    return io_error_set(error, IO_OUT_OF_MEMORY, "safetensors writer: out of memory");
}

io_status safetensors_writer_create(safetensors_writer **writer, io_error *error)
{
    *writer = calloc(1, sizeof **writer);
    return *writer != NULL ? IO_OK : out_of_memory(error);
}

static bool is_utf8(const char *text)
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        size_t step = utf8_sequence_length(text + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

/* ---- declarations --------------------------------------------------------------------------- */

io_status safetensors_writer_add_metadata(safetensors_writer *writer, const char *key,
                                          const char *value, io_error *error)
{
    if (writer->state != WRITER_DECLARING)
        return refuse_state(error, "add_metadata");
    if (!is_utf8(key) || !is_utf8(value))
        return io_error_set(error, IO_ARGUMENT, "metadata %s: key and value must be UTF-8",
                            io_quote(key).text);
    if (writer->metadata_count == SAFETENSORS_MAX_METADATA_ENTRIES)
        return io_error_set(error, IO_TOO_LARGE, "metadata %s: at most %u keys are accepted",
                            io_quote(key).text, SAFETENSORS_MAX_METADATA_ENTRIES);
    if (!array_reserve(&writer->metadata, writer->metadata_count, &writer->metadata_capacity,
                       sizeof *writer->metadata))
        return out_of_memory(error);
    metadata_entry entry = {string_pool_add(&writer->strings, key, strlen(key)),
                            string_pool_add(&writer->strings, value, strlen(value))};
    if (entry.key == NULL || entry.value == NULL)
        return out_of_memory(error);
    writer->metadata[writer->metadata_count++] = entry;
    return IO_OK;
}

io_status safetensors_writer_add_tensor(safetensors_writer *writer, const char *name,
                                        tensor_dtype dtype, int rank, const int64_t *shape,
                                        size_t *index, io_error *error)
{
    if (writer->state != WRITER_DECLARING)
        return refuse_state(error, "add_tensor");
    size_t length = strlen(name);
    io_quoted quoted = io_quote(name);
    if (!is_utf8(name) || strcmp(name, "__metadata__") == 0)
        return io_error_set(error, IO_ARGUMENT,
                            "tensor %s: the name must be UTF-8 and not __metadata__", quoted.text);
    if (length > SAFETENSORS_MAX_NAME_BYTES || writer->count == SAFETENSORS_MAX_TENSORS)
        return io_error_set(error, IO_TOO_LARGE,
                            "tensor %s: at most %u tensors with names of at most %u bytes are "
                            "accepted",
                            quoted.text, SAFETENSORS_MAX_TENSORS, SAFETENSORS_MAX_NAME_BYTES);
    if (!array_reserve(&writer->tensors, writer->count, &writer->capacity, sizeof *writer->tensors))
        return out_of_memory(error);
    declared_tensor *tensor = &writer->tensors[writer->count];
    memset(tensor, 0, sizeof *tensor);
    char where[sizeof quoted + 8];
    snprintf(where, sizeof where, "tensor %s", quoted.text);
    io_status status = tensor_spec_init(&tensor->spec, dtype, rank, shape, where, error);
    if (status != IO_OK)
        return status;
    tensor->name = string_pool_add(&writer->strings, name, length);
    if (tensor->name == NULL)
        return out_of_memory(error);
    if (index != NULL)
        *index = writer->count;
    writer->count++;
    return IO_OK;
}

/* ---- layout --------------------------------------------------------------------------------- */

static int compare_layout(const void *left, const void *right)
{
    const declared_tensor *const *a = left;
    const declared_tensor *const *b = right;
    if ((*a)->spec.dtype != (*b)->spec.dtype)
        return (*a)->spec.dtype > (*b)->spec.dtype ? -1 : 1;
    return strcmp((*a)->name, (*b)->name);
}

static int compare_declared_names(const void *left, const void *right)
{
    const declared_tensor *const *a = left;
    const declared_tensor *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Refuses what is declared twice, sorts `order` into file order, places each tensor in the data. */
static io_status lay_out(safetensors_writer *writer, declared_tensor **order, const char *path,
                         uint64_t *data_bytes, io_error *error)
{
    for (size_t i = 0; i < writer->count; i++)
        order[i] = &writer->tensors[i];
    qsort(order, writer->count, sizeof *order, compare_declared_names);
    for (size_t i = 1; i < writer->count; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            return io_error_set(error, IO_ARGUMENT, "%s: tensor %s is declared twice",
                                io_quote_path(path).text, io_quote(order[i]->name).text);
    const char *key;
    if (!metadata_find_repeated(writer->metadata, writer->metadata_count, &key))
        return out_of_memory(error);
    if (key != NULL)
        return io_error_set(error, IO_ARGUMENT, "%s: the metadata key %s is given twice",
                            io_quote_path(path).text, io_quote(key).text);
    qsort(order, writer->count, sizeof *order, compare_layout);
    const uint64_t limit = (uint64_t)INT64_MAX - SAFETENSORS_MAX_HEADER_BYTES - PREFIX_BYTES;
    uint64_t end = 0;
    for (size_t i = 0; i < writer->count; i++) {
        order[i]->offset = end;
        if (order[i]->spec.bytes > limit - end)
            return io_error_set(error, IO_TOO_LARGE,
                                "%s: with tensor %s the file would exceed 2^63-1 bytes",
                                io_quote_path(path).text, io_quote(order[i]->name).text);
        end += order[i]->spec.bytes;
    }
    *data_bytes = end;
    return IO_OK;
}

/* ---- header --------------------------------------------------------------------------------- */

/* A json_dump_callback_t; 0 on success. */
static int buffer_append(const char *text, size_t length, void *context)
{
    text_buffer *buffer = context;
    if (length > buffer->limit - buffer->length) {
        buffer->over_limit = true;
        return -1;
    }
    if (length > buffer->capacity - buffer->length) {
        size_t capacity = buffer->capacity + buffer->capacity / 2 + length + 256;
        char *moved = realloc(buffer->text, capacity);
        if (moved == NULL)
            return -1;
        buffer->text = moved;
        buffer->capacity = capacity;
    }
    memcpy(buffer->text + buffer->length, text, length);
    buffer->length += length;
    return 0;
}

/* Appends a value that the JSON library holds; takes it over. False if it is NULL or room lacks. */
static bool append_json(text_buffer *buffer, json_t *value)
{
    bool ok = value != NULL &&
              json_dump_callback(value, buffer_append, buffer, JSON_COMPACT | JSON_ENCODE_ANY) == 0;
    json_decref(value);
    return ok;
}

static bool append_metadata(text_buffer *buffer, const safetensors_writer *writer)
{
    if (writer->metadata_count == 0)
        return true;
    bool ok = buffer_append("\"__metadata__\":", 15, buffer) == 0;
    size_t start = buffer->length;
    size_t whole_limit = buffer->limit;
    buffer->limit = start + SAFETENSORS_MAX_METADATA_BYTES;
    for (size_t i = 0; i < writer->metadata_count && ok; i++)
        ok = buffer_append(i == 0 ? "{" : ",", 1, buffer) == 0 &&
             append_json(buffer, json_string(writer->metadata[i].key)) &&
             buffer_append(":", 1, buffer) == 0 &&
             append_json(buffer, json_string(writer->metadata[i].value));
    ok = ok && buffer_append("}", 1, buffer) == 0;
    buffer->limit = whole_limit;
    return ok;
}

static json_t *describe(const declared_tensor *tensor)
{
    json_t *shape = json_array();
    bool ok = shape != NULL;
    for (int i = 0; i < tensor->spec.rank && ok; i++)
        ok = json_array_append_new(shape, json_integer(tensor->spec.shape[i])) == 0;
    if (!ok) {
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensor_dtype_name(tensor->spec.dtype),
                     "shape", shape, "data_offsets", (json_int_t)tensor->offset,
                     (json_int_t)(tensor->offset + tensor->spec.bytes));
}

static bool append_header(text_buffer *buffer, const safetensors_writer *writer,
                          declared_tensor *const *order)
{
    static const char zeros[PREFIX_BYTES];
    bool ok = buffer_append(zeros, PREFIX_BYTES, buffer) == 0 &&
              buffer_append("{", 1, buffer) == 0 && append_metadata(buffer, writer);
    for (size_t i = 0; i < writer->count && ok; i++) {
        if (i > 0 || writer->metadata_count > 0)
            ok = buffer_append(",", 1, buffer) == 0;
        ok = ok && append_json(buffer, json_string(order[i]->name)) &&
             buffer_append(":", 1, buffer) == 0 && append_json(buffer, describe(order[i]));
    }
    ok = ok && buffer_append("}", 1, buffer) == 0;
    while (ok && buffer->length % 8 != 0)
        ok = buffer_append(" ", 1, buffer) == 0;
    for (unsigned i = 0; i < PREFIX_BYTES && ok; i++)
        buffer->text[i] = (char)((uint64_t)(buffer->length - PREFIX_BYTES) >> (8 * i) & 0xff);
    return ok;
}

static io_status write_file_start(safetensors_writer *writer, const text_buffer *header,
                                  const char *path, uint64_t data_bytes, io_error *error)
{
    io_status status = atomic_file_create(&writer->file, path, error);
    if (status == IO_OK)
        status = atomic_file_reserve(writer->file, header->length + data_bytes, error);
    if (status == IO_OK)
        status = atomic_file_write(writer->file, 0, header->text, header->length, error);
    if (status != IO_OK)
        return status;
    writer->file_bytes = header->length + data_bytes;
    for (size_t i = 0; i < writer->count; i++)
        writer->tensors[i].offset += header->length;
    return IO_OK;
}

io_status safetensors_writer_begin(safetensors_writer *writer, const char *path, io_error *error)
{
    if (writer->state != WRITER_DECLARING)
        return refuse_state(error, "begin");
    writer->state = WRITER_ENDED; /* until all of it has succeeded */
    text_buffer header = {.limit = SAFETENSORS_MAX_HEADER_BYTES};
    uint64_t data_bytes = 0;
    declared_tensor **order = malloc((writer->count > 0 ? writer->count : 1) * sizeof *order);
    io_status status =
        order != NULL ? lay_out(writer, order, path, &data_bytes, error) : out_of_memory(error);
    if (status == IO_OK && !append_header(&header, writer, order))
        status = header.over_limit
                     ? io_error_set(error, IO_TOO_LARGE,
                                    "%s: the header or its metadata would exceed %u or %u bytes",
                                    io_quote_path(path).text, SAFETENSORS_MAX_HEADER_BYTES,
                                    SAFETENSORS_MAX_METADATA_BYTES)
                     : out_of_memory(error);
    if (status == IO_OK)
        status = write_file_start(writer, &header, path, data_bytes, error);
    free(order);
    free(header.text);
    if (status == IO_OK) {
        writer->state = WRITER_WRITING;
    } else {
        atomic_file_abort(writer->file);
        writer->file = NULL;
    }
    return status;
}

/* ---- data ----------------------------------------------------------------------------------- */

io_status safetensors_writer_append(safetensors_writer *writer, size_t index, const void *data,
                                    size_t bytes, io_error *error)
{
    if (writer->state != WRITER_WRITING)
        return refuse_state(error, "append");
    const char *path = atomic_file_path(writer->file);
    if (index >= writer->count)
        return io_error_set(error, IO_ARGUMENT, "%s: tensor number %zu was asked for; %zu exist",
                            io_quote_path(path).text, index, writer->count);
    declared_tensor *tensor = &writer->tensors[index];
    if (bytes > tensor->spec.bytes - tensor->written)
        return io_error_set(error, IO_ARGUMENT,
                            "%s: tensor %s has %" PRIu64 " bytes left to write, not %zu",
                            io_quote_path(path).text, io_quote(tensor->name).text,
                            tensor->spec.bytes - tensor->written, bytes);
    io_status status =
        atomic_file_write(writer->file, tensor->offset + tensor->written, data, bytes, error);
    if (status == IO_OK)
        tensor->written += bytes;
    return status;
}

uint64_t safetensors_writer_file_bytes(const safetensors_writer *writer)
{
    return writer->file_bytes;
}

static io_status check_complete(const safetensors_writer *writer, io_error *error)
{
    for (size_t i = 0; i < writer->count; i++) {
        const declared_tensor *tensor = &writer->tensors[i];
        if (tensor->written != tensor->spec.bytes)
            return io_error_set(error, IO_ARGUMENT,
                                "%s: tensor %s has %" PRIu64 " of its %" PRIu64
                                " bytes; all must be written before commit",
                                io_quote_path(atomic_file_path(writer->file)).text,
                                io_quote(tensor->name).text, tensor->written, tensor->spec.bytes);
    }
    return IO_OK;
}

io_status safetensors_writer_commit(safetensors_writer *writer, io_error *error)
{
    if (writer->state != WRITER_WRITING)
        return refuse_state(error, "commit");
    writer->state = WRITER_ENDED;
    io_status status = check_complete(writer, error);
    if (status == IO_OK)
        status = atomic_file_commit(writer->file, error);
    else
        atomic_file_abort(writer->file);
    writer->file = NULL;
    return status;
}

void safetensors_writer_destroy(safetensors_writer *writer)
{
    if (writer == NULL)
        return;
    atomic_file_abort(writer->file);
    string_pool_free(&writer->strings);
    free(writer->tensors);
    free(writer->metadata);
    free(writer);
}
