/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte quantize: a safetensors model with its linear layers in a scheme of public checkpoints.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common.h"
#include "names.h"
#include "progress.h"
#include "quantize_report.h"

enum { KEY_SCHEME = 0x100, KEY_GROUP, KEY_INCLUDE, KEY_EXCLUDE, KEY_SCALE_TYPE, KEY_THREADS_Q };

static const struct argp_option quantize_argp_options[] = {
    {"output", 'o', "OUT", 0, "File to write; an old one is replaced when all is done", 0},
    {"scheme", KEY_SCHEME, "NAME", 0, "w4afp8 (int4) or fp8-block (e4m3, 128x128)", 0},
    {"group", KEY_GROUP, "N", 0,
     "w4afp8: weights that share a scale: 32, 64, 128 (default) or all of k", 0},
    {"scale-type", KEY_SCALE_TYPE, "TYPE", 0, "w4afp8: f32 (default), bf16 or f16", 0},
    {"include", KEY_INCLUDE, "GLOB", 0, "Only tensors that match; may be repeated", 0},
    {"exclude", KEY_EXCLUDE, "GLOB", 0, "No tensors that match; may be repeated", 0},
    {"threads", KEY_THREADS_Q, "N", 0, "Threads; changes no bit (default: all CPUs)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static void parse_scheme(quantize_options *options, const char *text, struct argp_state *state)
{
    if (strcmp(text, "w4afp8") == 0)
        options->scheme = SCHEME_W4AFP8;
    else if (strcmp(text, "fp8-block") == 0)
        options->scheme = SCHEME_FP8_BLOCK;
    else
        argp_error(state, "--scheme takes w4afp8 or fp8-block, not '%s'", text);
    options->scheme_given = true;
}

static void parse_group(quantize_options *options, const char *text, struct argp_state *state)
{
    options->group_given = true;
    if (strcmp(text, "all") == 0)
        options->group_size = 0;
    else if (!cli_parse_int(text, 32, 128, &options->group_size) ||
             (options->group_size & (options->group_size - 1)) != 0)
        argp_error(state, "--group takes 32, 64, 128 or all, not '%s'", text);
}

static void parse_scale_type(quantize_options *options, const char *text, struct argp_state *state)
{
    if (strcmp(text, "f32") == 0)
        options->scale_type = HALFBYTE_TYPE_F32;
    else if (strcmp(text, "bf16") == 0)
        options->scale_type = HALFBYTE_TYPE_BF16;
    else if (strcmp(text, "f16") == 0)
        options->scale_type = HALFBYTE_TYPE_F16;
    else
        argp_error(state, "--scale-type takes f32, bf16 or f16, not '%s'", text);
}

static void parse_end(const quantize_options *options, struct argp_state *state)
{
    if (options->input == NULL)
        argp_error(state, "which model? IN is a safetensors file, an index or a directory");
    else if (options->output == NULL)
        argp_error(state, "where to? -o OUT names the file to write");
    else if (!options->scheme_given)
        argp_error(state, "which scheme? --scheme w4afp8 or --scheme fp8-block");
    else if (options->scheme == SCHEME_FP8_BLOCK && options->group_given)
        argp_error(state, "--group is for w4afp8; the blocks of fp8-block are 128x128");
    else if (options->scheme == SCHEME_FP8_BLOCK && options->scale_type > HALFBYTE_TYPE_F32)
        argp_error(state, "--scale-type is for w4afp8; the scales of fp8-block are f32");
}

static void add_glob(const char **globs, int *count, const char *text, struct argp_state *state)
{
    if (*count == QUANTIZE_MAX_GLOBS)
        argp_error(state, "more than %d patterns", QUANTIZE_MAX_GLOBS);
    else
        globs[(*count)++] = text;
}

static error_t parse_quantize(int key, char *text, struct argp_state *state)
{
    quantize_options *options = state->input;
    int64_t threads = 0;
    switch (key) {
    case 'o': options->output = text; break;
    case KEY_SCHEME: parse_scheme(options, text, state); break;
    case KEY_GROUP: parse_group(options, text, state); break;
    case KEY_SCALE_TYPE: parse_scale_type(options, text, state); break;
    case KEY_INCLUDE: add_glob(options->includes, &options->num_includes, text, state); break;
    case KEY_EXCLUDE: add_glob(options->excludes, &options->num_excludes, text, state); break;
    case KEY_THREADS_Q:
        if (!cli_parse_int(text, 1, 1024, &threads))
            argp_error(state, "--threads takes a number from 1 to 1024, not '%s'", text);
        options->threads = (int32_t)threads;
        break;
    case ARGP_KEY_ARG:
        if (options->input != NULL)
            argp_error(state, "one IN only; '%s' is another", text);
        options->input = text;
        break;
    case ARGP_KEY_END: parse_end(options, state); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child quantize_children[] = {{&cli_common_argp, 0, NULL, 0},
                                                      {NULL, 0, NULL, 0}};
static const struct argp quantize_argp = {
    .options = quantize_argp_options,
    .parser = parse_quantize,
    .args_doc = "IN -o OUT --scheme NAME",
    .doc = "Quantise the linear layers of a safetensors model (file, index or directory)\n"
           "into one file with the tensor names, types and scales of public checkpoints.\n"
           "\nExamples:\n"
           "  halfbyte quantize model.safetensors -o w4.safetensors --scheme w4afp8\n"
           "  halfbyte quantize model/ -o fp8.safetensors --scheme fp8-block\n"
           "  halfbyte quantize model/ -o w4.safetensors --scheme w4afp8 \\\n"
           "      --group 64 --include '*.experts.*' --exclude '*.0.*'\n"
           "\nQuantised: 2-D tensors named *.weight of type F32, BF16 or F16, unless the\n"
           "name says embedding (embed, wte, wpe), norm (norm, ln_, .ln1), output head\n"
           "(lm_head) or router (.gate.weight, router); --include overrides that. w4afp8\n"
           "keeps tensors whose k is no multiple of the group or whose n is none of 8.\n"
           "All else is kept byte for byte, metadata too. The errors printed compare\n"
           "each quantised tensor with the original.\n"
           "\nOUT appears when all is written, whole; an older OUT is replaced then, without\n"
           "being asked for. A run that is stopped leaves the old OUT or none.\n",
    .children = quantize_children,
};

/* ---- the run --------------------------------------------------------------------------------- */

static int select_tensors(quantize_run *work)
{
    work->count = safetensors_model_count(work->model);
    work->items = calloc(work->count > 0 ? work->count : 1, sizeof *work->items);
    if (work->items == NULL)
        return cli_fail_memory(work->count * sizeof *work->items);
    for (size_t i = 0; i < work->count; ++i) {
        quantize_item *item = &work->items[i];
        const safetensors_tensor *tensor = safetensors_model_at(work->model, i);
        char shape[168];
        quantize_select(&work->options, work->model, tensor, item);
        work->bytes_in += tensor->spec.bytes;
        if (!item->quantize)
            continue;
        ++work->num_quantized;
        tensor_shape_format(&tensor->spec, shape, sizeof shape);
        int name_width = (int)strlen(cli_bare_name(tensor->name).text);
        int shape_width = (int)strlen(shape);
        work->name_width = name_width > work->name_width ? name_width : work->name_width;
        work->shape_width = shape_width > work->shape_width ? shape_width : work->shape_width;
    }
    return CLI_OK;
}

/* Nothing is written then: an output without a quantised tensor is never what was wanted. */
static int fail_nothing(const quantize_run *work)
{
    for (size_t i = 0; i < work->count; ++i) {
        const quantize_item *item = &work->items[i];
        if (item->notable || name_ends_with(item->tensor->name, ".weight"))
            return cli_fail(CLI_USAGE, "no tensor of %s is quantised; %s, for one: %s",
                            io_quote_path(work->options.input).text,
                            io_quote(item->tensor->name).text, item->reason);
    }
    return cli_fail(CLI_USAGE, "no tensor of %s is quantised: none is a 2-D *.weight",
                    io_quote_path(work->options.input).text);
}

/* Metadata of all shards, the first value of each key; then how this file was made. */
static io_status copy_metadata(quantize_run *work, io_error *error)
{
    io_status status = IO_OK;
    size_t shards = safetensors_model_shard_count(work->model);
    for (size_t s = 0; s < shards; ++s) {
        const safetensors_file *file = safetensors_model_shard(work->model, s);
        for (size_t i = 0; i < safetensors_metadata_count(file); ++i) {
            const char *key = safetensors_metadata_key(file, i);
            bool known = strncmp(key, "halfbyte.", 9) == 0;
            for (size_t earlier = 0; !known && earlier < s; ++earlier)
                known = safetensors_metadata_find(safetensors_model_shard(work->model, earlier),
                                                  key) != NULL;
            if (known)
                continue;
            status = safetensors_writer_add_metadata(work->writer, key,
                                                     safetensors_metadata_value(file, i), error);
            if (status != IO_OK)
                return status;
        }
    }
    return IO_OK;
}

static io_status add_own_metadata(quantize_run *work, io_error *error)
{
    const quantize_options *options = &work->options;
    bool int4 = options->scheme == SCHEME_W4AFP8;
    char group[32] = "128x128";
    if (int4 && options->group_size == 0)
        snprintf(group, sizeof group, "all");
    else if (int4)
        snprintf(group, sizeof group, "%lld", (long long)options->group_size);
    const char *const pairs[][2] = {
        {"halfbyte.scheme", scheme_name(options->scheme)},
        {"halfbyte.group", group},
        {"halfbyte.version", halfbyte_version_text()},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
        io_status status =
            safetensors_writer_add_metadata(work->writer, pairs[i][0], pairs[i][1], error);
        if (status != IO_OK)
            return status;
    }
    return IO_OK;
}

static int begin_output(quantize_run *work)
{
    io_error error;
    io_status status = safetensors_writer_create(&work->writer, &error);
    if (status == IO_OK)
        status = copy_metadata(work, &error);
    if (status == IO_OK)
        status = add_own_metadata(work, &error);
    for (size_t i = 0; status == IO_OK && i < work->count; ++i)
        status = quantize_declare(&work->options, &work->items[i], work->writer, &error);
    if (status == IO_OK)
        status = safetensors_writer_begin(work->writer, work->options.output, &error);
    return status == IO_OK ? CLI_OK : cli_fail_io(&error);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int convert_all(quantize_run *work)
{
    int code = CLI_OK;
    if (!cli.json && cli.verbosity >= 0)
        quantize_print_heading(work);
    progress_begin("quantising", work->bytes_in, NULL);
    for (size_t i = 0; code == CLI_OK && i < work->count; ++i) {
        const quantize_item *item = &work->items[i];
        error_stats stats = {0, 0, 0, 0};
        if (!item->quantize) {
            code = quantize_copy(item, work->model, work->writer);
            continue;
        }
        code =
            quantize_stream(&work->options, item, work->model, work->writer, work->device, &stats);
        error_stats_merge(&work->total, &stats);
        if (code == CLI_OK)
            code = quantize_report_tensor(work, item, &stats);
    }
    progress_end();
    return code;
}

static int quantize(quantize_run *work)
{
    io_error error;
    double start = cli_seconds();
    if (safetensors_model_open(&work->model, work->options.input, &error) != IO_OK)
        return cli_fail_io(&error);
    if (model_reads_file(work->model, work->options.input, work->options.output))
        return cli_fail(CLI_USAGE, "%s is the input; give another -o OUT",
                        io_quote_path(work->options.output).text);
    int code = select_tensors(work);
    if (code == CLI_OK && work->num_quantized == 0)
        code = fail_nothing(work);
    if (code != CLI_OK)
        return code;
    if (safetensors_model_unlisted_count(work->model) > 0)
        cli_note("%zu tensors lie in the files but not in the index; they are left out",
                 safetensors_model_unlisted_count(work->model));
    halfbyte_device_options device = cli_default_device();
    device.threads = work->options.threads;
    code = cli_open_device(&work->device, &device);
    if (code == CLI_OK)
        code = begin_output(work);
    if (code == CLI_OK)
        code = convert_all(work);
    if (code != CLI_OK)
        return code;
    uint64_t bytes_out = safetensors_writer_file_bytes(work->writer);
    if (safetensors_writer_commit(work->writer, &error) != IO_OK)
        return cli_fail_io(&error);
    return quantize_report(work, bytes_out, cli_seconds() - start);
}

int command_quantize(int argc, char **argv)
{
    quantize_run work;
    memset(&work, 0, sizeof work);
    work.options.group_size = 128;
    int code = cli_parse(&quantize_argp, "halfbyte quantize", argc, argv, &work.options);
    if (code == CLI_OK)
        code = quantize(&work);
    safetensors_writer_destroy(work.writer);
    safetensors_model_close(work.model);
    halfbyte_device_close(work.device);
    free(work.items);
    return code;
}
