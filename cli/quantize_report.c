/* SPDX-License-Identifier: Apache-2.0 */
#include "quantize_report.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "progress.h"

void quantize_print_heading(const quantize_run *work)
{
    printf("%s%-*s  %-*s  %12s  %13s  %7s%s\n", cli_style_on(stdout, STYLE_HEADING),
           work->name_width, "tensor", work->shape_width, "shape", "relative RMS", "largest error",
           "SQNR dB", cli_style_on(stdout, STYLE_RESET));
}

static void print_errors(const quantize_run *work, const char *name, const char *shape,
                         const error_stats *stats)
{
    char rms[24], largest[24], sqnr[24] = "inf";
    double decibels = error_stats_sqnr_db(stats);
    if (decibels < 1e6)
        snprintf(sqnr, sizeof sqnr, "%.2f", decibels);
    printf("%-*s  %-*s  %12s  %13s  %7s\n", work->name_width, name, work->shape_width, shape,
           cli_format_real(error_stats_relative_rms(stats), rms),
           cli_format_real(stats->max_error, largest), sqnr);
}

int quantize_report_tensor(const quantize_run *work, const quantize_item *item,
                           const error_stats *stats)
{
    const tensor_spec *spec = &item->tensor->spec;
    if (cli.json) {
        json_t *line =
            json_pack("{s:s, s:o, s:s, s:[I, I]}", "kind", "tensor", "name",
                      cli_json_text(item->tensor->name), "dtype", tensor_dtype_name(spec->dtype),
                      "shape", (json_int_t)spec->shape[0], (json_int_t)spec->shape[1]);
        if (line != NULL)
            error_stats_json(stats, line);
        return cli_emit(line);
    }
    if (cli.verbosity < 0)
        return CLI_OK;
    char shape[168];
    tensor_shape_format(spec, shape, sizeof shape);
    progress_clear();
    print_errors(work, cli_bare_name(item->tensor->name).text, shape, stats);
    fflush(stdout);
    return CLI_OK;
}

/* How many tensors share the item's reason, from `first` on; they are marked in `counted`. */
static size_t count_reason(const quantize_run *work, size_t first, bool *counted)
{
    size_t same = 0;
    for (size_t i = first; i < work->count; ++i) {
        const quantize_item *other = &work->items[i];
        if (other->quantize || strcmp(other->reason, work->items[first].reason) != 0)
            continue;
        counted[i] = true;
        ++same;
    }
    return same;
}

/* Kept tensors counted by reason; then, one by one, the linear layers that do not fit (-v: all). */
static void print_kept(const quantize_run *work)
{
    bool *counted = calloc(work->count, sizeof *counted);
    printf("\nkept as they are: %zu\n", work->count - work->num_quantized);
    for (size_t i = 0; counted != NULL && i < work->count; ++i) {
        const quantize_item *item = &work->items[i];
        if (!item->quantize && !item->notable && !counted[i])
            printf("  %6zu  %s\n", count_reason(work, i, counted), item->reason);
    }
    for (size_t i = 0; i < work->count; ++i) {
        const quantize_item *item = &work->items[i];
        if (!item->quantize && (item->notable || cli.verbosity > 0))
            printf("          %s: %s\n", cli_bare_name(item->tensor->name).text, item->reason);
    }
    free(counted);
}

static int emit_summary(const quantize_run *work, uint64_t bytes_out, double seconds)
{
    json_t *summary = json_pack(
        "{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:f}", "kind", "summary", "output",
        cli_json_text(work->options.output), "scheme", scheme_name(work->options.scheme),
        "quantized", (json_int_t)work->num_quantized, "kept",
        (json_int_t)(work->count - work->num_quantized), "bytes_in", (json_int_t)work->bytes_in,
        "bytes_out", (json_int_t)bytes_out, "seconds", seconds);
    for (size_t i = 0; i < work->count; ++i) {
        const quantize_item *item = &work->items[i];
        if (item->quantize)
            continue;
        int code = cli_emit(json_pack("{s:s, s:o, s:s}", "kind", "kept", "name",
                                      cli_json_text(item->tensor->name), "reason", item->reason));
        if (code != CLI_OK) {
            json_decref(summary);
            return code;
        }
    }
    if (summary != NULL)
        error_stats_json(&work->total, summary);
    return cli_emit(summary);
}

int quantize_report(const quantize_run *work, uint64_t bytes_out, double seconds)
{
    char in[24], out[24];
    if (cli.json)
        return emit_summary(work, bytes_out, seconds);
    if (cli.verbosity < 0)
        return CLI_OK;
    if (work->num_quantized > 1)
        print_errors(work, "all", "", &work->total);
    if (work->count > work->num_quantized)
        print_kept(work);
    printf("\n%zu quantised, %zu kept: %s -> %s in %.2f s, written to %s\n", work->num_quantized,
           work->count - work->num_quantized, cli_format_bytes(work->bytes_in, in),
           cli_format_bytes(bytes_out, out), seconds, work->options.output);
    return CLI_OK;
}
