/* SPDX-License-Identifier: Apache-2.0 */
/* Group sizes and activations from files. */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "gemm.h"
#include "io/io_source.h"
#include "io/npy.h"
#include "names.h"

enum { MAX_GROUPS = 1 << 20, MAX_SIZES_BYTES = 64 << 20 };
#define MAX_ROWS INT64_C(2147483647)

static int add_size(gemm_work *work, int64_t size)
{
    work->sizes[work->groups++] = size;
    work->sizes_total += size;
    if (work->sizes_total > MAX_ROWS)
        return cli_fail(CLI_USAGE, "%s: the sizes add up to more than %lld rows",
                        io_quote_path(work->options.group_sizes).text, (long long)MAX_ROWS);
    return CLI_OK;
}

/* One number a line; blank lines and what follows a '#' do not count. `text` is cut up. */
static int parse_sizes(gemm_work *work, char *text)
{
    const char *path = work->options.group_sizes;
    int64_t line_number = 1;
    for (char *line = text; line != NULL; ++line_number) {
        char *next = strchr(line, '\n');
        int64_t size = 0;
        if (next != NULL)
            *next++ = '\0';
        line[strcspn(line, "#")] = '\0';
        line += strspn(line, " \t\r");
        size_t length = strlen(line);
        while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL)
            line[--length] = '\0';
        if (length > 0 && !cli_parse_int(line, 0, MAX_ROWS, &size))
            return cli_fail(CLI_USAGE, "%s, line %lld: %s is no number of rows",
                            io_quote_path(path).text, (long long)line_number, io_quote(line).text);
        if (length > 0 && work->groups == MAX_GROUPS)
            return cli_fail(CLI_USAGE, "%s: more than %d groups", io_quote_path(path).text,
                            MAX_GROUPS);
        int code = length > 0 ? add_size(work, size) : CLI_OK;
        if (code != CLI_OK)
            return code;
        line = next;
    }
    return CLI_OK;
}

static int read_text_sizes(gemm_work *work)
{
    const char *path = work->options.group_sizes;
    io_source source;
    io_error error;
    if (io_source_open_file(&source, path, &error) != IO_OK)
        return cli_fail_io(&error);
    int code = CLI_OK;
    char *text = NULL;
    if (source.size_bytes > MAX_SIZES_BYTES)
        code = cli_fail(CLI_USAGE, "%s: too long for a list of sizes", io_quote_path(path).text);
    else if ((text = cli_alloc(source.size_bytes + 1, 1)) == NULL)
        code = cli_fail_memory(source.size_bytes);
    else if (io_source_read(&source, 0, text, (size_t)source.size_bytes, &error) != IO_OK)
        code = cli_fail_io(&error);
    else
        code = parse_sizes(work, text);
    io_source_close(&source);
    free(text);
    return code;
}

static int convert_npy_sizes(gemm_work *work, tensor_dtype dtype, const void *raw, uint64_t count)
{
    for (uint64_t i = 0; i < count; ++i) {
        int64_t size = -1;
        if (dtype == TENSOR_I64 || dtype == TENSOR_U64)
            size = ((const int64_t *)raw)[i];
        else if (dtype == TENSOR_I32)
            size = ((const int32_t *)raw)[i];
        else
            size = ((const uint32_t *)raw)[i];
        if (size < 0 || size > MAX_ROWS)
            return cli_fail(CLI_USAGE, "%s: element %llu is no number of rows",
                            io_quote_path(work->options.group_sizes).text, (unsigned long long)i);
        int code = add_size(work, size);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

static int read_npy_sizes(gemm_work *work)
{
    const char *path = work->options.group_sizes;
    npy_file *file = NULL;
    io_error error;
    if (npy_open(&file, path, &error) != IO_OK)
        return cli_fail_io(&error);
    const tensor_spec *spec = npy_spec(file);
    bool integers = spec->dtype == TENSOR_I64 || spec->dtype == TENSOR_U64 ||
                    spec->dtype == TENSOR_I32 || spec->dtype == TENSOR_U32;
    int code = CLI_OK;
    void *raw = NULL;
    if (spec->rank != 1 || !integers || spec->elems > MAX_GROUPS)
        code = cli_fail(CLI_USAGE,
                        "%s: group sizes are a 1-D array of 32- or 64-bit integers, at most %d",
                        io_quote_path(path).text, MAX_GROUPS);
    else if ((raw = cli_alloc(spec->bytes, 1)) == NULL)
        code = cli_fail_memory(spec->bytes);
    else if (npy_read(file, 0, raw, (size_t)spec->bytes, &error) != IO_OK)
        code = cli_fail_io(&error);
    else
        code = convert_npy_sizes(work, spec->dtype, raw, spec->elems);
    npy_close(file);
    free(raw);
    return code;
}

int gemm_read_sizes(gemm_work *work)
{
    const char *path = work->options.group_sizes;
    work->sizes = cli_alloc(MAX_GROUPS, sizeof *work->sizes);
    if (work->sizes == NULL)
        return cli_fail_memory(MAX_GROUPS * sizeof *work->sizes);
    work->groups = 0;
    int code = name_ends_with(path, ".npy") ? read_npy_sizes(work) : read_text_sizes(work);
    if (code == CLI_OK && work->groups == 0)
        code = cli_fail(CLI_USAGE, "%s lists no group sizes", io_quote_path(path).text);
    return code;
}

int gemm_read_activations(gemm_work *work)
{
    const char *path = work->options.activations;
    npy_file *file = NULL;
    io_error error;
    if (npy_open(&file, path, &error) != IO_OK)
        return cli_fail_io(&error);
    const tensor_spec *spec = npy_spec(file);
    void *raw = NULL;
    int code = CLI_OK;
    if (spec->rank != 2 || (spec->dtype != TENSOR_F32 && spec->dtype != TENSOR_F16)) {
        char shape[168];
        tensor_shape_format(spec, shape, sizeof shape);
        code = cli_fail(CLI_USAGE, "%s is %s %s; activations are F32 or F16 [rows, k]",
                        io_quote_path(path).text, tensor_dtype_name(spec->dtype), shape);
    } else if (spec->shape[0] > MAX_ROWS || spec->shape[1] > MAX_ROWS) {
        code = cli_fail(CLI_USAGE, "%s: more than %lld rows or columns", io_quote_path(path).text,
                        (long long)MAX_ROWS);
    } else {
        work->rows = spec->shape[0];
        work->k = spec->shape[1];
        raw = cli_alloc(spec->bytes, 1);
        work->values = cli_alloc(spec->elems, sizeof(float));
        if (raw == NULL || work->values == NULL)
            code = cli_fail_memory(spec->elems * sizeof(float));
    }
    if (code == CLI_OK && npy_read(file, 0, raw, (size_t)spec->bytes, &error) != IO_OK)
        code = cli_fail_io(&error);
    if (code == CLI_OK) {
        halfbyte_status status =
            halfbyte_convert(work->values, HALFBYTE_TYPE_F32, raw, tensor_element_type(spec->dtype),
                             (int64_t)spec->elems);
        if (status != HALFBYTE_SUCCESS)
            code = cli_fail_status(status, path);
    }
    npy_close(file);
    free(raw);
    return code;
}
