/* SPDX-License-Identifier: Apache-2.0 */
#include "io/safetensors_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_cursor.h"
#include "io/safetensors_file.h"

#define MAX_INDEX_BYTES SAFETENSORS_MAX_HEADER_BYTES
#define MAX_IGNORED_BYTES ((size_t)65536) /* JSON text of a member that is not weight_map */
#define MAX_NAME_TEXT (6 * (size_t)SAFETENSORS_MAX_NAME_BYTES + 2)

typedef struct index_reader {
    safetensors_index *index;
    json_cursor cursor;
    json_t *shard_numbers; /* object: file name -> index into shard_names */
} index_reader;

static io_status out_of_memory(const char *label, io_error *error)
{
    return io_error_out_of_memory(error, label, sizeof(index_entry));
}

/* Plain names only: an index must not reach files outside its directory. */
static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static io_status shard_number(index_reader *reader, const char *name, size_t *number,
                              io_error *error)
{
    safetensors_index *index = reader->index;
    const json_t *known = json_object_get(reader->shard_numbers, name);
    if (known != NULL) {
        *number = (size_t)json_integer_value(known);
        return IO_OK;
    }
    if (!is_plain_name(name))
        return io_error_set(error, IO_MALFORMED,
                            "%s: weight_map names the file %s; a name without '/' is accepted",
                            io_quote_path(reader->cursor.label).text, io_quote(name).text);
    if (index->shard_count == SAFETENSORS_MAX_SHARDS)
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: weight_map names more than %u files, the most that is accepted",
                            io_quote_path(reader->cursor.label).text, SAFETENSORS_MAX_SHARDS);
    const char *copy = string_pool_add(&index->strings, name, strlen(name));
    if (copy == NULL ||
        !array_reserve(&index->shard_names, index->shard_count, &index->shard_capacity,
                       sizeof *index->shard_names) ||
        json_object_set_new(reader->shard_numbers, name,
                            json_integer((json_int_t)index->shard_count)) != 0)
        return out_of_memory(reader->cursor.label, error);
    *number = index->shard_count;
    index->shard_names[index->shard_count++] = copy;
    return IO_OK;
}

/* ---- the index ------------------------------------------------------------------------------ */

static io_status read_weight(index_reader *reader, const json_t *name, io_error *error)
{
    safetensors_index *index = reader->index;
    io_quoted path = io_quote_path(reader->cursor.label);
    if (json_string_length(name) > SAFETENSORS_MAX_NAME_BYTES ||
        index->count == SAFETENSORS_MAX_MODEL_TENSORS)
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: weight_map, at tensor %s: at most %u tensors with names of at "
                            "most %u bytes are accepted",
                            path.text, io_quote(json_string_value(name)).text,
                            SAFETENSORS_MAX_MODEL_TENSORS, SAFETENSORS_MAX_NAME_BYTES);
    if (json_cursor_peek(&reader->cursor) != '"')
        return io_error_set(error, IO_MALFORMED,
                            "%s: weight_map, tensor %s: the file name is not a string", path.text,
                            io_quote(json_string_value(name)).text);
    json_t *file;
    io_status status =
        json_cursor_value(&reader->cursor, "a file name", MAX_NAME_TEXT, &file, error);
    if (status != IO_OK)
        return status;
    size_t shard = 0;
    status = shard_number(reader, json_string_value(file), &shard, error);
    json_decref(file);
    if (status != IO_OK)
        return status;
    const char *copy =
        string_pool_add(&index->strings, json_string_value(name), json_string_length(name));
    if (copy == NULL ||
        !array_reserve(&index->entries, index->count, &index->capacity, sizeof *index->entries))
        return out_of_memory(reader->cursor.label, error);
    index->entries[index->count++] = (index_entry){copy, shard};
    return IO_OK;
}

static io_status read_weight_map(index_reader *reader, io_error *error)
{
    io_status status = json_cursor_enter(&reader->cursor, "the '{' of weight_map", error);
    bool first = true;
    while (status == IO_OK) {
        json_t *name;
        status = json_cursor_key(&reader->cursor, &first, MAX_NAME_TEXT, &name, error);
        if (status != IO_OK || name == NULL)
            break;
        status = read_weight(reader, name, error);
        json_decref(name);
    }
    return status;
}

/* Members other than weight_map are checked to be JSON and dropped. */
static io_status read_index_text(index_reader *reader, io_error *error)
{
    json_cursor *cursor = &reader->cursor;
    bool first = true;
    bool seen = false;
    io_status status = json_cursor_enter(cursor, "'{'", error);
    while (status == IO_OK) {
        json_t *key;
        status = json_cursor_key(cursor, &first, MAX_NAME_TEXT, &key, error);
        if (status != IO_OK || key == NULL)
            break;
        if (strcmp(json_string_value(key), "weight_map") != 0) {
            json_t *ignored;
            status = json_cursor_value(cursor, io_quote(json_string_value(key)).text,
                                       MAX_IGNORED_BYTES, &ignored, error);
            json_decref(ignored);
        } else if (seen) {
            status = io_error_set(error, IO_MALFORMED, "%s: weight_map occurs twice",
                                  io_quote_path(reader->cursor.label).text);
        } else {
            seen = true;
            status = read_weight_map(reader, error);
        }
        json_decref(key);
    }
    if (status == IO_OK)
        status = json_cursor_end(cursor, error);
    if (status == IO_OK && !seen)
        status = io_error_set(error, IO_MALFORMED, "%s: has no weight_map",
                              io_quote_path(reader->cursor.label).text);
    return status;
}

static io_status read_text(safetensors_index *index, json_cursor cursor, io_error *error)
{
    index_reader reader = {index, cursor, json_object()};
    if (reader.shard_numbers == NULL)
        return out_of_memory(cursor.label, error);
    io_status status = read_index_text(&reader, error);
    json_decref(reader.shard_numbers);
    return status;
}

io_status safetensors_index_read(safetensors_index *index, const io_source *source, io_error *error)
{
    if (source->size_bytes > MAX_INDEX_BYTES)
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: has %" PRIu64 " bytes; at most %u are accepted of an index",
                            io_quote_path(source->label).text, source->size_bytes, MAX_INDEX_BYTES);
    size_t bytes = (size_t)source->size_bytes;
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return io_error_out_of_memory(error, source->label, bytes);
    io_status status = io_source_read(source, 0, text, bytes, error);
    if (status == IO_OK)
        status = read_text(index, (json_cursor){text, bytes, 0, source->label, "index"}, error);
    free(text);
    return status;
}

void safetensors_index_free(safetensors_index *index)
{
    string_pool_free(&index->strings);
    free(index->entries);
    free(index->shard_names);
    memset(index, 0, sizeof *index);
}
