/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/safetensors_file.h"
#include "io/safetensors_index.h"

struct safetensors_model {
    char *label; /* path of the index, directory or file */
    safetensors_file **shards;
    size_t shard_count;
    size_t shard_capacity;
    const safetensors_tensor **list;    /* [count], in the order of the index */
    const safetensors_tensor **by_name; /* [count] */
    size_t count;
    size_t unlisted; /* all that the files hold, until sort_names takes the listed ones off */
};

static io_status out_of_memory(const char *label, io_error *error)
{
    return io_error_out_of_memory(error, label, sizeof(safetensors_tensor));
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

/* The shards lie beside the index. */
static io_status open_shards(safetensors_model *model, const safetensors_index *index,
                             const char *path, io_error *error)
{
    const char *slash = strrchr(path, '/');
    size_t directory_bytes = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    io_status status = IO_OK;
    for (size_t i = 0; i < index->shard_count && status == IO_OK; i++) {
        size_t name_bytes = strlen(index->shard_names[i]) + 1;
        char *shard_path = malloc(directory_bytes + name_bytes);
        if (shard_path == NULL)
            return out_of_memory(path, error);
        memcpy(shard_path, path, directory_bytes);
        memcpy(shard_path + directory_bytes, index->shard_names[i], name_bytes);
        status = add_shard(model, shard_path, error);
        free(shard_path);
    }
    return status;
}

static io_status link_entries(safetensors_model *model, const safetensors_index *index,
                              const char *path, io_error *error)
{
    size_t held = 0;
    for (size_t i = 0; i < model->shard_count; i++)
        held += model->shards[i]->count;
    model->list = calloc(index->count > 0 ? index->count : 1, sizeof *model->list);
    if (model->list == NULL)
        return out_of_memory(path, error);
    for (size_t i = 0; i < index->count; i++) {
        const index_entry *entry = &index->entries[i];
        model->list[i] = safetensors_find(model->shards[entry->shard], entry->name);
        if (model->list[i] == NULL)
            return io_error_set(error, IO_MALFORMED,
                                "%s: weight_map says that tensor %s is in %s, which does not hold "
                                "it",
                                io_quote_path(path).text, io_quote(entry->name).text,
                                io_quote(index->shard_names[entry->shard]).text);
    }
    model->count = index->count;
    model->unlisted = held;
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
            return io_error_set(
                error, IO_MALFORMED, "%s: weight_map has tensor %s twice; each name may occur once",
                io_quote_path(model->label).text, io_quote(model->by_name[i]->name).text);
    model->unlisted -= model->count;
    return IO_OK;
}

static io_status open_index(safetensors_model *model, const char *path, io_error *error)
{
    io_source source;
    io_status status = io_source_open_file(&source, path, error);
    if (status != IO_OK)
        return status;
    safetensors_index index = {0};
    status = safetensors_index_read(&index, &source, error);
    io_source_close(&source);
    if (status == IO_OK)
        status = open_shards(model, &index, path, error);
    if (status == IO_OK)
        status = link_entries(model, &index, path, error);
    safetensors_index_free(&index);
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
    model->unlisted = file->count;
    return IO_OK;
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text);
    return length >= strlen(suffix) && strcmp(text + length - strlen(suffix), suffix) == 0;
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
        const char *slash = has_suffix(path, "/") ? "" : "/";
        snprintf(inside, inside_bytes, "%s%s%s", path, slash, names[i]);
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
