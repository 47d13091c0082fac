/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_cursor.h"
#include "io/safetensors_file.h"

/* A name of n bytes may be written as n escapes \u00XX and two quotes. */
#define MAX_NAME_TEXT (6 * (size_t)SAFETENSORS_MAX_NAME_BYTES + 2)

#define WHERE_BYTES (2 * sizeof(io_quoted) + 16)

#define XX(name, text, bytes, npy) " " text
static const char accepted_dtypes[] = "accepted are" TENSOR_DTYPE_MAP(XX);
#undef XX

bool array_reserve(void *array, size_t count, size_t *capacity, size_t element_bytes)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity + *capacity / 2 + 16;
    void *old;
    memcpy(&old, array, sizeof old);
    if (larger > SIZE_MAX / element_bytes)
        return false;
    void *moved = realloc(old, larger * element_bytes);
    if (moved == NULL)
        return false;
    memcpy(array, &moved, sizeof moved);
    *capacity = larger;
    return true;
}

static io_status out_of_memory(const safetensors_file *file, io_error *error)
{
    return io_error_out_of_memory(error, file->source.label, sizeof(safetensors_tensor));
}

/* ---- one tensor ----------------------------------------------------------------------------- */

static io_status parse_dtype(const json_t *value, const char *where, tensor_dtype *dtype,
                             io_error *error)
{
    static const char *const known[] = {"F4", "F6_E2M3", "F6_E3M2", "C64"};
    const char *name = json_string_value(value);
    if (name == NULL)
        return io_error_set(error, IO_MALFORMED, "%s: dtype is not a string", where);
    if (tensor_dtype_from_name(name, dtype))
        return IO_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i]) == 0)
            return io_error_set(error, IO_UNSUPPORTED, "%s: dtype %s is not supported; %s", where,
                                name, accepted_dtypes);
    return io_error_set(error, IO_MALFORMED, "%s: dtype %s is not known; %s", where,
                        io_quote(name).text, accepted_dtypes);
}

/* An array of integers >= 0 into out[0..max). *count may exceed max: the rest is not stored. */
static io_status parse_integers(const json_t *value, const char *where, const char *key,
                                int64_t *out, size_t max, size_t *count, io_error *error)
{
    if (!json_is_array(value))
        return io_error_set(error, IO_MALFORMED, "%s: %s is not an array", where, key);
    *count = json_array_size(value);
    for (size_t i = 0; i < *count && i < max; i++) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_integer(item))
            return io_error_set(error, IO_MALFORMED, "%s: %s[%zu] is not an integer", where, key,
                                i);
        out[i] = json_integer_value(item);
        if (out[i] < 0)
            return io_error_set(error, IO_MALFORMED,
                                "%s: %s[%zu] is %" PRId64 "; 0 or more is accepted", where, key, i,
                                out[i]);
    }
    return IO_OK;
}

static io_status parse_shape(const json_t *value, const char *where, tensor_dtype dtype,
                             tensor_spec *spec, io_error *error)
{
    int64_t shape[TENSOR_MAX_RANK];
    size_t rank;
    io_status status = parse_integers(value, where, "shape", shape, TENSOR_MAX_RANK, &rank, error);
    if (status != IO_OK)
        return status;
    /* Any rank that is too large will do for the message below INT_MAX: an entry is short. */
    return tensor_spec_init(spec, dtype, (int)rank, shape, where, error);
}

static io_status parse_offsets(const safetensors_file *file, const json_t *value, const char *where,
                               safetensors_tensor *tensor, io_error *error)
{
    int64_t range[2];
    size_t count;
    io_status status = parse_integers(value, where, "data_offsets", range, 2, &count, error);
    if (status != IO_OK)
        return status;
    if (count != 2)
        return io_error_set(error, IO_MALFORMED,
                            "%s: data_offsets has %zu elements; [begin, end] is accepted", where,
                            count);
    if (range[1] < range[0] || (uint64_t)(range[1] - range[0]) != tensor->spec.bytes) {
        char shape[168];
        tensor_shape_format(&tensor->spec, shape, sizeof shape);
        return io_error_set(error, IO_MALFORMED,
                            "%s: data_offsets [%" PRId64 ", %" PRId64 "] do not hold the %" PRIu64
                            " bytes of shape %s of %s",
                            where, range[0], range[1], tensor->spec.bytes, shape,
                            tensor_dtype_name(tensor->spec.dtype));
    }
    uint64_t data_bytes = file->source.size_bytes - file->data_offset;
    if ((uint64_t)range[1] > data_bytes)
        return io_error_set(error, IO_MALFORMED,
                            "%s: ends at byte %" PRId64 " of the data, but the file has only "
                            "%" PRIu64 " bytes of data (is it truncated?)",
                            where, range[1], data_bytes);
    tensor->offset = file->data_offset + (uint64_t)range[0];
    return IO_OK;
}

static io_status parse_tensor(const safetensors_file *file, json_t *entry, const char *where,
                              safetensors_tensor *tensor, io_error *error)
{
    static const char *const keys[3] = {"dtype", "shape", "data_offsets"};
    const json_t *values[3];
    for (int i = 0; i < 3; i++) {
        values[i] = json_object_get(entry, keys[i]);
        if (values[i] == NULL)
            return io_error_set(error, IO_MALFORMED, "%s: has no %s", where, keys[i]);
    }
    if (json_object_size(entry) != 3) {
        const char *key = "";
        json_t *value;
        json_object_foreach(entry, key, value)
        {
            if (strcmp(key, keys[0]) != 0 && strcmp(key, keys[1]) != 0 && strcmp(key, keys[2]) != 0)
                break;
        }
        return io_error_set(error, IO_MALFORMED,
                            "%s: key %s is not known; dtype, shape and data_offsets are accepted",
                            where, io_quote(key).text);
    }
    tensor_dtype dtype;
    io_status status = parse_dtype(values[0], where, &dtype, error);
    if (status == IO_OK)
        status = parse_shape(values[1], where, dtype, &tensor->spec, error);
    if (status == IO_OK)
        status = parse_offsets(file, values[2], where, tensor, error);
    return status;
}

static io_status add_tensor(safetensors_file *file, json_cursor *cursor, const json_t *name,
                            io_error *error)
{
    char where[WHERE_BYTES];
    io_quoted quoted = io_quote(json_string_value(name));
    snprintf(where, sizeof where, "%s: tensor %s", io_quote_path(file->source.label).text,
             quoted.text);
    if (json_string_length(name) > SAFETENSORS_MAX_NAME_BYTES)
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: the name has %zu bytes; at most %u are accepted", where,
                            json_string_length(name), SAFETENSORS_MAX_NAME_BYTES);
    if (file->count == SAFETENSORS_MAX_TENSORS)
        return io_error_set(error, IO_TOO_LARGE, "%s: is one too many; at most %u are accepted",
                            where, SAFETENSORS_MAX_TENSORS);
    if (json_cursor_peek(cursor) != '{')
        return io_error_set(error, IO_MALFORMED, "%s: its description is not a JSON object", where);
    if (!array_reserve(&file->tensors, file->count, &file->capacity, sizeof *file->tensors))
        return out_of_memory(file, error);

    safetensors_tensor *tensor = &file->tensors[file->count];
    memset(tensor, 0, sizeof *tensor);
    json_t *entry;
    char what[sizeof quoted + 32];
    snprintf(what, sizeof what, "the description of tensor %s", quoted.text);
    io_status status = json_cursor_value(cursor, what, SAFETENSORS_MAX_ENTRY_BYTES, &entry, error);
    if (status != IO_OK)
        return status;
    status = parse_tensor(file, entry, where, tensor, error);
    json_decref(entry);
    if (status != IO_OK)
        return status;
    tensor->name =
        string_pool_add(&file->strings, json_string_value(name), json_string_length(name));
    if (tensor->name == NULL)
        return out_of_memory(file, error);
    file->count++;
    return IO_OK;
}

/* ---- __metadata__ --------------------------------------------------------------------------- */

static int compare_keys(const void *left, const void *right)
{
    const metadata_entry *const *a = left;
    const metadata_entry *const *b = right;
    return strcmp((*a)->key, (*b)->key);
}

bool metadata_find_repeated(const metadata_entry *entries, size_t count, const char **key)
{
    *key = NULL;
    const metadata_entry **sorted = malloc((count > 0 ? count : 1) * sizeof *sorted);
    if (sorted == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &entries[i];
    qsort(sorted, count, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < count && *key == NULL; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            *key = sorted[i]->key;
    free(sorted);
    return true;
}

static io_status add_metadata_entry(safetensors_file *file, json_cursor *cursor, const json_t *key,
                                    size_t room, io_error *error)
{
    const char *label = file->source.label;
    io_quoted quoted = io_quote(json_string_value(key));
    if (file->metadata_count == SAFETENSORS_MAX_METADATA_ENTRIES)
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: __metadata__ has more than %u keys, the most that is accepted",
                            io_quote_path(label).text, SAFETENSORS_MAX_METADATA_ENTRIES);
    if (json_cursor_peek(cursor) != '"')
        return io_error_set(error, IO_MALFORMED,
                            "%s: the value of %s in __metadata__ is not a string",
                            io_quote_path(label).text, quoted.text);
    if (!array_reserve(&file->metadata, file->metadata_count, &file->metadata_capacity,
                       sizeof *file->metadata))
        return out_of_memory(file, error);
    json_t *value;
    io_status status = json_cursor_value(cursor, "__metadata__", room, &value, error);
    if (status != IO_OK)
        return status;
    metadata_entry *entry = &file->metadata[file->metadata_count];
    entry->key = string_pool_add(&file->strings, json_string_value(key), json_string_length(key));
    entry->value =
        string_pool_add(&file->strings, json_string_value(value), json_string_length(value));
    json_decref(value);
    if (entry->key == NULL || entry->value == NULL)
        return out_of_memory(file, error);
    file->metadata_count++;
    return IO_OK;
}

static io_status parse_metadata(safetensors_file *file, json_cursor *cursor, io_error *error)
{
    io_status status = json_cursor_enter(cursor, "the '{' of __metadata__", error);
    size_t start = cursor->at;
    bool first = true;
    while (status == IO_OK) {
        size_t used = cursor->at - start;
        if (used >= SAFETENSORS_MAX_METADATA_BYTES)
            return io_error_set(error, IO_TOO_LARGE,
                                "%s: __metadata__ takes more than %u bytes of JSON, the most that "
                                "is accepted",
                                io_quote_path(cursor->label).text, SAFETENSORS_MAX_METADATA_BYTES);
        size_t room = SAFETENSORS_MAX_METADATA_BYTES - used;
        json_t *key;
        status = json_cursor_key(cursor, &first, room, &key, error);
        if (status != IO_OK || key == NULL)
            break;
        status = add_metadata_entry(file, cursor, key, room, error);
        json_decref(key);
    }
    if (status != IO_OK)
        return status;
    const char *repeated;
    if (!metadata_find_repeated(file->metadata, file->metadata_count, &repeated))
        return out_of_memory(file, error);
    if (repeated != NULL)
        return io_error_set(error, IO_MALFORMED,
                            "%s: __metadata__ has the key %s twice; each may occur once",
                            io_quote_path(cursor->label).text, io_quote(repeated).text);
    return IO_OK;
}

/* ---- the header ----------------------------------------------------------------------------- */

io_status safetensors_parse_header(safetensors_file *file, const char *text, size_t bytes,
                                   io_error *error)
{
    json_cursor cursor = {text, bytes, 0, file->source.label, "header"};
    bool first = true;
    bool metadata_seen = false;
    io_status status = json_cursor_enter(&cursor, "'{'", error);
    while (status == IO_OK) {
        json_t *name;
        status = json_cursor_key(&cursor, &first, MAX_NAME_TEXT, &name, error);
        if (status != IO_OK || name == NULL)
            break;
        if (strcmp(json_string_value(name), "__metadata__") != 0) {
            status = add_tensor(file, &cursor, name, error);
        } else if (metadata_seen) {
            status = io_error_set(error, IO_MALFORMED, "%s: __metadata__ occurs twice",
                                  io_quote_path(file->source.label).text);
        } else {
            metadata_seen = true;
            status = parse_metadata(file, &cursor, error);
        }
        json_decref(name);
    }
    return status == IO_OK ? json_cursor_end(&cursor, error) : status;
}
