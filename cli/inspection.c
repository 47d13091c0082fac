/* SPDX-License-Identifier: Apache-2.0 */
#include "inspection.h"

#include <string.h>

#include "common.h"
#include "names.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *shape_json(const tensor_spec *spec)
{
    json_t *shape = json_array();
    for (int i = 0; i < spec->rank; ++i)
        json_array_append_new(shape, json_integer(spec->shape[i]));
    return shape;
}

static int emit_tensors(const inspection *work)
{
    int code = CLI_OK;
    int64_t listed = 0;
    for (size_t i = 0; code == CLI_OK && i < safetensors_model_count(work->model); ++i) {
        const safetensors_tensor *tensor = safetensors_model_at(work->model, i);
        if (work->options.pattern != NULL && !name_matches(work->options.pattern, tensor->name))
            continue;
        if (work->options.limit > 0 && listed++ >= work->options.limit)
            break;
        code = cli_emit(json_pack(
            "{s:s, s:o, s:s, s:o, s:I, s:o}", "kind", "tensor", "name", cli_json_text(tensor->name),
            "dtype", tensor_dtype_name(tensor->spec.dtype), "shape", shape_json(&tensor->spec),
            "bytes", (json_int_t)tensor->spec.bytes, "file",
            cli_json_text(safetensors_path(safetensors_model_shard(work->model, tensor->shard)))));
    }
    return code;
}

static int emit_layers(const inspection *work)
{
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < work->num_layers; ++i) {
        const layer *found = &work->layers[i];
        json_t *scale = json_null();
        if (found->scale != NULL)
            scale = json_string(tensor_dtype_name(found->scale->spec.dtype));
        code = cli_emit(json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:o, s:b}", "kind", "layer",
                                  "name", cli_json_text(found->weight->name), "scheme",
                                  scheme_name(found->scheme), "n", (json_int_t)found->n, "k",
                                  (json_int_t)found->k, "group_size", (json_int_t)found->group_size,
                                  "scale_dtype", scale, "input_scale", found->input_scale != NULL));
    }
    return code;
}

static int emit_rest(const inspection *work)
{
    json_t *schemes = json_object();
    uint64_t bytes = 0;
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < work->faults.count; ++i)
        code = cli_emit(json_pack("{s:s, s:o, s:o}", "kind", "fault", "tensor",
                                  cli_json_text(work->faults.items[i].tensor), "text",
                                  cli_json_text(work->faults.items[i].text)));
    for (int s = 0; s < SCHEME_COUNT; ++s) {
        const tally *sum = &work->tallies[s];
        if (sum->layers > 0)
            json_object_set_new(schemes, scheme_name((scheme_id)s),
                                json_pack("{s:I, s:I, s:I}", "layers", (json_int_t)sum->layers,
                                          "weights", (json_int_t)sum->weights, "bytes",
                                          (json_int_t)sum->bytes));
    }
    for (size_t i = 0; i < safetensors_model_count(work->model); ++i)
        bytes += safetensors_model_at(work->model, i)->spec.bytes;
    if (code != CLI_OK) {
        json_decref(schemes);
        return code;
    }
    return cli_emit(json_pack("{s:s, s:o, s:I, s:I, s:I, s:o, s:I, s:b}", "kind", "summary", "path",
                              cli_json_text(work->options.path), "files",
                              (json_int_t)safetensors_model_shard_count(work->model), "tensors",
                              (json_int_t)safetensors_model_count(work->model), "bytes",
                              (json_int_t)bytes, "schemes", schemes, "faults",
                              (json_int_t)work->faults.count, "values_checked",
                              !work->options.headers_only));
}

int inspection_print_json(const inspection *work)
{
    int code = emit_tensors(work);
    if (code == CLI_OK && work->options.layers)
        code = emit_layers(work);
    return code == CLI_OK ? emit_rest(work) : code;
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_listed(const inspection *work, const safetensors_tensor *tensor)
{
    return work->options.pattern == NULL || name_matches(work->options.pattern, tensor->name);
}

/* Column widths of the first `limit` tensors that are listed; returns how many match in all. */
static int64_t measure_tensors(const inspection *work, int64_t limit, int *name, int *shape)
{
    int64_t matches = 0;
    *name = 4;
    *shape = 5;
    for (size_t i = 0; i < safetensors_model_count(work->model); ++i) {
        const safetensors_tensor *tensor = safetensors_model_at(work->model, i);
        char text[168];
        if (!is_listed(work, tensor) || matches++ >= limit)
            continue;
        tensor_shape_format(&tensor->spec, text, sizeof text);
        int name_width = (int)strlen(io_quote(tensor->name).text) - 2;
        *name = name_width > *name ? name_width : *name;
        *shape = (int)strlen(text) > *shape ? (int)strlen(text) : *shape;
    }
    return matches;
}

static void print_tensors(const inspection *work)
{
    int name = 0;
    int shape = 0;
    int64_t limit = work->options.limit > 0 ? work->options.limit : INT64_MAX;
    int64_t matches = measure_tensors(work, limit, &name, &shape);
    int64_t listed = 0;
    char bytes[24];
    if (matches == 0)
        return;
    printf("%s%-*s  %-7s  %-*s  %10s%s\n", cli_style_on(stdout, STYLE_HEADING), name, "tensor",
           "type", shape, "shape", "size", cli_style_on(stdout, STYLE_RESET));
    for (size_t i = 0; listed < limit && i < safetensors_model_count(work->model); ++i) {
        const safetensors_tensor *tensor = safetensors_model_at(work->model, i);
        char text[168];
        if (!is_listed(work, tensor))
            continue;
        tensor_shape_format(&tensor->spec, text, sizeof text);
        printf("%-*s  %-7s  %-*s  %10s\n", name, cli_bare_name(tensor->name).text,
               tensor_dtype_name(tensor->spec.dtype), shape, text,
               cli_format_bytes(tensor->spec.bytes, bytes));
        ++listed;
    }
    if (matches > listed)
        printf("... %lld more (--limit 0 lists all)\n", (long long)(matches - listed));
    putchar('\n');
}

static void print_layers(const inspection *work)
{
    printf("%slayers%s\n", cli_style_on(stdout, STYLE_HEADING), cli_style_on(stdout, STYLE_RESET));
    for (size_t i = 0; i < work->num_layers; ++i) {
        const layer *found = &work->layers[i];
        if (is_listed(work, found->weight))
            printf("  %-14s  n %6lld  k %6lld  %s\n", scheme_name(found->scheme),
                   (long long)found->n, (long long)found->k,
                   cli_bare_name(found->weight->name).text);
    }
    putchar('\n');
}

/* "groups of 128 (58), scales F32 (58)". */
static void describe_tally(const tally *sum, char *text, size_t text_bytes)
{
    static const char *const groups[] = {"groups of 128", "groups of 64", "groups of 32",
                                         "one group for all k"};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < 4; ++i) {
        if (sum->groups[i] > 0 && used < text_bytes)
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "",
                                     groups[i]);
    }
    for (int i = 0; i < TENSOR_DTYPE_COUNT; ++i) {
        if (sum->scale_types[i] > 0 && used < text_bytes)
            used += (size_t)snprintf(text + used, text_bytes - used, "%sscales %s",
                                     used > 0 ? ", " : "", tensor_dtype_name((tensor_dtype)i));
    }
    if (sum->with_input_scale > 0 && used < text_bytes)
        snprintf(text + used, text_bytes - used, "%sinput scales: %llu", used > 0 ? ", " : "",
                 (unsigned long long)sum->with_input_scale);
}

static void print_schemes(const inspection *work)
{
    const char *heading = cli_style_on(stdout, STYLE_HEADING);
    const char *reset = cli_style_on(stdout, STYLE_RESET);
    char bytes[24];
    if (work->num_layers == 0) {
        puts("no linear layers recognised");
        return;
    }
    printf("%s%-14s  %6s  %13s  %10s  %s%s\n", heading, "scheme", "layers", "weights", "size",
           "detail", reset);
    for (int s = 0; s < SCHEME_COUNT; ++s) {
        const tally *sum = &work->tallies[s];
        char detail[256];
        if (sum->layers == 0)
            continue;
        describe_tally(sum, detail, sizeof detail);
        if (s == SCHEME_PLAIN)
            snprintf(detail, sizeof detail, "not quantised");
        printf("%-14s  %6llu  %13llu  %10s  %s\n", scheme_name((scheme_id)s),
               (unsigned long long)sum->layers, (unsigned long long)sum->weights,
               cli_format_bytes(sum->bytes, bytes), detail);
    }
}

static void print_faults(const inspection *work)
{
    enum { LIMIT = 50 };
    if (work->faults.count == 0) {
        printf("\n%sno faults%s%s\n", cli_style_on(stdout, STYLE_GOOD),
               cli_style_on(stdout, STYLE_RESET),
               work->options.headers_only ? " (values of scales not checked)" : "");
        return;
    }
    printf("\n%s%zu fault%s%s\n", cli_style_on(stdout, STYLE_BAD), work->faults.count,
           work->faults.count == 1 ? "" : "s", cli_style_on(stdout, STYLE_RESET));
    for (size_t i = 0; i < work->faults.count; ++i) {
        if (i == LIMIT && cli.verbosity < 1) {
            printf("  ... %zu more (-v lists all)\n", work->faults.count - LIMIT);
            return;
        }
        printf("  %s: %s\n", cli_bare_name(work->faults.items[i].tensor).text,
               work->faults.items[i].text);
    }
}

void inspection_print_text(const inspection *work)
{
    uint64_t total = 0;
    size_t count = safetensors_model_count(work->model);
    size_t files = safetensors_model_shard_count(work->model);
    char bytes[24];
    for (size_t i = 0; i < count; ++i)
        total += safetensors_model_at(work->model, i)->spec.bytes;
    if (cli.verbosity >= 0)
        print_tensors(work);
    printf("%zu tensor%s, %s in %zu file%s\n\n", count, count == 1 ? "" : "s",
           cli_format_bytes(total, bytes), files, files == 1 ? "" : "s");
    if (work->options.layers)
        print_layers(work);
    print_schemes(work);
    print_faults(work);
}
