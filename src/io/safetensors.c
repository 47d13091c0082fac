/* SPDX-License-Identifier: Apache-2.0 */
#include "io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors_file.h"

#define PREFIX_BYTES 8u /* the header length */

int safetensors_compare_names(const void *left, const void *right)
{
    const safetensors_tensor *const *a = left;
    const safetensors_tensor *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

int safetensors_compare_offsets(const void *left, const void *right)
{
    const safetensors_tensor *const *a = left;
    const safetensors_tensor *const *b = right;
    if ((*a)->offset != (*b)->offset)
        return (*a)->offset < (*b)->offset ? -1 : 1;
    /* At one offset the empty tensors come before the one that has bytes. */
    if ((*a)->spec.bytes != (*b)->spec.bytes)
        return (*a)->spec.bytes < (*b)->spec.bytes ? -1 : 1;
    return 0;
}

const safetensors_tensor *safetensors_search(const safetensors_tensor *const *by_name, size_t count,
                                             const char *name)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, by_name[middle]->name);
        if (order == 0)
            return by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Reads the length field into *bytes and checks it against the file. */
static io_status read_header_length(safetensors_file *file, uint64_t *bytes, io_error *error)
{
    const io_source *source = &file->source;
    io_quoted name = io_quote_path(source->label);
    if (source->size_bytes < PREFIX_BYTES + 2)
        return io_error_set(error, IO_MALFORMED,
                            "%s: has %" PRIu64 " bytes; a safetensors file has at least %u",
                            name.text, source->size_bytes, PREFIX_BYTES + 2);
    unsigned char prefix[PREFIX_BYTES];
    io_status status = io_source_read(source, 0, prefix, sizeof prefix, error);
    if (status != IO_OK)
        return status;
    if (memcmp(prefix, "version ", sizeof prefix) == 0)
        return io_error_set(error, IO_MALFORMED,
                            "%s: is a Git LFS pointer, not the file that it stands for", name.text);
    *bytes = 0;
    for (unsigned i = 0; i < PREFIX_BYTES; i++)
        *bytes |= (uint64_t)prefix[i] << (8 * i);
    uint64_t available = source->size_bytes - PREFIX_BYTES;
    if (*bytes > available)
        return io_error_set(error, IO_MALFORMED,
                            "%s: header length is %" PRIu64 " but only %" PRIu64
                            " bytes follow (truncated, or not a safetensors file)",
                            name.text, *bytes, available);
    if (*bytes < 2)
        return io_error_set(error, IO_MALFORMED,
                            "%s: header length is %" PRIu64 "; 2 or more is accepted", name.text,
                            *bytes);
    if (*bytes > SAFETENSORS_MAX_HEADER_BYTES)
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: header length is %" PRIu64 "; at most %u is accepted", name.text,
                            *bytes, SAFETENSORS_MAX_HEADER_BYTES);
    file->data_offset = PREFIX_BYTES + *bytes;
    return IO_OK;
}

static io_status read_header(safetensors_file *file, io_error *error)
{
    uint64_t bytes = 0;
    io_status status = read_header_length(file, &bytes, error);
    if (status != IO_OK)
        return status;
    char *text = malloc((size_t)bytes);
    if (text == NULL)
        return io_error_out_of_memory(error, file->source.label, bytes);
    status = io_source_read(&file->source, PREFIX_BYTES, text, (size_t)bytes, error);
    if (status == IO_OK && text[0] != '{')
        status = io_error_set(error, IO_MALFORMED,
                              "%s: the header starts with byte 0x%02x; '{' is accepted",
                              io_quote_path(file->source.label).text, (unsigned char)text[0]);
    if (status == IO_OK)
        status = safetensors_parse_header(file, text, (size_t)bytes, error);
    free(text);
    return status;
}

/* `sorted` holds the tensors by offset. */
static io_status check_tiling(const safetensors_file *file, const safetensors_tensor *const *sorted,
                              io_error *error)
{
    io_quoted label = io_quote_path(file->source.label);
    uint64_t end = file->data_offset;
    for (size_t i = 0; i < file->count; i++) {
        const safetensors_tensor *tensor = sorted[i];
        uint64_t begin = tensor->offset - file->data_offset;
        if (tensor->offset > end)
            return io_error_set(
                error, IO_MALFORMED,
                "%s: tensor %s starts at byte %" PRIu64
                " of the data but the tensors before it end at %" PRIu64 "; gaps are not accepted",
                label.text, io_quote(tensor->name).text, begin, end - file->data_offset);
        if (tensor->offset < end)
            return io_error_set(error, IO_MALFORMED,
                                "%s: tensor %s (from byte %" PRIu64
                                " of the data) overlaps tensor %s (up to byte %" PRIu64 ")",
                                label.text, io_quote(tensor->name).text, begin,
                                io_quote(sorted[i - 1]->name).text, end - file->data_offset);
        end += tensor->spec.bytes;
    }
    if (end != file->source.size_bytes)
        return io_error_set(
            error, IO_MALFORMED,
            "%s: the tensors end at byte %" PRIu64 " of the data, which has %" PRIu64
            " bytes; every byte must belong to a tensor",
            label.text, end - file->data_offset, file->source.size_bytes - file->data_offset);
    return IO_OK;
}

/* Sorts by offset for the tiling check, then by name, in which order the table stays. */
static io_status build_tables(safetensors_file *file, io_error *error)
{
    size_t count = file->count;
    file->by_name = malloc((count > 0 ? count : 1) * sizeof *file->by_name);
    if (file->by_name == NULL)
        return io_error_out_of_memory(error, file->source.label, count * sizeof *file->by_name);
    for (size_t i = 0; i < count; i++)
        file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, count, sizeof *file->by_name, safetensors_compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return io_error_set(
                error, IO_MALFORMED, "%s: tensor %s occurs twice; each name may occur once",
                io_quote_path(file->source.label).text, io_quote(file->by_name[i]->name).text);
    qsort(file->by_name, count, sizeof *file->by_name, safetensors_compare_offsets);
    io_status status = check_tiling(file, file->by_name, error);
    qsort(file->by_name, count, sizeof *file->by_name, safetensors_compare_names);
    return status;
}

io_status safetensors_open_source(safetensors_file **result, io_source *source, io_error *error)
{
    *result = NULL;
    safetensors_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        io_status status = io_error_out_of_memory(error, source->label, sizeof *file);
        io_source_close(source);
        return status;
    }
    file->source = *source;
    memset(source, 0, sizeof *source);
    io_status status = read_header(file, error);
    if (status == IO_OK)
        status = build_tables(file, error);
    if (status != IO_OK) {
        safetensors_close(file);
        return status;
    }
    *result = file;
    return IO_OK;
}

io_status safetensors_open(safetensors_file **file, const char *path, io_error *error)
{
    *file = NULL;
    io_source source;
    io_status status = io_source_open_file(&source, path, error);
    return status == IO_OK ? safetensors_open_source(file, &source, error) : status;
}

const char *safetensors_path(const safetensors_file *file)
{
    return file->source.label;
}

size_t safetensors_count(const safetensors_file *file)
{
    return file->count;
}

const safetensors_tensor *safetensors_at(const safetensors_file *file, size_t index)
{
    return index < file->count ? &file->tensors[index] : NULL;
}

const safetensors_tensor *safetensors_find(const safetensors_file *file, const char *name)
{
    return safetensors_search(file->by_name, file->count, name);
}

io_status safetensors_read(const safetensors_file *file, const safetensors_tensor *tensor,
                           uint64_t offset, void *buffer, size_t bytes, io_error *error)
{
    const char *label = file->source.label;
    /* Addresses as integers: the tensor may be of any other array. */
    uintptr_t address = (uintptr_t)tensor;
    uintptr_t first = (uintptr_t)file->tensors;
    if (tensor == NULL || address < first || address >= first + file->count * sizeof *tensor)
        return io_error_set(error, IO_ARGUMENT, "%s: the tensor to be read is not of this file",
                            io_quote_path(label).text);
    if (offset > tensor->spec.bytes || bytes > tensor->spec.bytes - offset)
        return io_error_set(error, IO_ARGUMENT,
                            "%s: tensor %s: %zu bytes from byte %" PRIu64
                            " on were asked for, but it has %" PRIu64,
                            io_quote_path(label).text, io_quote(tensor->name).text, bytes, offset,
                            tensor->spec.bytes);
    return io_source_read(&file->source, tensor->offset + offset, buffer, bytes, error);
}

size_t safetensors_metadata_count(const safetensors_file *file)
{
    return file->metadata_count;
}

const char *safetensors_metadata_key(const safetensors_file *file, size_t index)
{
    return file->metadata[index].key;
}

const char *safetensors_metadata_value(const safetensors_file *file, size_t index)
{
    return file->metadata[index].value;
}

const char *safetensors_metadata_find(const safetensors_file *file, const char *key)
{
    for (size_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

void safetensors_close(safetensors_file *file)
{
    if (file == NULL)
        return;
    io_source_close(&file->source);
    string_pool_free(&file->strings);
    free(file->tensors);
    free(file->by_name);
    free(file->metadata);
    free(file);
}
