/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "quantization.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "names.h"
#include "progress.h"

/* ---- selection ------------------------------------------------------------------------------- */

static bool matches_any(const char *const *patterns, int count, const char *name)
{
    for (int i = 0; i < count; ++i) {
        if (name_matches(patterns[i], name))
            return true;
    }
    return false;
}

static void keep(quantize_item *item, const char *reason)
{
    item->quantize = false;
    snprintf(item->reason, sizeof item->reason, "%s", reason);
}

/* Shapes that the scheme or its kernels do not take. */
static void refuse_misfits(const quantize_options *options, quantize_item *item)
{
    long long n = item->tensor->spec.shape[0];
    long long k = item->tensor->spec.shape[1];
    long long group = options->group_size > 0 ? options->group_size : 32;
    if (n == 0 || k == 0)
        keep(item, "empty");
    else if (options->scheme != SCHEME_W4AFP8)
        return;
    else if (k % group != 0)
        snprintf(item->reason, sizeof item->reason, "k = %lld is not a multiple of %lld", k, group);
    else if (n % 8 != 0)
        snprintf(item->reason, sizeof item->reason, "n = %lld is not a multiple of 8", n);
    if (item->reason[0] != '\0') {
        item->quantize = false;
        item->notable = true;
    }
}

static bool has_scale(const safetensors_model *model, const char *name)
{
    char *scale = name_join(name, strlen(name), "_scale_inv");
    bool found = scale != NULL && safetensors_model_find(model, scale) != NULL;
    free(scale);
    return found;
}

void quantize_select(const quantize_options *options, const safetensors_model *model,
                     const safetensors_tensor *tensor, quantize_item *item)
{
    const char *name = tensor->name;
    halfbyte_type type = tensor_element_type(tensor->spec.dtype);
    memset(item, 0, sizeof *item);
    item->tensor = tensor;
    item->quantize = true;
    bool included = matches_any(options->includes, options->num_includes, name);
    const char *by_name = included ? NULL : name_skip_reason(name);
    if (!name_ends_with(name, ".weight"))
        keep(item, "not a .weight");
    else if (tensor->spec.rank != 2)
        keep(item, "not 2-D");
    else if (halfbyte_type_bits(type) < 16)
        snprintf(item->reason, sizeof item->reason, "type %s",
                 tensor_dtype_name(tensor->spec.dtype));
    else if (options->num_includes > 0 && !included)
        keep(item, "not included");
    else if (by_name != NULL)
        keep(item, by_name);
    else if (matches_any(options->excludes, options->num_excludes, name))
        keep(item, "excluded");
    else if (has_scale(model, name))
        keep(item, "has a weight_scale_inv already");
    else
        refuse_misfits(options, item);
    if (item->reason[0] != '\0')
        item->quantize = false;
}

/* ---- declaration ----------------------------------------------------------------------------- */

static int64_t ceil_div(int64_t value, int64_t by)
{
    return value / by + (value % by != 0);
}

/* Scales along k of one row (int4) or of one row of blocks. */
static int64_t scale_columns(const quantize_options *options, int64_t k)
{
    if (options->scheme == SCHEME_FP8_BLOCK)
        return ceil_div(k, 128);
    return options->group_size == 0 ? 1 : ceil_div(k, options->group_size);
}

static tensor_dtype scale_dtype(const quantize_options *options)
{
    switch (options->scale_type) {
    case HALFBYTE_TYPE_BF16: return TENSOR_BF16;
    case HALFBYTE_TYPE_F16: return TENSOR_F16;
    default: return TENSOR_F32;
    }
}

io_status quantize_declare(const quantize_options *options, quantize_item *item,
                           safetensors_writer *writer, io_error *error)
{
    const tensor_spec *spec = &item->tensor->spec;
    const char *name = item->tensor->name;
    if (!item->quantize)
        return safetensors_writer_add_tensor(writer, name, spec->dtype, spec->rank, spec->shape,
                                             &item->weight_index, error);
    bool int4 = options->scheme == SCHEME_W4AFP8;
    int64_t n = spec->shape[0];
    int64_t k = spec->shape[1];
    int64_t weight_shape[2] = {n, int4 ? k / 2 : k};
    int64_t scale_shape[2] = {int4 ? n : ceil_div(n, 128), scale_columns(options, k)};
    io_status status =
        safetensors_writer_add_tensor(writer, name, int4 ? TENSOR_I8 : TENSOR_F8_E4M3, 2,
                                      weight_shape, &item->weight_index, error);
    if (status != IO_OK)
        return status;
    char *scale_name = name_join(name, strlen(name), "_scale_inv");
    if (scale_name == NULL)
        return io_error_set(error, IO_OUT_OF_MEMORY, "out of memory");
    status = safetensors_writer_add_tensor(writer, scale_name, scale_dtype(options), 2, scale_shape,
                                           &item->scale_index, error);
    free(scale_name);
    return status;
}

/* ---- streaming ------------------------------------------------------------------------------- */

enum { PANEL_ROWS = 128, COPY_BYTES = 1 << 20 };

/* Buffers of one panel, row-major [rows, k]. */
typedef struct panel {
    int64_t k, columns;
    size_t weight_row_bytes, scale_row_bytes;
    void *raw;     /* as in the file; NULL if that is f32 */
    float *values; /* the original weights */
    float *back;   /* the quantised ones, dequantised */
    void *weights;
    void *scales;
} panel;

static void panel_free(panel *buffers)
{
    free(buffers->raw);
    free(buffers->values);
    free(buffers->back);
    free(buffers->weights);
    free(buffers->scales);
}

static int panel_alloc(const quantize_options *options, const tensor_spec *spec, panel *buffers)
{
    bool int4 = options->scheme == SCHEME_W4AFP8;
    uint64_t rows = spec->shape[0] < PANEL_ROWS ? (uint64_t)spec->shape[0] : PANEL_ROWS;
    uint64_t k = (uint64_t)spec->shape[1];
    memset(buffers, 0, sizeof *buffers);
    buffers->k = spec->shape[1];
    buffers->columns = scale_columns(options, buffers->k);
    buffers->weight_row_bytes = (size_t)(int4 ? k / 2 : k);
    buffers->scale_row_bytes = (size_t)buffers->columns * tensor_dtype_bytes(scale_dtype(options));
    uint64_t elem = tensor_dtype_bytes(spec->dtype);
    if (spec->dtype != TENSOR_F32)
        buffers->raw = cli_alloc(rows * k, elem);
    buffers->values = cli_alloc(rows * k, sizeof(float));
    buffers->back = cli_alloc(rows * k, sizeof(float));
    buffers->weights = cli_alloc(rows, buffers->weight_row_bytes);
    buffers->scales = cli_alloc(int4 ? rows : 1, buffers->scale_row_bytes);
    if ((spec->dtype != TENSOR_F32 && buffers->raw == NULL) || buffers->values == NULL ||
        buffers->back == NULL || buffers->weights == NULL || buffers->scales == NULL) {
        panel_free(buffers);
        return cli_fail_memory(rows * k * (elem + 2 * sizeof(float) + 1));
    }
    return CLI_OK;
}

static int panel_read(const quantize_item *item, const safetensors_model *model, panel *buffers,
                      int64_t first, int64_t rows)
{
    const tensor_spec *spec = &item->tensor->spec;
    size_t elem = tensor_dtype_bytes(spec->dtype);
    size_t count = (size_t)(rows * buffers->k);
    void *into = buffers->raw != NULL ? buffers->raw : (void *)buffers->values;
    io_error error;
    if (safetensors_model_read(model, item->tensor, (uint64_t)(first * buffers->k) * elem, into,
                               count * elem, &error) != IO_OK)
        return cli_fail_io(&error);
    if (buffers->raw != NULL) {
        halfbyte_status status = halfbyte_convert(buffers->values, HALFBYTE_TYPE_F32, buffers->raw,
                                                  tensor_element_type(spec->dtype), (int64_t)count);
        if (status != HALFBYTE_SUCCESS)
            return cli_fail_status(status, item->tensor->name);
    }
    for (size_t i = 0; i < count; ++i) {
        if (!isfinite(buffers->values[i])) {
            progress_clear();
            return cli_fail(CLI_ENVIRONMENT,
                            "tensor %s: the weight at [%lld, %lld] is not finite; --exclude keeps "
                            "a tensor as it is",
                            io_quote(item->tensor->name).text,
                            (long long)(first + (int64_t)(i / (size_t)buffers->k)),
                            (long long)(i % (size_t)buffers->k));
        }
    }
    return CLI_OK;
}

/* Quantises a panel and turns it back into f32. */
static int panel_quantize(const quantize_options *options, const quantize_item *item,
                          halfbyte_device *device, panel *buffers, int64_t rows)
{
    halfbyte_weight_quantization job = halfbyte_weight_quantization_init();
    bool int4 = options->scheme == SCHEME_W4AFP8;
    job.type = int4 ? HALFBYTE_TYPE_INT4 : HALFBYTE_TYPE_E4M3;
    job.src_type = HALFBYTE_TYPE_F32;
    job.scale_type = options->scale_type;
    job.layout = HALFBYTE_SCALE_K_MAJOR;
    job.n = rows;
    job.k = buffers->k;
    job.weight_group_size = int4 ? options->group_size : 0;
    job.src.data = buffers->values;
    job.src.ld = buffers->k;
    job.dst.data = buffers->weights;
    job.dst.ld = buffers->k;
    job.scale.data = buffers->scales;
    job.scale.stride_mn = buffers->columns;
    job.scale.stride_k = 1;
    halfbyte_matrix_out back = {.data = buffers->back, .ld = buffers->k};
    halfbyte_status status = halfbyte_quantize_weights(device, &job);
    if (status == HALFBYTE_SUCCESS)
        status = halfbyte_dequantize_weights(device, &job, &back);
    if (status == HALFBYTE_SUCCESS)
        return CLI_OK;
    progress_clear();
    return cli_fail_status(status, item->tensor->name);
}

static int panel_write(const quantize_options *options, const quantize_item *item,
                       safetensors_writer *writer, const panel *buffers, int64_t rows)
{
    io_error error;
    size_t scale_rows = options->scheme == SCHEME_W4AFP8 ? (size_t)rows : 1;
    if (safetensors_writer_append(writer, item->weight_index, buffers->weights,
                                  (size_t)rows * buffers->weight_row_bytes, &error) != IO_OK ||
        safetensors_writer_append(writer, item->scale_index, buffers->scales,
                                  scale_rows * buffers->scale_row_bytes, &error) != IO_OK) {
        progress_clear();
        return cli_fail_io(&error);
    }
    return CLI_OK;
}

int quantize_stream(const quantize_options *options, const quantize_item *item,
                    const safetensors_model *model, safetensors_writer *writer,
                    halfbyte_device *device, error_stats *stats)
{
    panel buffers;
    int64_t n = item->tensor->spec.shape[0];
    int code = panel_alloc(options, &item->tensor->spec, &buffers);
    if (code != CLI_OK)
        return code;
    for (int64_t first = 0; code == CLI_OK && first < n; first += PANEL_ROWS) {
        int64_t rows = n - first < PANEL_ROWS ? n - first : PANEL_ROWS;
        code = panel_read(item, model, &buffers, first, rows);
        if (code == CLI_OK)
            code = panel_quantize(options, item, device, &buffers, rows);
        if (code == CLI_OK)
            code = panel_write(options, item, writer, &buffers, rows);
        if (code == CLI_OK)
            error_stats_add_f32(stats, buffers.back, buffers.values, (size_t)(rows * buffers.k));
        progress_add((uint64_t)(rows * buffers.k) * tensor_dtype_bytes(item->tensor->spec.dtype));
    }
    panel_free(&buffers);
    return code;
}

int quantize_copy(const quantize_item *item, const safetensors_model *model,
                  safetensors_writer *writer)
{
    static unsigned char buffer[COPY_BYTES];
    uint64_t bytes = item->tensor->spec.bytes;
    for (uint64_t offset = 0; offset < bytes; offset += COPY_BYTES) {
        size_t count = bytes - offset < COPY_BYTES ? (size_t)(bytes - offset) : COPY_BYTES;
        io_error error;
        if (safetensors_model_read(model, item->tensor, offset, buffer, count, &error) != IO_OK ||
            safetensors_writer_append(writer, item->weight_index, buffer, count, &error) != IO_OK) {
            progress_clear();
            return cli_fail_io(&error);
        }
        progress_add(count);
    }
    return CLI_OK;
}
