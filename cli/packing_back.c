/* SPDX-License-Identifier: Apache-2.0 */
/* The way back: from packed tensors to the checkpoint's tensors, by the names in the metadata. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "names.h"
#include "packing.h"
#include "progress.h"

enum { WEIGHT, SCALE, INPUT, SHAPE, KINDS };

/* ---- metadata -------------------------------------------------------------------------------- */

static bool dtype_of_type(const char *name, tensor_dtype *dtype)
{
    static const tensor_dtype dtypes[] = {TENSOR_F32, TENSOR_BF16, TENSOR_F16, TENSOR_F8_E4M3};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; ++i) {
        if (strcmp(halfbyte_type_name(tensor_element_type(dtypes[i])), name) == 0) {
            *dtype = dtypes[i];
            return true;
        }
    }
    return false;
}

/* What is understood is written again and compared, so nothing is believed that is not. */
static bool metadata_parse(pack_matrix *matrix, const char *value)
{
    enum { FLAGS, N, K, GROUPS, SIZE, NUMBERS };
    char digits[NUMBERS][20] = {""}, type[16] = "", source[16] = "", inputs[8] = "", shape[8] = "";
    char again[PACK_METADATA_BYTES];
    int64_t number[NUMBERS] = {0};
    if (sscanf(value,
               "version=1 flags=%19[0-9] n=%19[0-9] k=%19[0-9] groups=%19[0-9] group_k_offset=0 "
               "weight_group_size=%19[0-9] scale_type=%15s source=%15s inputs=%7s shape=%7s",
               digits[FLAGS], digits[N], digits[K], digits[GROUPS], digits[SIZE], type, source,
               inputs, shape) != NUMBERS + 4)
        return false;
    for (int i = 0; i < NUMBERS; ++i) {
        if (!cli_parse_int(digits[i], 0, INT64_MAX, &number[i]))
            return false;
    }
    const int64_t n = number[N], k = number[K], groups = number[GROUPS], size = number[SIZE];
    if (k < 1 || k > INT32_MAX || n > INT32_MAX || n % matrix->parts != 0 || groups < 1 ||
        groups > 1 << 20 || (size != 0 && size != 32 && size != 64 && size != 128))
        return false;
    matrix->experts = groups;
    matrix->rows = n / matrix->parts;
    matrix->k = k;
    matrix->group_size = size;
    matrix->holds_minus8 = number[FLAGS] != 0;
    matrix->scheme =
        strcmp(source, scheme_name(SCHEME_W4AFP8)) == 0 ? SCHEME_W4AFP8 : SCHEME_PACK_QUANTIZED;
    matrix->inputs = strcmp(inputs, "w") == 0     ? PACK_INPUTS_W
                     : strcmp(inputs, "own") == 0 ? PACK_INPUTS_OWN
                                                  : PACK_INPUTS_NONE;
    if (!dtype_of_type(type, &matrix->scale_dtype) ||
        !tensor_dtype_from_name(shape, &matrix->shape_dtype) ||
        (matrix->shape_dtype != TENSOR_I64 && matrix->shape_dtype != TENSOR_I32) ||
        (matrix->scheme == SCHEME_W4AFP8 && k % 2 != 0))
        return false;
    pack_metadata_format(matrix, again);
    return strcmp(again, value) == 0;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int find_tensor(const pack_job *job, const pack_matrix *matrix, const char *what,
                       uint64_t bytes, const safetensors_tensor **found)
{
    char *name = pack_name(job, matrix, what);
    if (name == NULL)
        return cli_fail_memory(1);
    int code = CLI_OK;
    *found = safetensors_model_find(job->model, name);
    if (*found == NULL)
        code = cli_fail(CLI_CHECK_FAILED, "%s: is missing", io_quote(name).text);
    else if ((*found)->spec.bytes != bytes)
        code = cli_fail(CLI_CHECK_FAILED, "%s: %llu bytes, expected %llu", io_quote(name).text,
                        (unsigned long long)(*found)->spec.bytes, (unsigned long long)bytes);
    free(name);
    return code;
}

static int find_matrix(pack_job *job, pack_matrix *matrix, const char *value)
{
    size_t packed = 0;
    if (!metadata_parse(matrix, value))
        return cli_fail(CLI_CHECK_FAILED, "metadata of %s.%s: not understood: %s",
                        io_quote(job->prefix).text, matrix->projection, io_quote(value).text);
    halfbyte_int4_desc desc = pack_desc(matrix, matrix->rows * matrix->parts);
    desc.groups = matrix->experts;
    desc.group_stride = desc.n * desc.ld;
    if (halfbyte_packed_weights_bytes(&desc, &packed) != HALFBYTE_SUCCESS)
        return cli_fail(CLI_CHECK_FAILED, "%s", halfbyte_last_error());
    uint64_t parts = (uint64_t)(matrix->experts * matrix->parts);
    uint64_t scales = parts * (uint64_t)matrix->rows * (uint64_t)pack_k_groups(matrix) *
                      tensor_dtype_bytes(matrix->scale_dtype);
    int code = find_tensor(job, matrix, "packed", packed, &matrix->packed);
    if (code == CLI_OK)
        code = find_tensor(job, matrix, "scale", scales, &matrix->scale);
    if (code == CLI_OK && matrix->scale->spec.dtype != matrix->scale_dtype)
        code = cli_fail(
            CLI_CHECK_FAILED, "%s: type %s, expected %s", io_quote(matrix->scale->name).text,
            tensor_dtype_name(matrix->scale->spec.dtype), tensor_dtype_name(matrix->scale_dtype));
    if (code == CLI_OK && matrix->inputs != PACK_INPUTS_NONE) {
        char *name = pack_name(job, matrix, "input_scale");
        const safetensors_tensor *input =
            name != NULL ? safetensors_model_find(job->model, name) : NULL;
        matrix->input_dtype = input != NULL ? input->spec.dtype : TENSOR_F32;
        free(name);
        code = find_tensor(job, matrix, "input_scale",
                           parts * tensor_dtype_bytes(matrix->input_dtype), &matrix->input_scale);
    }
    job->bytes += packed;
    return code;
}

/* PREFIX is in the key of the first projection's metadata. */
static const char *find_metadata(const pack_job *job, const char *prefix, const char *projection)
{
    char *key = NULL;
    const char *value = NULL;
    if (asprintf(&key, PACK_KEY "%s.%s.packed", prefix, projection) < 0)
        return NULL;
    for (size_t s = 0; value == NULL && s < safetensors_model_shard_count(job->model); ++s)
        value = safetensors_metadata_find(safetensors_model_shard(job->model, s), key);
    free(key);
    return value;
}

static char *find_prefix(const pack_job *job)
{
    for (size_t s = 0; s < safetensors_model_shard_count(job->model); ++s) {
        const safetensors_file *file = safetensors_model_shard(job->model, s);
        for (size_t i = 0; i < safetensors_metadata_count(file); ++i) {
            const char *key = safetensors_metadata_key(file, i);
            const char *end = ".down_proj.packed";
            if (strncmp(key, PACK_KEY, strlen(PACK_KEY)) == 0 && name_ends_with(key, end) &&
                strlen(key) > strlen(PACK_KEY) + strlen(end))
                return name_join(key + strlen(PACK_KEY),
                                 strlen(key) - strlen(PACK_KEY) - strlen(end), "");
        }
    }
    return NULL;
}

int unpack_find(pack_job *job, const char *input)
{
    job->prefix = find_prefix(job);
    if (job->prefix == NULL)
        return cli_fail(CLI_USAGE, "%s holds nothing that halfbyte pack has written",
                        io_quote_path(input).text);
    for (int i = 0; i < PACK_MATRICES; ++i) {
        pack_matrix *matrix = &job->matrices[i];
        const char *value = find_metadata(job, job->prefix, matrix->projection);
        if (value == NULL)
            return cli_fail(CLI_CHECK_FAILED, "metadata of %s.%s are missing",
                            io_quote(job->prefix).text, matrix->projection);
        int code = find_matrix(job, matrix, value);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

/* ---- declaration ----------------------------------------------------------------------------- */

static io_status declare(pack_job *job, const char *layer_name, const char *suffix,
                         tensor_dtype dtype, int rank, const int64_t *shape, size_t *index,
                         io_error *error)
{
    char *name = name_join(layer_name, strlen(layer_name), suffix);
    if (name == NULL)
        return io_error_set(error, IO_OUT_OF_MEMORY, "out of memory");
    io_status status =
        safetensors_writer_add_tensor(job->writer, name, dtype, rank, shape, index, error);
    free(name);
    return status;
}

static io_status declare_input(pack_job *job, const pack_matrix *matrix, int64_t expert, int part,
                               size_t *index, io_error *error)
{
    const int64_t one[] = {1};
    const char *name = matrix->inputs == PACK_INPUTS_W ? matrix->w[part] : matrix->names[part];
    char *full = NULL;
    if (asprintf(&full, "%s.%lld.%s", job->prefix, (long long)expert, name) < 0)
        return io_error_set(error, IO_OUT_OF_MEMORY, "out of memory");
    io_status status =
        declare(job, full, ".input_scale", matrix->input_dtype, 1, one, index, error);
    free(full);
    return status;
}

static io_status declare_layer(pack_job *job, const pack_matrix *matrix, int64_t expert, int part,
                               io_error *error)
{
    const bool int8 = matrix->scheme == SCHEME_W4AFP8;
    const int64_t weight[] = {matrix->rows, (int64_t)pack_row_bytes(matrix) / (int8 ? 1 : 4)};
    const int64_t scale[] = {matrix->rows, pack_k_groups(matrix)};
    const int64_t two[] = {2};
    size_t *index = matrix->indices + (expert * matrix->parts + part) * KINDS;
    char *name = NULL;
    if (asprintf(&name, "%s.%lld.%s", job->prefix, (long long)expert, matrix->names[part]) < 0)
        return io_error_set(error, IO_OUT_OF_MEMORY, "out of memory");
    io_status status = declare(job, name, int8 ? ".weight" : ".weight_packed",
                               int8 ? TENSOR_I8 : TENSOR_I32, 2, weight, &index[WEIGHT], error);
    if (status == IO_OK)
        status = declare(job, name, int8 ? ".weight_scale_inv" : ".weight_scale",
                         matrix->scale_dtype, 2, scale, &index[SCALE], error);
    if (status == IO_OK && !int8)
        status =
            declare(job, name, ".weight_shape", matrix->shape_dtype, 1, two, &index[SHAPE], error);
    if (status == IO_OK && matrix->inputs != PACK_INPUTS_NONE)
        status = declare_input(job, matrix, expert, part, &index[INPUT], error);
    free(name);
    return status;
}

io_status unpack_declare(pack_job *job, io_error *error)
{
    io_status status = IO_OK;
    for (int i = 0; status == IO_OK && i < PACK_MATRICES; ++i) {
        pack_matrix *matrix = &job->matrices[i];
        int64_t layers = matrix->experts * matrix->parts;
        matrix->indices = calloc((size_t)layers * KINDS, sizeof *matrix->indices);
        if (matrix->indices == NULL)
            return io_error_set(error, IO_OUT_OF_MEMORY, "out of memory");
        for (int64_t j = 0; status == IO_OK && j < layers; ++j)
            status = declare_layer(job, matrix, j / matrix->parts, (int)(j % matrix->parts), error);
    }
    return status;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Rows first .. first + count of an expert, which may belong to gate and to up. */
static io_status append_rows(pack_job *job, const pack_matrix *matrix, int64_t expert,
                             int64_t first, int64_t count, const unsigned char *from,
                             io_error *error)
{
    size_t row_bytes = pack_row_bytes(matrix);
    io_status status = IO_OK;
    while (status == IO_OK && count > 0) {
        int64_t part = first / matrix->rows, row = first % matrix->rows;
        int64_t here = matrix->rows - row < count ? matrix->rows - row : count;
        size_t index = matrix->indices[(expert * matrix->parts + part) * KINDS + WEIGHT];
        status =
            safetensors_writer_append(job->writer, index, from, (size_t)here * row_bytes, error);
        from += (size_t)here * row_bytes;
        first += here;
        count -= here;
    }
    return status;
}

static int unpack_chunk(pack_job *job, const pack_matrix *matrix, uint64_t *at, int64_t expert,
                        int64_t row, int64_t rows, unsigned char *packed, unsigned char *plain)
{
    const halfbyte_int4_desc desc = pack_desc(matrix, rows);
    const halfbyte_packed_header header = {
        .version = 1,
        .flags = matrix->holds_minus8 ? HALFBYTE_PACKED_HOLDS_MINUS8 : 0,
        .n = rows,
        .k = matrix->k,
        .groups = 1,
        .weight_group_size = matrix->group_size,
        .scale_type = desc.scale_type};
    io_error error;
    size_t bytes = 0;
    halfbyte_status status = halfbyte_packed_weights_bytes(&desc, &bytes);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, NULL);
    if (safetensors_model_read(job->model, matrix->packed, *at, packed, bytes, &error) != IO_OK)
        return cli_fail_io(&error);
    *at += bytes;
    status = halfbyte_unpack_weights(job->device, &header, packed, bytes, &desc, plain, NULL);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, NULL);
    progress_add(bytes);
    if (append_rows(job, matrix, expert, row, rows, plain, &error) != IO_OK)
        return cli_fail_io(&error);
    return CLI_OK;
}

static int write_weights(pack_job *job, const pack_matrix *matrix)
{
    const halfbyte_int4_desc most = pack_desc(matrix, PACK_CHUNK_ROWS);
    int64_t n = matrix->rows * matrix->parts;
    size_t bytes = 0;
    uint64_t at = 0;
    if (halfbyte_packed_weights_bytes(&most, &bytes) != HALFBYTE_SUCCESS)
        return cli_fail(CLI_USAGE, "%s", halfbyte_last_error());
    unsigned char *packed = cli_alloc(1, bytes);
    unsigned char *plain = cli_alloc(PACK_CHUNK_ROWS, pack_row_bytes(matrix));
    int code = packed == NULL || plain == NULL ? cli_fail_memory(2 * bytes) : CLI_OK;
    for (int64_t expert = 0; code == CLI_OK && expert < matrix->experts; ++expert) {
        for (int64_t row = 0; code == CLI_OK && row < n; row += PACK_CHUNK_ROWS)
            code =
                unpack_chunk(job, matrix, &at, expert, row,
                             n - row < PACK_CHUNK_ROWS ? n - row : PACK_CHUNK_ROWS, packed, plain);
    }
    free(packed);
    free(plain);
    return code;
}

/* Bytes at .. at + bytes of a tensor. */
static io_status copy_piece(pack_job *job, const safetensors_tensor *from, uint64_t at,
                            uint64_t bytes, size_t index, io_error *error)
{
    static unsigned char piece[1 << 16];
    io_status status = IO_OK;
    for (uint64_t end = at + bytes; status == IO_OK && at < end; at += sizeof piece) {
        size_t count = end - at < sizeof piece ? (size_t)(end - at) : sizeof piece;
        status = safetensors_model_read(job->model, from, at, piece, count, error);
        if (status == IO_OK)
            status = safetensors_writer_append(job->writer, index, piece, count, error);
    }
    return status;
}

static io_status write_scales(pack_job *job, const pack_matrix *matrix, int64_t j, io_error *error)
{
    const size_t *index = matrix->indices + j * KINDS;
    uint64_t scales = (uint64_t)matrix->rows * (uint64_t)pack_k_groups(matrix) *
                      tensor_dtype_bytes(matrix->scale_dtype);
    size_t input = tensor_dtype_bytes(matrix->input_dtype);
    io_status status =
        copy_piece(job, matrix->scale, (uint64_t)j * scales, scales, index[SCALE], error);
    if (status == IO_OK && matrix->inputs != PACK_INPUTS_NONE)
        status =
            copy_piece(job, matrix->input_scale, (uint64_t)j * input, input, index[INPUT], error);
    if (status == IO_OK && matrix->scheme == SCHEME_PACK_QUANTIZED) {
        const int64_t wide[] = {matrix->rows, matrix->k};
        const int32_t narrow[] = {(int32_t)matrix->rows, (int32_t)matrix->k};
        bool is_wide = matrix->shape_dtype == TENSOR_I64;
        status = safetensors_writer_append(job->writer, index[SHAPE],
                                           is_wide ? (const void *)wide : (const void *)narrow,
                                           is_wide ? sizeof wide : sizeof narrow, error);
    }
    return status;
}

int unpack_write(pack_job *job)
{
    int code = CLI_OK;
    io_error error;
    progress_begin("unpacking", job->bytes, NULL);
    for (int i = 0; code == CLI_OK && i < PACK_MATRICES; ++i) {
        const pack_matrix *matrix = &job->matrices[i];
        code = write_weights(job, matrix);
        for (int64_t j = 0; code == CLI_OK && j < matrix->experts * matrix->parts; ++j) {
            if (write_scales(job, matrix, j, &error) != IO_OK)
                code = cli_fail_io(&error);
        }
    }
    progress_end();
    return code;
}
