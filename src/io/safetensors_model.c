/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/json_cursor.h"
#include "io/safetensors_file.h"

#define MAX_INDEX_BYTES SAFETENSORS_MAX_HEADER_BYTES
#define MAX_IGNORED_BYTES ((size_t)65536) /* JSON text of an index member that is not weight_map */
#define MAX_NAME_TEXT (6 * (size_t)SAFETENSORS_MAX_NAME_BYTES + 2)

typedef struct index_entry {
    const char *name; /* of the tensor */
    size_t shard;
} index_entry;

struct safetensors_model {
    char *label; /* path of the index, directory or file */
    safetensors_file **shards;
    size_t shard_count;
    size_t shard_capacity;
    const safetensors_tensor **list;    /* [count], in the order of the index */
    const safetensors_tensor **by_name; /* [count] */
    size_t count;
    size_t unlisted;
};

/* What an index says, while it is read. */
typedef struct index_reader {
    safetensors_model *model;
    const char *path;
    size_t directory_bytes; /* head of path up to and with the last '/' */
    json_cursor cursor;
    string_pool strings;
    index_entry *entries;
    size_t count;
    size_t capacity;
    json_t *shard_numbers; /* object: file name -> index of the shard */
    const char **shard_names;
    size_t shard_count;
    size_t shard_capacity;
} index_reader;

static io_status out_of_memory(const char *label, io_error *error)
{
    return io_error_out_of_memory(error, label, sizeof(index_entry));
}

/* ---- shards --------------------------------------------------------------------------------- */

static io_status add_shard(safetensors_model *model, const char *path, io_error *error)
{
    if (!array_reserve(&model->shards, model->shard_count, &model->shard_capacity,
                       sizeof *model->shards))
        return out_of_memory(path, error);
    safetensors_file *file;
    io_status status = safetensors_open(&file, path, error);
    if (status != IO_OK)
        return status;
    for (size_t i = 0; i < file->count; i++)
        file->tensors[i].shard = model->shard_count;
    model->shards[model->shard_count++] = file;
    return IO_OK;
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
    const json_t *known = json_object_get(reader->shard_numbers, name);
    if (known != NULL) {
        *number = (size_t)json_integer_value(known);
        return IO_OK;
    }
    if (!is_plain_name(name))
        return io_error_set(error, IO_MALFORMED,
                            "%s: weight_map names the file %s; a name without '/' is accepted",
                            io_quote_path(reader->path).text, io_quote(name).text);
    if (reader->shard_count == SAFETENSORS_MAX_SHARDS)
        return io_error_set(error, IO_TOO_LARGE,
                            "%s: weight_map names more than %u files, the most that is accepted",
                            io_quote_path(reader->path).text, SAFETENSORS_MAX_SHARDS);
    const char *copy = string_pool_add(&reader->strings, name, strlen(name));
    if (copy == NULL ||
        !array_reserve(&reader->shard_names, reader->shard_count, &reader->shard_capacity,
                       sizeof *reader->shard_names) ||
        json_object_set_new(reader->shard_numbers, name,
                            json_integer((json_int_t)reader->shard_count)) != 0)
        return out_of_memory(reader->path, error);
    *number = reader->shard_count;
    reader->shard_names[reader->shard_count++] = copy;
    return IO_OK;
}

/* ---- the index ------------------------------------------------------------------------------ */

static io_status read_weight(index_reader *reader, const json_t *name, io_error *error)
{
    io_quoted path = io_quote_path(reader->path);
    if (json_string_length(name) > SAFETENSORS_MAX_NAME_BYTES ||
        reader->count == SAFETENSORS_MAX_MODEL_TENSORS)
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
        string_pool_add(&reader->strings, json_string_value(name), json_string_length(name));
    if (copy == NULL ||
        !array_reserve(&reader->entries, reader->count, &reader->capacity, sizeof *reader->entries))
        return out_of_memory(reader->path, error);
    reader->entries[reader->count++] = (index_entry){copy, shard};
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
                                  io_quote_path(reader->path).text);
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
                              io_quote_path(reader->path).text);
    return status;
}

static io_status read_index_file(index_reader *reader, io_error *error)
{
    io_source source;
    io_status status = io_source_open_file(&source, reader->path, error);
    if (status != IO_OK)
        return status;
    char *text = NULL;
    if (source.size_bytes > MAX_INDEX_BYTES) {
        status = io_error_set(error, IO_TOO_LARGE,
                              "%s: has %" PRIu64 " bytes; at most %u are accepted of an index",
                              io_quote_path(reader->path).text, source.size_bytes, MAX_INDEX_BYTES);
    } else {
        text = malloc((size_t)source.size_bytes + 1);
        if (text == NULL)
            status = io_error_out_of_memory(error, reader->path, source.size_bytes);
        else
            status = io_source_read(&source, 0, text, (size_t)source.size_bytes, error);
    }
    if (status == IO_OK) {
        reader->cursor =
            (json_cursor){text, (size_t)source.size_bytes, 0, reader->path, "index"};
        status = read_index_text(reader, error);
    }
    free(text);
    io_source_close(&source);
    return status;
}

static io_status open_shards(index_reader *reader, io_error *error)
{
    io_status status = IO_OK;
    for (size_t i = 0; i < reader->shard_count && status == IO_OK; i++) {
        size_t name_bytes = strlen(reader->shard_names[i]) + 1;
        char *path = malloc(reader->directory_bytes + name_bytes);
        if (path == NULL)
            return out_of_memory(reader->path, error);
        memcpy(path, reader->path, reader->directory_bytes);
        memcpy(path + reader->directory_bytes, reader->shard_names[i], name_bytes);
        status = add_shard(reader->model, path, error);
        free(path);
    }
    return status;
}

static io_status link_entries(index_reader *reader, io_error *error)
{
    safetensors_model *model = reader->model;
    io_quoted path = io_quote_path(reader->path);
    size_t held = 0;
    for (size_t i = 0; i < model->shard_count; i++)
        held += model->shards[i]->count;
    model->list = calloc(reader->count > 0 ? reader->count : 1, sizeof *model->list);
    if (model->list == NULL)
        return out_of_memory(reader->path, error);
    for (size_t i = 0; i < reader->count; i++) {
        const index_entry *entry = &reader->entries[i];
        model->list[i] = safetensors_find(model->shards[entry->shard], entry->name);
        if (model->list[i] == NULL)
            return io_error_set(error, IO_MALFORMED,
                                "%s: weight_map says that tensor %s is in %s, which does not hold "
                                "it",
                                path.text, io_quote(entry->name).text,
                                io_quote(reader->shard_names[entry->shard]).text);
    }
    model->count = reader->count;
    model->unlisted = held - reader->count;
    return IO_OK;
}

static io_status sort_names(safetensors_model *model, io_error *error)
{
    model->by_name = calloc(model->count > 0 ? model->count : 1, sizeof *model->by_name);
    if (model->by_name == NULL)
        return out_of_memory(model->label, error);
    memcpy(model->by_name, model->list, model->count * sizeof *model->list);
    qsort(model->by_name, model->count, sizeof *model->by_name, safetensors_compare_names);
    for (size_t i = 1; i < model->count; i++)
        if (strcmp(model->by_name[i - 1]->name, model->by_name[i]->name) == 0)
            return io_error_set(error, IO_MALFORMED,
                                "%s: weight_map has tensor %s twice; each name may occur once",
                                io_quote_path(model->label).text,
                                io_quote(model->by_name[i]->name).text);
    return IO_OK;
}

static io_status open_index(safetensors_model *model, const char *path, io_error *error)
{
    const char *slash = strrchr(path, '/');
    index_reader reader = {.model = model, .path = path};
    reader.directory_bytes = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    reader.shard_numbers = json_object();
    io_status status = reader.shard_numbers != NULL ? read_index_file(&reader, error)
                                                    : out_of_memory(path, error);
    if (status == IO_OK)
        status = open_shards(&reader, error);
    if (status == IO_OK)
        status = link_entries(&reader, error);
    json_decref(reader.shard_numbers);
    string_pool_free(&reader.strings);
    free(reader.entries);
    free(reader.shard_names);
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

static io_status open_single(safetensors_model *model, const char *path, io_error *error)
{
    io_status status = add_shard(model, path, error);
    if (status != IO_OK)
        return status;
    const safetensors_file *file = model->shards[0];
    model->list = calloc(file->count > 0 ? file->count : 1, sizeof *model->list);
    if (model->list == NULL)
        return out_of_memory(path, error);
    for (size_t i = 0; i < file->count; i++)
        model->list[i] = &file->tensors[i];
    model->count = file->count;
    return IO_OK;
}

static io_status open_directory(safetensors_model *model, const char *path, io_error *error)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    size_t inside_bytes = strlen(path) + sizeof "/model.safetensors.index.json";
    char *inside = malloc(inside_bytes);
    if (inside == NULL)
        return out_of_memory(path, error);
    io_status status = IO_NOT_FOUND;
    for (int i = 0; i < 2 && status == IO_NOT_FOUND; i++) {
        struct stat found;
        snprintf(inside, inside_bytes, "%s/%s", path, names[i]);
        if (stat(inside, &found) == 0)
            status = i == 0 ? open_single(model, inside, error) : open_index(model, inside, error);
        else
            io_error_set(error, IO_NOT_FOUND,
                         "%s: the directory holds neither model.safetensors nor "
                         "model.safetensors.index.json",
                         io_quote_path(path).text);
    }
    free(inside);
    return status;
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text);
    return length >= strlen(suffix) && strcmp(text + length - strlen(suffix), suffix) == 0;
}

io_status safetensors_model_open(safetensors_model **result, const char *path, io_error *error)
{
    *result = NULL;
    safetensors_model *model = calloc(1, sizeof *model);
    if (model == NULL || (model->label = strdup(path)) == NULL) {
        free(model);
        return out_of_memory(path, error);
    }
    struct stat kind;
    io_status status;
    if (stat(path, &kind) == 0 && S_ISDIR(kind.st_mode))
        status = open_directory(model, path, error);
    else if (has_suffix(path, ".json"))
        status = open_index(model, path, error);
    else
        status = open_single(model, path, error);
    if (status == IO_OK)
        status = sort_names(model, error);
    if (status != IO_OK) {
        safetensors_model_close(model);
        return status;
    }
    *result = model;
    return IO_OK;
}

/* ---- access --------------------------------------------------------------------------------- */

size_t safetensors_model_count(const safetensors_model *model)
{
    return model->count;
}

const safetensors_tensor *safetensors_model_at(const safetensors_model *model, size_t index)
{
    return index < model->count ? model->list[index] : NULL;
}

const safetensors_tensor *safetensors_model_find(const safetensors_model *model, const char *name)
{
    return safetensors_search(model->by_name, model->count, name);
}

io_status safetensors_model_read(const safetensors_model *model, const safetensors_tensor *tensor,
                                 uint64_t offset, void *buffer, size_t bytes, io_error *error)
{
    if (tensor == NULL || tensor->shard >= model->shard_count)
        return io_error_set(error, IO_ARGUMENT, "%s: the tensor to be read is not of this model",
                            io_quote_path(model->label).text);
    return safetensors_read(model->shards[tensor->shard], tensor, offset, buffer, bytes, error);
}

size_t safetensors_model_shard_count(const safetensors_model *model)
{
    return model->shard_count;
}

const safetensors_file *safetensors_model_shard(const safetensors_model *model, size_t shard)
{
    return model->shards[shard];
}

size_t safetensors_model_unlisted_count(const safetensors_model *model)
{
    return model->unlisted;
}

void safetensors_model_close(safetensors_model *model)
{
    if (model == NULL)
        return;
    for (size_t i = 0; i < model->shard_count; i++)
        safetensors_close(model->shards[i]);
    free(model->shards);
    free(model->list);
    free(model->by_name);
    free(model->label);
    free(model);
}
