/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte inspect: the tensors of a checkpoint, the layers it recognises, and what is wrong. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common.h"
#include "inspection.h"
#include "names.h"
#include "progress.h"

enum { KEY_LAYERS = 0x100, KEY_HEADERS_ONLY };

static const struct argp_option inspect_argp_options[] = {
    {"filter", 'f', "GLOB", 0, "List only tensors whose name matches, as in '*.mlp.*'", 0},
    {"limit", 'n', "N", 0, "List at most N tensors (default 40; 0: all)", 0},
    {"layers", KEY_LAYERS, NULL, 0, "List the recognised layers too", 0},
    {"headers-only", KEY_HEADERS_ONLY, NULL, 0, "Do not read the scales to check their values", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse_inspect(int key, char *text, struct argp_state *state)
{
    inspect_options *options = state->input;
    switch (key) {
    case 'f': options->pattern = text; break;
    case 'n':
        if (!cli_parse_int(text, 0, INT64_MAX, &options->limit))
            argp_error(state, "--limit takes a number, not '%s'", text);
        break;
    case KEY_LAYERS: options->layers = true; break;
    case KEY_HEADERS_ONLY: options->headers_only = true; break;
    case ARGP_KEY_ARG:
        if (options->path != NULL)
            argp_error(state, "one FILE or DIR only; '%s' is another", text);
        options->path = text;
        break;
    case ARGP_KEY_END:
        if (options->path == NULL)
            argp_error(state, "which FILE or DIR?");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child inspect_children[] = {{&cli_common_argp, 0, NULL, 0},
                                                     {NULL, 0, NULL, 0}};
static const struct argp inspect_argp = {
    .options = inspect_argp_options,
    .parser = parse_inspect,
    .args_doc = "FILE|DIR",
    .doc = "List the tensors of a safetensors file, an index or a model's directory;\n"
           "name the quantisation schemes and layers found, and what is wrong.\n"
           "\nExamples:\n"
           "  halfbyte inspect model.safetensors\n"
           "  halfbyte inspect DeepSeek-R1/ --filter '*.layers.3.*' --limit 0\n"
           "  halfbyte inspect model.safetensors --json | jq 'select(.kind == \"fault\")'\n"
           "\nExit code 1 if a fault was found.\n",
    .children = inspect_children,
};

/* ---- gathering ------------------------------------------------------------------------------- */

static size_t group_slot(int64_t group_size)
{
    return group_size == 128 ? 0 : group_size == 64 ? 1 : group_size == 32 ? 2 : 3;
}

static void count_layer(inspection *work, const layer *found)
{
    tally *sum = &work->tallies[found->scheme];
    ++sum->layers;
    sum->weights += (uint64_t)found->n * (uint64_t)found->k;
    sum->bytes += layer_bytes(found);
    sum->with_input_scale += found->input_scale != NULL;
    if (found->scheme == SCHEME_W4AFP8 || found->scheme == SCHEME_PACK_QUANTIZED)
        ++sum->groups[group_slot(found->group_size)];
    if (found->scale != NULL)
        ++sum->scale_types[found->scale->spec.dtype];
}

/* A scale without its weight is what is left of a layer that lost a tensor. */
static void check_orphan(inspection *work, const safetensors_tensor *tensor)
{
    static const char *const suffixes[] = {"_scale_inv", "_scale"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; ++i) {
        if (!name_ends_with(tensor->name, suffixes[i]))
            continue;
        size_t bytes = strlen(tensor->name) - strlen(suffixes[i]);
        if (bytes < 7 || memcmp(tensor->name + bytes - 7, ".weight", 7) != 0)
            return;
        char *plain = name_join(tensor->name, bytes, "");
        char *packed = name_join(tensor->name, bytes, "_packed");
        if (plain == NULL || packed == NULL)
            work->faults.out_of_memory = true;
        else if (safetensors_model_find(work->model, plain) == NULL &&
                 safetensors_model_find(work->model, packed) == NULL)
            faults_add(&work->faults, tensor->name, "a scale, but its weight is missing");
        free(plain);
        free(packed);
        return;
    }
}

/* If some layers of a scheme have static activation scales, one without is a lost tensor. */
static void check_input_scales(inspection *work)
{
    for (size_t i = 0; i < work->num_layers; ++i) {
        const layer *found = &work->layers[i];
        const tally *sum = &work->tallies[found->scheme];
        if (found->scale != NULL && found->input_scale == NULL && sum->with_input_scale > 0)
            faults_add(&work->faults, found->weight->name,
                       "input_scale is missing; %llu other %s layers have one",
                       (unsigned long long)sum->with_input_scale, scheme_name(found->scheme));
    }
}

static int find_layers(inspection *work)
{
    size_t count = safetensors_model_count(work->model);
    work->layers = calloc(count > 0 ? count : 1, sizeof *work->layers);
    if (work->layers == NULL)
        return cli_fail_memory(count * sizeof *work->layers);
    for (size_t i = 0; i < count; ++i) {
        const safetensors_tensor *tensor = safetensors_model_at(work->model, i);
        layer *found = &work->layers[work->num_layers];
        check_orphan(work, tensor);
        if (layer_recognize(work->model, tensor, found, &work->faults)) {
            count_layer(work, found);
            ++work->num_layers;
        }
    }
    check_input_scales(work);
    return CLI_OK;
}

static uint64_t scale_bytes(const layer *found)
{
    return layer_bytes(found) - found->weight->spec.bytes;
}

static int check_values(inspection *work)
{
    uint64_t total = 0;
    int code = CLI_OK;
    for (size_t i = 0; i < work->num_layers; ++i)
        total += scale_bytes(&work->layers[i]);
    progress_begin("checking scales", total, NULL);
    for (size_t i = 0; code == CLI_OK && i < work->num_layers; ++i) {
        io_error error;
        if (layer_check_values(work->model, &work->layers[i], &work->faults, &error) != IO_OK) {
            progress_clear();
            code = cli_fail_io(&error);
        }
        progress_add(scale_bytes(&work->layers[i]));
    }
    progress_end();
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int inspect(inspection *work)
{
    io_error error;
    if (safetensors_model_open(&work->model, work->options.path, &error) != IO_OK)
        return cli_fail_io(&error);
    size_t unlisted = safetensors_model_unlisted_count(work->model);
    if (unlisted > 0)
        cli_note("%zu tensors lie in the files but not in the index; they are left out", unlisted);
    int code = find_layers(work);
    if (code == CLI_OK && !work->options.headers_only)
        code = check_values(work);
    if (code != CLI_OK)
        return code;
    if (work->faults.out_of_memory)
        return cli_fail(CLI_ENVIRONMENT, "out of memory while listing faults");
    if (cli.json)
        code = inspection_print_json(work);
    else
        inspection_print_text(work);
    if (code != CLI_OK)
        return code;
    return work->faults.count > 0 ? CLI_CHECK_FAILED : CLI_OK;
}

int command_inspect(int argc, char **argv)
{
    inspection work;
    memset(&work, 0, sizeof work);
    work.options.limit = 40;
    int code = cli_parse(&inspect_argp, "halfbyte inspect", argc, argv, &work.options);
    if (code == CLI_OK)
        code = inspect(&work);
    safetensors_model_close(work.model);
    faults_free(&work.faults);
    free(work.layers);
    return code;
}
