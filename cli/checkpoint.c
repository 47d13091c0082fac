/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "names.h"

const char *scheme_name(scheme_id scheme)
{
    static const char *const names[] = {
#define XX(name, text) text,
        SCHEME_MAP(XX)
#undef XX
    };
    return scheme < SCHEME_COUNT ? names[scheme] : "?";
}

halfbyte_type tensor_element_type(tensor_dtype dtype)
{
    switch (dtype) {
    case TENSOR_F32: return HALFBYTE_TYPE_F32;
    case TENSOR_BF16: return HALFBYTE_TYPE_BF16;
    case TENSOR_F16: return HALFBYTE_TYPE_F16;
    case TENSOR_F8_E4M3: return HALFBYTE_TYPE_E4M3;
    case TENSOR_F8_E5M2: return HALFBYTE_TYPE_E5M2;
    case TENSOR_F8_E8M0: return HALFBYTE_TYPE_E8M0;
    default: return HALFBYTE_TYPE_NONE;
    }
}

static bool is_wide_float(tensor_dtype dtype)
{
    return dtype == TENSOR_F32 || dtype == TENSOR_BF16 || dtype == TENSOR_F16;
}

uint64_t layer_bytes(const layer *measured)
{
    uint64_t bytes = measured->weight->spec.bytes;
    if (measured->scale != NULL)
        bytes += measured->scale->spec.bytes;
    if (measured->input_scale != NULL)
        bytes += measured->input_scale->spec.bytes;
    return bytes;
}

/* ---- companions ------------------------------------------------------------------------------ */

typedef struct lookup {
    const safetensors_model *model;
    const char *base; /* points into the weight's name */
    size_t base_bytes;
    fault_list *faults;
} lookup;

static const safetensors_tensor *companion(const lookup *at, const char *suffix)
{
    char *name = name_join(at->base, at->base_bytes, suffix);
    if (name == NULL) {
        at->faults->out_of_memory = true;
        return NULL;
    }
    const safetensors_tensor *found = safetensors_model_find(at->model, name);
    free(name);
    return found;
}

/* X.input_scale, or that of expert layers, where gate, down and up are called w1, w2 and w3. */
static const safetensors_tensor *find_input_scale(const lookup *at)
{
    static const char *const names[][2] = {
        {"gate_proj", "w1.input_scale"},
        {"down_proj", "w2.input_scale"},
        {"up_proj", "w3.input_scale"},
    };
    const safetensors_tensor *found = companion(at, ".input_scale");
    for (size_t i = 0; found == NULL && i < sizeof names / sizeof names[0]; ++i) {
        size_t bytes = strlen(names[i][0]);
        if (at->base_bytes <= bytes ||
            memcmp(at->base + at->base_bytes - bytes, names[i][0], bytes) != 0)
            continue;
        lookup parent = *at;
        parent.base_bytes -= bytes;
        found = companion(&parent, names[i][1]);
    }
    return found;
}

static bool has_shape(const safetensors_tensor *tensor, int64_t rows, int64_t columns)
{
    return tensor->spec.rank == 2 && tensor->spec.shape[0] == rows &&
           tensor->spec.shape[1] == columns;
}

static int64_t ceil_div(int64_t value, int64_t by)
{
    return value / by + (value % by != 0);
}

static void fault_shape(fault_list *faults, const safetensors_tensor *tensor, const char *wanted)
{
    char shape[168];
    tensor_shape_format(&tensor->spec, shape, sizeof shape);
    faults_add(faults, tensor->name, "shape %s, expected %s", shape, wanted);
}

/* ---- schemes --------------------------------------------------------------------------------- */

/* Fills group_size from the shape of the group scales; false with a fault if no size fits. */
static bool find_group_size(layer *result, fault_list *faults)
{
    static const int64_t sizes[] = {128, 64, 32};
    const tensor_spec *spec = &result->scale->spec;
    char wanted[128];
    if (spec->rank == 2 && spec->shape[0] == result->n) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
            if (spec->shape[1] == ceil_div(result->k, sizes[i])) {
                result->group_size = sizes[i];
                return true;
            }
        }
        if (spec->shape[1] == 1) {
            result->group_size = 0;
            return true;
        }
    }
    snprintf(wanted, sizeof wanted,
             "[%lld, %lld], [.., %lld], [.., %lld] or [.., 1] (groups of 128, 64, 32, all)",
             (long long)result->n, (long long)ceil_div(result->k, 128),
             (long long)ceil_div(result->k, 64), (long long)ceil_div(result->k, 32));
    fault_shape(faults, result->scale, wanted);
    return false;
}

static bool check_scale_type(const layer *result, fault_list *faults)
{
    tensor_dtype dtype = result->scale->spec.dtype;
    bool int4 = result->scheme == SCHEME_W4AFP8 || result->scheme == SCHEME_PACK_QUANTIZED;
    if (is_wide_float(dtype) || (int4 && dtype == TENSOR_F8_E4M3))
        return true;
    faults_add(faults, result->scale->name, "type %s, expected F32, BF16 or F16",
               tensor_dtype_name(dtype));
    return false;
}

static bool recognize_w4afp8(const lookup *at, layer *result)
{
    const safetensors_tensor *weight = result->weight;
    result->scheme = SCHEME_W4AFP8;
    result->scale = companion(at, ".weight_scale_inv");
    if (result->scale == NULL) {
        /* 8-bit integer schemes use other companions and are none of ours. */
        if (companion(at, ".weight_scale") == NULL && companion(at, ".SCB") == NULL)
            faults_add(at->faults, weight->name,
                       "int4 weights (I8), but weight_scale_inv is missing");
        return false;
    }
    if (weight->spec.rank != 2) {
        fault_shape(at->faults, weight, "[n, k/2]");
        return false;
    }
    result->n = weight->spec.shape[0];
    if (weight->spec.shape[1] > INT64_MAX / 2) {
        fault_shape(at->faults, weight, "[n, k/2]");
        return false;
    }
    result->k = weight->spec.shape[1] * 2;
    return find_group_size(result, at->faults);
}

/* One scale, or one a row, in X.weight_scale. */
static bool recognize_fp8_scaled(const lookup *at, layer *result)
{
    const tensor_spec *spec = &result->scale->spec;
    if (spec->elems == 1) {
        result->scheme = SCHEME_FP8_TENSOR;
        return true;
    }
    result->scheme = SCHEME_FP8_CHANNEL;
    bool vector = spec->rank == 1 && spec->shape[0] == result->n;
    if (vector || has_shape(result->scale, result->n, 1))
        return true;
    fault_shape(at->faults, result->scale, "one element or one for each row of the weight");
    return false;
}

static bool recognize_fp8(const lookup *at, layer *result)
{
    const safetensors_tensor *weight = result->weight;
    char wanted[64];
    result->scheme = SCHEME_FP8_BLOCK;
    if (weight->spec.rank != 2) {
        fault_shape(at->faults, weight, "[n, k]");
        return false;
    }
    result->n = weight->spec.shape[0];
    result->k = weight->spec.shape[1];
    result->scale = companion(at, ".weight_scale_inv");
    if (result->scale == NULL) {
        result->scale = companion(at, ".weight_scale");
        if (result->scale != NULL)
            return recognize_fp8_scaled(at, result);
        faults_add(at->faults, weight->name,
                   "e4m3 weights, but weight_scale_inv and weight_scale are missing");
        return false;
    }
    int64_t rows = ceil_div(result->n, 128);
    int64_t columns = ceil_div(result->k, 128);
    if (has_shape(result->scale, rows, columns))
        return true;
    snprintf(wanted, sizeof wanted, "[%lld, %lld] (blocks of 128 x 128)", (long long)rows,
             (long long)columns);
    fault_shape(at->faults, result->scale, wanted);
    return false;
}

/* n and k of a packed layer, read from X.weight_shape. */
static bool read_weight_shape(const lookup *at, layer *result)
{
    const safetensors_tensor *shape = companion(at, ".weight_shape");
    if (shape == NULL) {
        faults_add(at->faults, result->weight->name,
                   "packed int4 weights, but weight_shape is missing");
        return false;
    }
    int64_t wide[2] = {0, 0};
    int32_t narrow[2] = {0, 0};
    bool is_wide = shape->spec.dtype == TENSOR_I64;
    if (shape->spec.elems != 2 || (!is_wide && shape->spec.dtype != TENSOR_I32)) {
        fault_shape(at->faults, shape, "two integers, I64 or I32");
        return false;
    }
    io_error error;
    io_status status =
        is_wide ? safetensors_model_read(at->model, shape, 0, wide, sizeof wide, &error)
                : safetensors_model_read(at->model, shape, 0, narrow, sizeof narrow, &error);
    if (status != IO_OK) {
        faults_add(at->faults, shape->name, "cannot be read: %s", error.text);
        return false;
    }
    result->n = is_wide ? wide[0] : narrow[0];
    result->k = is_wide ? wide[1] : narrow[1];
    const tensor_spec *spec = &result->weight->spec;
    if (spec->rank == 2 && result->n == spec->shape[0] && result->k > 0 &&
        ceil_div(result->k, 8) == spec->shape[1])
        return true;
    faults_add(at->faults, shape->name,
               "says [%lld, %lld], which is not the shape of weight_packed", (long long)result->n,
               (long long)result->k);
    return false;
}

static bool recognize_packed(const lookup *at, layer *result)
{
    result->scheme = SCHEME_PACK_QUANTIZED;
    if (!read_weight_shape(at, result))
        return false;
    result->scale = companion(at, ".weight_scale");
    if (result->scale == NULL) {
        faults_add(at->faults, result->weight->name,
                   "packed int4 weights, but weight_scale is missing");
        return false;
    }
    if (companion(at, ".weight_zero_point") != NULL || companion(at, ".weight_g_idx") != NULL) {
        faults_add(at->faults, result->weight->name,
                   "zero points or a column order (g_idx), which are not served");
        return false;
    }
    return find_group_size(result, at->faults);
}

static bool recognize_plain(layer *result)
{
    const tensor_spec *spec = &result->weight->spec;
    result->scheme = SCHEME_PLAIN;
    if (spec->rank != 2 || name_skip_reason(result->weight->name) != NULL)
        return false;
    result->n = spec->shape[0];
    result->k = spec->shape[1];
    return true;
}

static bool check_input_scale(const lookup *at, layer *result)
{
    result->input_scale = find_input_scale(at);
    if (result->input_scale == NULL)
        return true;
    if (result->input_scale->spec.elems != 1) {
        fault_shape(at->faults, result->input_scale, "one element");
        return false;
    }
    if (!is_wide_float(result->input_scale->spec.dtype)) {
        faults_add(at->faults, result->input_scale->name, "type %s, expected F32, BF16 or F16",
                   tensor_dtype_name(result->input_scale->spec.dtype));
        return false;
    }
    return true;
}

bool layer_recognize(const safetensors_model *model, const safetensors_tensor *weight,
                     layer *result, fault_list *faults)
{
    memset(result, 0, sizeof *result);
    result->weight = weight;
    bool packed = name_ends_with(weight->name, ".weight_packed");
    if (!packed && !name_ends_with(weight->name, ".weight"))
        return false;
    lookup at = {.model = model, .base = weight->name, .faults = faults};
    at.base_bytes = strlen(weight->name) - strlen(packed ? ".weight_packed" : ".weight");
    bool ok = false;
    if (packed && weight->spec.dtype == TENSOR_I32)
        ok = recognize_packed(&at, result);
    else if (packed)
        return false;
    else if (is_wide_float(weight->spec.dtype))
        return recognize_plain(result);
    else if (weight->spec.dtype == TENSOR_I8)
        ok = recognize_w4afp8(&at, result);
    else if (weight->spec.dtype == TENSOR_F8_E4M3)
        ok = recognize_fp8(&at, result);
    return ok && check_scale_type(result, faults) && check_input_scale(&at, result);
}

const safetensors_tensor *layer_find_weight(const safetensors_model *model, const char *name)
{
    static const char *const suffixes[] = {"", ".weight", ".weight_packed"};
    const safetensors_tensor *found = NULL;
    for (size_t i = 0; found == NULL && i < sizeof suffixes / sizeof suffixes[0]; ++i) {
        char *full = name_join(name, strlen(name), suffixes[i]);
        if (full == NULL)
            return NULL;
        found = safetensors_model_find(model, full);
        free(full);
    }
    return found;
}

bool model_reads_file(const safetensors_model *model, const char *given, const char *path)
{
    bool found = cli_same_file(given, path);
    for (size_t i = 0; !found && i < safetensors_model_shard_count(model); ++i)
        found = cli_same_file(safetensors_path(safetensors_model_shard(model, i)), path);
    return found;
}
