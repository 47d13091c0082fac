/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte gemm: one product, from a checkpoint's weights or from random numbers. */
#define _GNU_SOURCE
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common.h"
#include "gemm.h"
#include "problem.h"
#include "random.h"

enum {
    KEY_PROBLEM = 0x100,
    KEY_WEIGHTS,
    KEY_TENSOR,
    KEY_BIAS,
    KEY_ACTIVATIONS,
    KEY_ROWS,
    KEY_A_SCALE,
    KEY_GROUP_SIZES,
    KEY_GROUPING,
    KEY_D_TYPE,
    KEY_ALPHA,
    KEY_K_SPLITS,
    KEY_PACKED,
    KEY_SEED,
    KEY_REFERENCE,
    KEY_REFERENCE_TENSOR,
    KEY_RAW_BITS,
    KEY_REPEAT,
    KEY_CHECK
};

static const struct argp_option gemm_argp_options[] = {
    {NULL, 0, NULL, 0, "Weights of a checkpoint:", 1},
    {"weights", KEY_WEIGHTS, "FILE", 0, "Quantised safetensors file, index or directory", 0},
    {"tensor", KEY_TENSOR, "NAME", 0,
     "Its weight tensor; {e} in it is replaced by the number of the group", 0},
    {"bias", KEY_BIAS, "NAME", 0, "Tensor added to each row; {e} as above", 0},
    {"a-scale", KEY_A_SCALE, "MODE", 0,
     "Scales of the activations: 1x128 (default), token, tensor, static (the checkpoint's "
     "input_scale) or none",
     0},
    {"d-type", KEY_D_TYPE, "TYPE", 0, "Type of the result: bf16 (default), f16 or f32", 0},
    {"alpha", KEY_ALPHA, "X", 0, "Multiply the product by X before the bias", 0},
    {"k-splits", KEY_K_SPLITS, "N", 0, "Sum k in N parts; gives other bits", 0},
    {"packed", KEY_PACKED, NULL, 0, "Pack int4 weights first; changes no bit", 0},
    {"grouping", KEY_GROUPING, "NAME", 0, "ranges (default), masked or labels; changes no bit", 0},
    {"reference", KEY_REFERENCE, "FILE", 0,
     "Unquantised checkpoint; prints the errors against its fp64 product", 0},
    {"reference-tensor", KEY_REFERENCE_TENSOR, "NAME", 0, "Its tensor, if not called --tensor", 0},

    {NULL, 0, NULL, 0, "Random weights:", 2},
    {"problem", KEY_PROBLEM, "STRING", 0,
     "What to multiply, as in w4a8:m16n4096k7168:a1x128:bk128 (halfbyte help problem)", 0},

    {NULL, 0, NULL, 0, "Both:", 3},
    {"activations", KEY_ACTIVATIONS, "FILE", 0, ".npy [rows, k], f32 or f16 (default: random)", 0},
    {"rows", KEY_ROWS, "M", 0, "Rows of random activations (default 16)", 0},
    {"group-sizes", KEY_GROUP_SIZES, "FILE", 0,
     "Rows of each group: text, one number a line, or .npy of integers", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of all random numbers (default 1)", 0},
    {"output", 'o', "FILE", 0, "Write the result as .npy; bf16 is widened to f32", 0},
    {"raw-bits", KEY_RAW_BITS, NULL, 0, "Write bf16 as its bits, in type u2", 0},
    {"repeat", KEY_REPEAT, "N", 0, "Run N times and print the shortest time", 0},
    {"check", KEY_CHECK, NULL, 0,
     "With --executor gpu: multiply on the CPU model too and compare every bit", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static const struct argp_child gemm_children[] = {
    {&cli_device_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};

static void parse_a_scale(gemm_options *options, const char *text, struct argp_state *state)
{
    options->a_scale_given = true;
    options->a_static = strcmp(text, "static") == 0;
    if (strcmp(text, "1x128") == 0)
        options->a_scale = HALFBYTE_SCALE_1X128;
    else if (strcmp(text, "token") == 0)
        options->a_scale = HALFBYTE_SCALE_OUTER;
    else if (strcmp(text, "tensor") == 0 || options->a_static)
        options->a_scale = HALFBYTE_SCALE_TENSOR;
    else if (strcmp(text, "none") == 0)
        options->a_scale = HALFBYTE_SCALE_NONE;
    else
        argp_error(state, "--a-scale takes 1x128, token, tensor, static or none, not '%s'", text);
}

static void parse_grouping(gemm_options *options, const char *text, struct argp_state *state)
{
    options->grouping_given = true;
    if (strcmp(text, "ranges") == 0)
        options->grouping = HALFBYTE_GROUPING_RANGES;
    else if (strcmp(text, "masked") == 0)
        options->grouping = HALFBYTE_GROUPING_MASKED;
    else if (strcmp(text, "labels") == 0)
        options->grouping = HALFBYTE_GROUPING_LABELS;
    else
        argp_error(state, "--grouping takes ranges, masked or labels, not '%s'", text);
}

static void parse_d_type(gemm_options *options, const char *text, struct argp_state *state)
{
    if (strcmp(text, "bf16") == 0)
        options->d_type = HALFBYTE_TYPE_BF16;
    else if (strcmp(text, "f16") == 0)
        options->d_type = HALFBYTE_TYPE_F16;
    else if (strcmp(text, "f32") == 0)
        options->d_type = HALFBYTE_TYPE_F32;
    else
        argp_error(state, "--d-type takes bf16, f16 or f32, not '%s'", text);
}

static void parse_number(const char *name, const char *text, int64_t low, int64_t high,
                         int64_t *value, struct argp_state *state)
{
    if (!cli_parse_int(text, low, high, value))
        argp_error(state, "%s takes a number from %lld to %lld, not '%s'", name, (long long)low,
                   (long long)high, text);
}

static void parse_end(const gemm_options *options, struct argp_state *state)
{
    if ((options->problem_text != NULL) == (options->weights != NULL))
        argp_error(state, "either --weights FILE --tensor NAME or --problem STRING");
    else if (options->weights != NULL && options->tensor == NULL)
        argp_error(state, "which --tensor of --weights? 'halfbyte inspect %s' lists them",
                   options->weights);
    else if (options->problem_text != NULL && options->shape_given)
        argp_error(state, "--problem says all; --tensor, --bias, --a-scale, --d-type, --alpha, "
                          "--k-splits, --packed, --grouping, --reference and --rows go with "
                          "--weights");
    else if (options->activations != NULL && options->rows > 0)
        argp_error(state, "--rows is for random activations; those of a file have theirs");
    else if (options->check && options->device.executor != HALFBYTE_EXECUTOR_GPU)
        argp_error(state, "--check compares --executor gpu with the CPU model");
}

/* Options that take a name or flag; false if the key is none of them. */
static bool parse_texts(gemm_options *options, int key, char *text)
{
    switch (key) {
    case KEY_PROBLEM: options->problem_text = text; return true;
    case KEY_WEIGHTS: options->weights = text; return true;
    case KEY_ACTIVATIONS: options->activations = text; return true;
    case KEY_GROUP_SIZES: options->group_sizes = text; return true;
    case 'o': options->output = text; return true;
    case KEY_RAW_BITS: options->raw_bits = true; return true;
    case KEY_CHECK: options->check = true; return true;
    case KEY_TENSOR: options->tensor = text; break;
    case KEY_BIAS: options->bias = text; break;
    case KEY_REFERENCE: options->reference = text; break;
    case KEY_REFERENCE_TENSOR: options->reference_tensor = text; break;
    case KEY_PACKED: options->packed = true; break;
    default: return false;
    }
    options->shape_given = true;
    return true;
}

static error_t parse_gemm(int key, char *text, struct argp_state *state)
{
    gemm_options *options = state->input;
    if (parse_texts(options, key, text))
        return 0;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &options->device; return 0;
    case ARGP_KEY_ARG: argp_error(state, "gemm takes options only, not '%s'", text); return 0;
    case ARGP_KEY_END: parse_end(options, state); return 0;
    case KEY_SEED: parse_number("--seed", text, 0, INT64_MAX, &options->seed, state); return 0;
    case KEY_REPEAT: parse_number("--repeat", text, 1, 1000000, &options->repeat, state); return 0;
    case KEY_ROWS: parse_number("--rows", text, 1, INT32_MAX, &options->rows, state); break;
    case KEY_K_SPLITS:
        parse_number("--k-splits", text, 1, INT32_MAX, &options->k_splits, state);
        break;
    case KEY_A_SCALE: parse_a_scale(options, text, state); break;
    case KEY_GROUPING: parse_grouping(options, text, state); break;
    case KEY_D_TYPE: parse_d_type(options, text, state); break;
    case KEY_ALPHA:
        options->alpha_given = true;
        if (!cli_parse_real(text, &options->alpha) || options->alpha > FLT_MAX ||
            options->alpha < -FLT_MAX)
            argp_error(state, "--alpha takes a number, not '%s'", text);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    options->shape_given = true;
    return 0;
}

static const struct argp gemm_argp = {
    .options = gemm_argp_options,
    .parser = parse_gemm,
    .args_doc = "--weights FILE --tensor NAME\n--problem STRING",
    .doc = "Multiply activations by quantised weights: D = A * B^T, exact to the last bit.\n"
           "\nExamples:\n"
           "  halfbyte gemm --weights w4.safetensors --tensor layer.0.up_proj.weight \\\n"
           "      --activations x.npy --reference model.safetensors -o y.npy\n"
           "  halfbyte gemm --weights moe.safetensors \\\n"
           "      --tensor 'model.layers.3.mlp.experts.{e}.up_proj.weight' \\\n"
           "      --group-sizes sizes.txt --a-scale static\n"
           "  halfbyte gemm --problem w4a8:m16n4096k7168:a1x128:bk128 --seed 7\n"
           "\nThe checksum is FNV-1a (64 bits) over the result's bits, row by row, groups in\n"
           "order: whatever computes the same problem must print the same.\n",
    .children = gemm_children,
};

/* ---- the run --------------------------------------------------------------------------------- */

static int parse_problem(gemm_work *work, halfbyte_problem *problem)
{
    char error[PROBLEM_ERROR_BYTES];
    if (!problem_parse(work->options.problem_text, problem, error))
        return cli_fail(CLI_USAGE, "--problem: %s", error);
    int64_t groups = problem->groups > 0 ? problem->groups : 1;
    if (work->sizes != NULL && work->groups != groups)
        return cli_fail(CLI_USAGE, "--group-sizes lists %lld groups, the problem has %lld",
                        (long long)work->groups, (long long)groups);
    work->groups = groups;
    return CLI_OK;
}

/* Refuses what the library refuses before memory is taken for it. */
static int try_plan(const gemm_work *work, const halfbyte_problem *problem)
{
    halfbyte_plan *plan = NULL;
    halfbyte_status status = halfbyte_plan_create(&plan, problem, work->device);
    halfbyte_plan_destroy(plan);
    return status == HALFBYTE_SUCCESS ? CLI_OK : cli_fail_status(status, NULL);
}

static int check_rows(const gemm_work *work)
{
    const instance *made = &work->made;
    if (work->rows != made->owned_rows)
        return cli_fail(CLI_USAGE, "%s has %lld rows; the problem and its groups have %lld",
                        io_quote_path(work->options.activations).text, (long long)work->rows,
                        (long long)made->owned_rows);
    if (work->k != made->k)
        return cli_fail(CLI_USAGE, "%s has %lld columns; the weights have k = %lld",
                        io_quote_path(work->options.activations).text, (long long)work->k,
                        (long long)made->k);
    return CLI_OK;
}

/* A: from the file that was read, or random; quantised into the instance. */
static int set_activations(gemm_work *work)
{
    instance *made = &work->made;
    if (work->values != NULL) {
        int code = check_rows(work);
        return code == CLI_OK
                   ? instance_set_activations(made, work->host, work->values, work->static_scale)
                   : code;
    }
    uint64_t count = (uint64_t)made->owned_rows * (uint64_t)made->k;
    work->rows = made->owned_rows;
    work->k = made->k;
    work->values = cli_alloc(count, sizeof(float));
    if (work->values == NULL)
        return cli_fail_memory(count * sizeof(float));
    for (uint64_t i = 0; i < count; ++i)
        work->values[i] = random_normal(random_bits((uint64_t)work->options.seed, RANDOM_A, i));
    return instance_set_activations(made, work->host, work->values, work->static_scale);
}

static int refuse_output(const char *output)
{
    return cli_fail(CLI_USAGE, "%s is an input; give another -o FILE", io_quote_path(output).text);
}

/* The result must not take the place of what it is made from; --weights is looked at when open. */
static int check_output(const gemm_options *options)
{
    const char *const inputs[] = {options->activations, options->group_sizes};
    for (size_t i = 0; options->output != NULL && i < sizeof inputs / sizeof inputs[0]; ++i) {
        if (inputs[i] != NULL && cli_same_file(inputs[i], options->output))
            return refuse_output(options->output);
    }
    if (options->output == NULL || options->reference == NULL)
        return CLI_OK;
    safetensors_model *model = NULL;
    io_error error;
    if (safetensors_model_open(&model, options->reference, &error) != IO_OK)
        return cli_fail_io(&error);
    bool same = model_reads_file(model, options->reference, options->output);
    safetensors_model_close(model);
    return same ? refuse_output(options->output) : CLI_OK;
}

static int prepare(gemm_work *work)
{
    const gemm_options *options = &work->options;
    halfbyte_problem problem;
    int code = check_output(options);
    if (code == CLI_OK && options->group_sizes != NULL)
        code = gemm_read_sizes(work);
    if (code == CLI_OK && options->activations != NULL)
        code = gemm_read_activations(work);
    else
        work->rows = work->sizes != NULL ? work->sizes_total
                     : options->rows > 0 ? options->rows
                                         : 16;
    if (code == CLI_OK && work->sizes != NULL && options->rows > 0 &&
        options->rows != work->sizes_total)
        code = cli_fail(CLI_USAGE, "--group-sizes adds up to %lld rows, --rows says %lld",
                        (long long)work->sizes_total, (long long)options->rows);
    if (code == CLI_OK && options->weights != NULL) {
        code = gemm_open_weights(work);
        if (code == CLI_OK && options->output != NULL &&
            model_reads_file(work->model, options->weights, options->output))
            code = refuse_output(options->output);
        if (code == CLI_OK)
            code = gemm_build_problem(work, &problem);
    } else if (code == CLI_OK) {
        code = parse_problem(work, &problem);
    }
    if (code == CLI_OK)
        code = try_plan(work, &problem);
    if (code == CLI_OK)
        code = instance_create(&work->made, &problem, work->sizes, 0);
    if (code == CLI_OK && options->weights != NULL)
        code = gemm_load_weights(work);
    else if (code == CLI_OK)
        code = instance_randomize_weights(&work->made, (uint64_t)options->seed, FLAVOUR_PLAIN);
    if (code == CLI_OK)
        code = set_activations(work);
    return code == CLI_OK ? instance_pack(&work->made, work->host) : code;
}

static int gemm(gemm_work *work)
{
    int code = gemm_open(work);
    if (code == CLI_OK)
        code = prepare(work);
    if (code == CLI_OK)
        code = gemm_multiply(work);
    if (code == CLI_OK && work->options.reference != NULL)
        code = gemm_compare(work);
    if (code == CLI_OK && work->options.output != NULL)
        code = gemm_write_output(work);
    if (code == CLI_OK)
        code = gemm_report(work);
    if (code == CLI_OK && work->different > 0)
        code = CLI_CHECK_FAILED;
    return code;
}

int command_gemm(int argc, char **argv)
{
    gemm_work *work = calloc(1, sizeof *work);
    if (work == NULL)
        return cli_fail_memory(sizeof *work);
    work->options.device = cli_default_device();
    work->options.a_scale = HALFBYTE_SCALE_1X128;
    work->options.d_type = HALFBYTE_TYPE_BF16;
    work->options.seed = 1;
    work->options.repeat = 1;
    work->groups = 1;
    int code = cli_parse(&gemm_argp, "halfbyte gemm", argc, argv, &work->options);
    if (code == CLI_OK)
        code = gemm(work);
    instance_free(&work->made);
    safetensors_model_close(work->model);
    gemm_close(work);
    free(work->sizes);
    free(work->values);
    free(work->result);
    free(work);
    return code;
}
