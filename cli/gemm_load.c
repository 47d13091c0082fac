/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a checkpoint, as operands. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "gemm.h"
#include "names.h"

int gemm_find_tensor(const safetensors_model *model, const char *path, const char *name,
                     const safetensors_tensor **tensor)
{
    *tensor = layer_find_weight(model, name);
    if (*tensor != NULL)
        return CLI_OK;
    const char *near = name_suggest(model, name);
    if (near == NULL)
        return cli_fail(CLI_USAGE, "no tensor %s in %s; 'halfbyte inspect' lists them",
                        io_quote(name).text, io_quote_path(path).text);
    return cli_fail(CLI_USAGE, "no tensor %s in %s; did you mean %s?", io_quote(name).text,
                    io_quote_path(path).text, io_quote(near).text);
}

/* The quantised layer of one group. */
static int find_layer(const gemm_work *work, int64_t group, layer *found)
{
    const safetensors_tensor *tensor = NULL;
    fault_list faults = {NULL, 0, 0, false};
    io_error error;
    char *name = name_expand(work->options.tensor, (long long)group);
    if (name == NULL)
        return cli_fail_memory(strlen(work->options.tensor));
    int code = gemm_find_tensor(work->model, work->options.weights, name, &tensor);
    free(name);
    if (code != CLI_OK)
        return code;
    bool known = layer_recognize(work->model, tensor, found, &faults);
    if (known && layer_check_values(work->model, found, &faults, &error) != IO_OK)
        code = cli_fail_io(&error);
    else if (faults.count > 0)
        code = cli_fail(CLI_ENVIRONMENT, "%s: %s", io_quote(faults.items[0].tensor).text,
                        faults.items[0].text);
    else if (!known)
        code = cli_fail(CLI_USAGE, "%s is no weight of a scheme that 'halfbyte inspect' knows",
                        io_quote(tensor->name).text);
    else if (found->scheme == SCHEME_PLAIN)
        code = cli_fail(CLI_USAGE,
                        "%s is not quantised (%s); 'halfbyte quantize %s -o OUT --scheme w4afp8' "
                        "makes a checkpoint that is",
                        io_quote(tensor->name).text, tensor_dtype_name(tensor->spec.dtype),
                        work->options.weights);
    faults_free(&faults);
    return code;
}

int gemm_open_weights(gemm_work *work)
{
    io_error error;
    bool pattern = strstr(work->options.tensor, "{e}") != NULL;
    if (pattern && work->sizes == NULL)
        return cli_fail(CLI_USAGE, "--tensor has {e}, so --group-sizes must say the rows of each");
    if (!pattern && work->sizes != NULL && work->groups > 1)
        return cli_fail(CLI_USAGE,
                        "--group-sizes lists %lld groups, but --tensor has no {e} to name each",
                        (long long)work->groups);
    if (safetensors_model_open(&work->model, work->options.weights, &error) != IO_OK)
        return cli_fail_io(&error);
    return find_layer(work, 0, &work->first);
}

/* ---- problem --------------------------------------------------------------------------------- */

static void describe_weights(const layer *from, halfbyte_problem *problem)
{
    halfbyte_scale_spec *spec = &problem->b_scale;
    problem->family = HALFBYTE_FAMILY_FP8;
    spec->layout = HALFBYTE_SCALE_K_MAJOR;
    switch (from->scheme) {
    case SCHEME_FP8_BLOCK: spec->mode = HALFBYTE_SCALE_128X128; return;
    case SCHEME_FP8_TENSOR: spec->mode = HALFBYTE_SCALE_TENSOR; break;
    case SCHEME_FP8_CHANNEL: spec->mode = HALFBYTE_SCALE_OUTER; break;
    default:
        problem->family = HALFBYTE_FAMILY_W4A8;
        spec->mode = HALFBYTE_SCALE_K_GROUP;
        problem->weight_group_size = from->group_size;
        spec->type = tensor_element_type(from->scale->spec.dtype);
        return;
    }
    spec->layout = HALFBYTE_SCALE_MN_MAJOR;
}

static int find_bias(gemm_work *work, halfbyte_problem *problem)
{
    const safetensors_tensor *bias = NULL;
    char *name = name_expand(work->options.bias, 0);
    if (name == NULL)
        return cli_fail_memory(strlen(work->options.bias));
    int code = gemm_find_tensor(work->model, work->options.weights, name, &bias);
    free(name);
    if (code != CLI_OK)
        return code;
    problem->bias_type = tensor_element_type(bias->spec.dtype);
    if (halfbyte_type_bits(problem->bias_type) < 16)
        return cli_fail(CLI_USAGE, "bias %s is of type %s; F32, BF16 or F16 are served",
                        io_quote(bias->name).text, tensor_dtype_name(bias->spec.dtype));
    return CLI_OK;
}

/* Static scales of experts may differ; as serving engines do, the largest serves all. */
static int find_static_scale(gemm_work *work)
{
    bool differ = false;
    work->static_scale = 0;
    for (int64_t group = 0; group < work->groups; ++group) {
        layer found;
        unsigned char raw[sizeof(float)] = {0};
        float scale = 0;
        io_error error;
        int code = find_layer(work, group, &found);
        if (code != CLI_OK)
            return code;
        if (found.input_scale == NULL)
            return cli_fail(CLI_USAGE, "%s has no input_scale for --a-scale static",
                            io_quote(found.weight->name).text);
        if (safetensors_model_read(work->model, found.input_scale, 0, raw,
                                   (size_t)found.input_scale->spec.bytes, &error) != IO_OK)
            return cli_fail_io(&error);
        halfbyte_status status = halfbyte_convert(
            &scale, HALFBYTE_TYPE_F32, raw, tensor_element_type(found.input_scale->spec.dtype), 1);
        if (status != HALFBYTE_SUCCESS)
            return cli_fail_status(status, found.input_scale->name);
        differ = differ || (group > 0 && !(scale == work->static_scale));
        work->static_scale = fmaxf(work->static_scale, scale);
    }
    if (differ)
        cli_note("the input scales of the groups differ; the largest, %g, serves all",
                 (double)work->static_scale);
    return CLI_OK;
}

int gemm_build_problem(gemm_work *work, halfbyte_problem *problem)
{
    const gemm_options *options = &work->options;
    *problem = halfbyte_problem_init();
    describe_weights(&work->first, problem);
    problem->n = work->first.n;
    problem->k = work->first.k;
    problem->groups = work->groups;
    problem->d_type = options->d_type;
    problem->a_scale.mode = options->a_scale;
    problem->k_splits = options->k_splits;
    problem->alpha_mode = options->alpha_given ? HALFBYTE_ALPHA_HOST : HALFBYTE_ALPHA_NONE;
    problem->b_layout = options->packed ? HALFBYTE_B_PACKED : HALFBYTE_B_ROW_MAJOR;
    if (options->grouping_given)
        problem->grouping = options->grouping;
    else if (work->sizes != NULL)
        problem->grouping = HALFBYTE_GROUPING_RANGES;
    problem->m_max = work->rows;
    if (problem->grouping == HALFBYTE_GROUPING_MASKED && work->sizes != NULL) {
        problem->m_max = 0;
        for (int64_t group = 0; group < work->groups; ++group)
            problem->m_max =
                work->sizes[group] > problem->m_max ? work->sizes[group] : problem->m_max;
    }
    int code = options->a_static ? find_static_scale(work) : CLI_OK;
    if (code == CLI_OK && options->bias != NULL)
        code = find_bias(work, problem);
    return code;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Rows of `row_bytes` in the file into rows of `stride` bytes. */
static int read_rows(const gemm_work *work, const safetensors_tensor *tensor, void *to,
                     uint64_t row_bytes, uint64_t stride)
{
    io_error error;
    uint64_t rows = row_bytes > 0 ? tensor->spec.bytes / row_bytes : 0;
    if (row_bytes == stride) {
        row_bytes = tensor->spec.bytes;
        rows = row_bytes > 0;
    }
    for (uint64_t row = 0; row < rows; ++row) {
        if (safetensors_model_read(work->model, tensor, row * row_bytes, (char *)to + row * stride,
                                   (size_t)row_bytes, &error) != IO_OK)
            return cli_fail_io(&error);
    }
    return CLI_OK;
}

/* compressed-tensors' int32 words to two nibbles a byte, by way of the packed form. */
static int load_packed(const gemm_work *work, const layer *from, uint8_t *to)
{
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    halfbyte_packed_header header;
    size_t bytes = 0;
    desc.layout = HALFBYTE_INT4_INT32_OFFSET;
    desc.n = from->n;
    desc.k = from->k;
    desc.groups = 1;
    desc.ld = from->weight->spec.shape[1] * 8;
    desc.group_stride = desc.ld * from->n;
    desc.weight_group_size = from->group_size;
    desc.scale_type = tensor_element_type(from->scale->spec.dtype);
    halfbyte_status status = halfbyte_packed_weights_bytes(&desc, &bytes);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, from->weight->name);
    void *words = cli_alloc(from->weight->spec.bytes, 1);
    void *packed = cli_alloc(bytes, 1);
    int code = words != NULL && packed != NULL ? CLI_OK : cli_fail_memory(bytes);
    if (code == CLI_OK)
        code = read_rows(work, from->weight, words, 1, 1);
    if (code == CLI_OK) {
        status = halfbyte_pack_weights(work->host, &desc, words, packed, bytes, &header, NULL);
        desc.layout = HALFBYTE_INT4_INT8_LOW_FIRST;
        desc.ld = work->made.operands.b.ld;
        desc.group_stride = desc.ld * from->n;
        if (status == HALFBYTE_SUCCESS)
            status = halfbyte_unpack_weights(work->host, &header, packed, bytes, &desc, to, NULL);
        if (status != HALFBYTE_SUCCESS)
            code = cli_fail_status(status, from->weight->name);
    }
    free(words);
    free(packed);
    return code;
}

/* Scales into the type that the problem wants. */
static int load_scale(const gemm_work *work, const layer *from, int64_t group)
{
    const instance *made = &work->made;
    halfbyte_type wanted = made->problem.b_scale.type;
    halfbyte_type stored = tensor_element_type(from->scale->spec.dtype);
    if (wanted == HALFBYTE_TYPE_NONE)
        wanted = HALFBYTE_TYPE_F32;
    int64_t count = (int64_t)from->scale->spec.elems;
    if (count != made->b_extent.mn * made->b_extent.kb)
        return cli_fail(CLI_ENVIRONMENT, "%s: not as many scales as in group 0",
                        io_quote(from->scale->name).text);
    void *raw = cli_alloc(from->scale->spec.bytes, 1);
    if (raw == NULL)
        return cli_fail_memory(from->scale->spec.bytes);
    int code = read_rows(work, from->scale, raw, 1, 1);
    if (code == CLI_OK) {
        char *to = (char *)made->b_scale + (size_t)(group * count * halfbyte_type_bits(wanted) / 8);
        halfbyte_status status;
        if (wanted == stored) {
            memcpy(to, raw, (size_t)from->scale->spec.bytes);
            status = HALFBYTE_SUCCESS;
        } else {
            status = halfbyte_convert(to, wanted, raw, stored, count);
        }
        if (status != HALFBYTE_SUCCESS)
            code = cli_fail_status(status, from->scale->name);
    }
    free(raw);
    return code;
}

static int load_bias(const gemm_work *work, int64_t group)
{
    const instance *made = &work->made;
    const safetensors_tensor *bias = NULL;
    char *name = name_expand(work->options.bias, (long long)group);
    if (name == NULL)
        return cli_fail_memory(strlen(work->options.bias));
    int code = gemm_find_tensor(work->model, work->options.weights, name, &bias);
    free(name);
    if (code != CLI_OK)
        return code;
    if (bias->spec.rank != 1 || bias->spec.shape[0] != made->n ||
        tensor_element_type(bias->spec.dtype) != made->problem.bias_type) {
        char shape[168];
        tensor_shape_format(&bias->spec, shape, sizeof shape);
        return cli_fail(CLI_USAGE, "bias %s is %s %s; expected %s [%lld]",
                        io_quote(bias->name).text, tensor_dtype_name(bias->spec.dtype), shape,
                        halfbyte_type_name(made->problem.bias_type), (long long)made->n);
    }
    return read_rows(work, bias, (char *)made->bias + (size_t)group * (size_t)bias->spec.bytes, 1,
                     1);
}

int gemm_load_weights(gemm_work *work)
{
    instance *made = &work->made;
    bool int4 = made->problem.family == HALFBYTE_FAMILY_W4A8;
    uint64_t stride = (uint64_t)(int4 ? made->operands.b.ld / 2 : made->operands.b.ld);
    for (int64_t group = 0; group < work->groups; ++group) {
        layer from;
        int code = find_layer(work, group, &from);
        if (code != CLI_OK)
            return code;
        if (from.scheme != work->first.scheme || from.n != made->n || from.k != made->k ||
            from.group_size != work->first.group_size ||
            (int4 && from.scale->spec.dtype != work->first.scale->spec.dtype))
            return cli_fail(CLI_ENVIRONMENT,
                            "%s differs from the weights of group 0 in shape or scheme",
                            io_quote(from.weight->name).text);
        uint8_t *to = made->b + (uint64_t)(group * made->n) * stride;
        if (from.scheme == SCHEME_PACK_QUANTIZED)
            code = load_packed(work, &from, to);
        else
            code =
                read_rows(work, from.weight, to, (uint64_t)(int4 ? made->k / 2 : made->k), stride);
        if (code == CLI_OK)
            code = load_scale(work, &from, group);
        if (code == CLI_OK && work->options.bias != NULL)
            code = load_bias(work, group);
        if (code != CLI_OK)
            return code;
    }
    if (work->options.alpha_given)
        made->operands.alpha = (float)work->options.alpha;
    return CLI_OK;
}
