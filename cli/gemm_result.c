/* SPDX-License-Identifier: Apache-2.0 */
/* The result of `halfbyte gemm`: errors against the unquantised product, checksum, file, report. */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "gemm.h"
#include "io/npy.h"
#include "names.h"
#include "problem.h"

uint64_t gemm_checksum(const void *data, uint64_t bytes)
{
    const unsigned char *at = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < bytes; ++i)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---- reference ------------------------------------------------------------------------------- */

/* One row of original weights at a time, for the owned rows [first, end) of one group. */
typedef struct comparison {
    const gemm_work *work;
    safetensors_model *model;
    int64_t first, end;
    void *raw;
    float *weights; /* [k] */
    float *result;  /* [rows, n] */
    error_stats *errors;
} comparison;

/* Four sums, so that the compiler may keep four additions in flight; the order is fixed. */
static double dot(const float *x, const float *y, int64_t count)
{
    double sums[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int j = 0; j < 4; ++j)
            sums[j] += (double)x[i + j] * (double)y[i + j];
    }
    for (; i < count; ++i)
        sums[0] += (double)x[i] * (double)y[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static float element(const void *data, halfbyte_type type, int64_t at)
{
    float value = 0;
    const char *from = (const char *)data + at * halfbyte_type_bits(type) / 8;
    halfbyte_convert(&value, HALFBYTE_TYPE_F32, from, type, 1);
    return value;
}

static void compare_column(const comparison *state, int64_t group, int64_t column)
{
    const gemm_work *work = state->work;
    const instance *made = &work->made;
    double bias = 0;
    if (made->problem.bias_type != HALFBYTE_TYPE_NONE)
        bias = (double)element(made->bias, made->problem.bias_type, group * made->n + column);
    double alpha = work->options.alpha_given ? (double)(float)work->options.alpha : 1;
    for (int64_t row = state->first; row < state->end; ++row) {
        double exact = alpha * dot(work->values + row * work->k, state->weights, work->k) + bias;
        error_stats_add(state->errors, (double)state->result[row * made->n + column], exact);
    }
}

static int compare_group(comparison *state, int64_t group, const safetensors_tensor *tensor)
{
    const instance *made = &state->work->made;
    halfbyte_type type = tensor_element_type(tensor->spec.dtype);
    if (tensor->spec.rank != 2 || tensor->spec.shape[0] != made->n ||
        tensor->spec.shape[1] != made->k || halfbyte_type_bits(type) < 16) {
        char shape[168];
        tensor_shape_format(&tensor->spec, shape, sizeof shape);
        return cli_fail(CLI_USAGE, "reference %s is %s %s; expected F32, BF16 or F16 [%lld, %lld]",
                        io_quote(tensor->name).text, tensor_dtype_name(tensor->spec.dtype), shape,
                        (long long)made->n, (long long)made->k);
    }
    uint64_t row_bytes = (uint64_t)made->k * (uint64_t)halfbyte_type_bits(type) / 8;
    for (int64_t column = 0; column < made->n; ++column) {
        io_error error;
        if (safetensors_model_read(state->model, tensor, (uint64_t)column * row_bytes, state->raw,
                                   (size_t)row_bytes, &error) != IO_OK)
            return cli_fail_io(&error);
        halfbyte_status status =
            halfbyte_convert(state->weights, HALFBYTE_TYPE_F32, state->raw, type, made->k);
        if (status != HALFBYTE_SUCCESS)
            return cli_fail_status(status, tensor->name);
        compare_column(state, group, column);
    }
    return CLI_OK;
}

static int compare_groups(comparison *state)
{
    const gemm_work *work = state->work;
    const char *pattern = work->options.reference_tensor;
    int code = CLI_OK;
    if (pattern == NULL)
        pattern = work->options.tensor;
    for (int64_t group = 0; code == CLI_OK && group < work->groups; ++group) {
        const safetensors_tensor *tensor = NULL;
        char *name = name_expand(pattern, (long long)group);
        if (name == NULL)
            return cli_fail_memory(strlen(pattern));
        code = gemm_find_tensor(state->model, work->options.reference, name, &tensor);
        free(name);
        state->first = state->end;
        state->end += work->made.sizes[group];
        if (code == CLI_OK)
            code = compare_group(state, group, tensor);
    }
    return code;
}

int gemm_compare(gemm_work *work)
{
    comparison state = {.work = work, .errors = &work->errors};
    int64_t count = work->made.owned_rows * work->made.n;
    io_error error;
    if (safetensors_model_open(&state.model, work->options.reference, &error) != IO_OK)
        return cli_fail_io(&error);
    state.raw = cli_alloc((uint64_t)work->k, sizeof(float));
    state.weights = cli_alloc((uint64_t)work->k, sizeof(float));
    state.result = cli_alloc((uint64_t)count, sizeof(float));
    int code = CLI_OK;
    halfbyte_status status = HALFBYTE_SUCCESS;
    if (state.raw == NULL || state.weights == NULL || state.result == NULL)
        code = cli_fail_memory((uint64_t)(count + 2 * work->k) * sizeof(float));
    else
        status = halfbyte_convert(state.result, HALFBYTE_TYPE_F32, work->result,
                                  work->made.problem.d_type, count);
    if (status != HALFBYTE_SUCCESS)
        code = cli_fail_status(status, "cannot widen the result");
    if (code == CLI_OK)
        code = compare_groups(&state);
    safetensors_model_close(state.model);
    free(state.raw);
    free(state.weights);
    free(state.result);
    work->has_errors = code == CLI_OK;
    return code;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* How D is stored: bf16 has no .npy type. */
static tensor_dtype output_dtype(const gemm_work *work)
{
    if (work->made.problem.d_type == HALFBYTE_TYPE_F16)
        return TENSOR_F16;
    if (work->made.problem.d_type == HALFBYTE_TYPE_BF16 && work->options.raw_bits)
        return TENSOR_U16;
    return TENSOR_F32;
}

int gemm_write_output(const gemm_work *work)
{
    const instance *made = &work->made;
    int64_t shape[2] = {made->owned_rows, made->n};
    int64_t count = made->owned_rows * made->n;
    tensor_dtype dtype = output_dtype(work);
    bool widen = made->problem.d_type == HALFBYTE_TYPE_BF16 && dtype == TENSOR_F32;
    float *wide = NULL;
    io_error error;
    if (widen) {
        wide = cli_alloc((uint64_t)count, sizeof *wide);
        if (wide == NULL)
            return cli_fail_memory((uint64_t)count * sizeof *wide);
        halfbyte_status status =
            halfbyte_convert(wide, HALFBYTE_TYPE_F32, work->result, HALFBYTE_TYPE_BF16, count);
        if (status != HALFBYTE_SUCCESS) {
            free(wide);
            return cli_fail_status(status, "cannot widen the result");
        }
    }
    io_status status = npy_write(work->options.output, dtype, 2, shape,
                                 widen ? (const void *)wide : work->result, &error);
    free(wide);
    return status == IO_OK ? CLI_OK : cli_fail_io(&error);
}

static double multiply_accumulates(const gemm_work *work)
{
    return (double)work->made.owned_rows * (double)work->made.n * (double)work->made.k;
}

/* Weights or activations were drawn, so the seed is part of the result. */
static bool uses_random(const gemm_work *work)
{
    return work->options.activations == NULL || work->options.problem_text != NULL;
}

static int report_json(const gemm_work *work, const char *problem, const char *checksum)
{
    const instance *made = &work->made;
    const gemm_options *options = &work->options;
    json_t *line = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:f, s:s}", "problem", problem, "plan",
        work->description, "m", (json_int_t)made->owned_rows, "n", (json_int_t)made->n, "k",
        (json_int_t)made->k, "groups", (json_int_t)made->groups, "d_type",
        halfbyte_type_name(made->problem.d_type), "seconds", work->seconds, "checksum", checksum);
    if (line == NULL)
        return cli_emit(NULL);
    if (uses_random(work))
        json_object_set_new(line, "seed", json_integer(options->seed));
    if (options->tensor != NULL)
        json_object_set_new(line, "scheme", json_string(scheme_name(work->first.scheme)));
    if (work->static_scale > 0)
        json_object_set_new(line, "input_scale", json_real((double)work->static_scale));
    if (options->output != NULL)
        json_object_set_new(line, "output", cli_json_text(options->output));
    if (options->check)
        json_object_set_new(line, "different", json_integer((json_int_t)work->different));
    if (work->has_errors)
        error_stats_json(&work->errors, line);
    return cli_emit(line);
}

static void report_inputs(const gemm_work *work)
{
    const gemm_options *options = &work->options;
    if (options->tensor != NULL)
        printf("weights      %s, %s (%s)\n", options->weights, options->tensor,
               scheme_name(work->first.scheme));
    else
        printf("weights      random, seed %lld\n", (long long)options->seed);
    if (options->activations != NULL)
        printf("activations  %s\n", options->activations);
    else
        printf("activations  random, seed %lld\n", (long long)options->seed);
    if (work->static_scale > 0)
        printf("input scale  %g\n", (double)work->static_scale);
}

int gemm_report(const gemm_work *work)
{
    const instance *made = &work->made;
    char problem[PROBLEM_TEXT_BYTES];
    char checksum[40], rms[24], largest[24], sqnr[24];
    const char *types[] = {[TENSOR_F32] = "f32", [TENSOR_F16] = "f16", [TENSOR_U16] = "bf16 as u2"};
    problem_print(&made->problem, problem);
    snprintf(checksum, sizeof checksum, "fnv1a64:%016llx", (unsigned long long)work->checksum);
    if (cli.json)
        return report_json(work, problem, checksum);
    if (cli.verbosity >= 0) {
        printf("problem      %s\n", problem);
        printf("plan         %s\n", work->description);
        report_inputs(work);
        printf("time         %.3f ms, %.2f G multiply-accumulates a second\n", work->seconds * 1e3,
               multiply_accumulates(work) / 1e9 / (work->seconds > 0 ? work->seconds : 1e-9));
    } else if (uses_random(work))
        printf("seed         %lld\n", (long long)work->options.seed);
    if (work->has_errors)
        printf("errors       relative RMS %s, largest error %s, SQNR %s dB\n",
               cli_format_real(error_stats_relative_rms(&work->errors), rms),
               cli_format_real(work->errors.max_error, largest),
               cli_format_real(error_stats_sqnr_db(&work->errors), sqnr));
    if (work->options.output != NULL)
        printf("output       %s, %s [%lld, %lld]\n", work->options.output,
               types[output_dtype(work)], (long long)made->owned_rows, (long long)made->n);
    if (work->options.check)
        printf("check        %llu compared with the CPU model, %llu mismatches\n",
               (unsigned long long)(made->owned_rows * made->n),
               (unsigned long long)work->different);
    printf("checksum     %s of the %s bits\n", checksum, halfbyte_type_name(made->problem.d_type));
    return CLI_OK;
}
