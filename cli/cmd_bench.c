/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte bench: times products on the GPU, or on the CPU model, beside what the machine gives. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_work.h"
#include "command.h"
#include "common.h"

enum {
    KEY_SHAPES = 0x100,
    KEY_JSON_FILE,
    KEY_CSV_FILE,
    KEY_FILTER,
    KEY_REPEAT,
    KEY_SEED,
    KEY_COMMIT,
    KEY_MINUS8,
    KEY_NO_CHECK,
    KEY_NO_PROBES,
    KEY_NO_BASELINE
};

static const struct argp_option bench_argp_options[] = {
    {NULL, 0, NULL, 0, "Shapes:", 1},
    {"shapes", KEY_SHAPES, "FILE", 0,
     "CSV with m, n, k, family, layout, groups and load, or a problem string a line; may be "
     "repeated",
     0},
    {"filter", KEY_FILTER, "WORDS", 0,
     "Only shapes that all words fit: a family, a layout, a load, or m=16, n=, k=, groups=", 0},

    {NULL, 0, NULL, 0, "Measurement:", 2},
    {"repeat", KEY_REPEAT, "N", 0, "Launches that are timed (default 21; model: 3)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of all random numbers (default 1)", 0},
    {"minus8", KEY_MINUS8, NULL, 0, "int4 weights that hold a -8; by default they do not", 0},
    {"no-check", KEY_NO_CHECK, NULL, 0, "Do not compare a sample of D with the CPU model", 0},
    {"no-probes", KEY_NO_PROBES, NULL, 0, "Do not time plain reads and wgmma", 0},
    {"no-baseline", KEY_NO_BASELINE, NULL, 0, "Do not time cuBLASLt", 0},

    {NULL, 0, NULL, 0, "Files:", 3},
    {"json", KEY_JSON_FILE, "OUT", 0, "Append a line of JSON a shape; - is standard output", 0},
    {"csv", KEY_CSV_FILE, "OUT", 0, "Append a line of CSV a shape; - is standard output", 0},
    {"commit", KEY_COMMIT, "TEXT", 0, "Recorded with each row", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse_bench(int key, char *text, struct argp_state *state)
{
    bench_work *work = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &work->device_options; break;
    case KEY_SHAPES:
    case ARGP_KEY_ARG:
        if (work->inputs == BENCH_MOST_INPUTS)
            argp_error(state, "more than %d files and problems", BENCH_MOST_INPUTS);
        work->input[work->inputs] = text;
        work->is_file[work->inputs++] = key == KEY_SHAPES;
        break;
    case KEY_FILTER: work->filter = text; break;
    case KEY_JSON_FILE: work->report.json_path = text; break;
    case KEY_CSV_FILE: work->report.csv_path = text; break;
    case KEY_COMMIT: work->commit = text; break;
    case KEY_MINUS8: work->minus8 = true; break;
    case KEY_NO_CHECK: work->no_check = true; break;
    case KEY_NO_PROBES: work->no_probes = true; break;
    case KEY_NO_BASELINE: work->no_baseline = true; break;
    case KEY_REPEAT:
        if (!cli_parse_int(text, 1, BENCH_MOST_REPEATS, &work->repeats))
            argp_error(state, "--repeat takes a number from 1 to %d, not '%s'", BENCH_MOST_REPEATS,
                       text);
        break;
    case KEY_SEED:
        if (!cli_parse_int(text, 0, INT64_MAX, &work->seed))
            argp_error(state, "--seed takes a number from 0, not '%s'", text);
        break;
    case ARGP_KEY_END:
        if (work->inputs == 0)
            argp_error(state, "which shapes? --shapes FILE, or problem strings");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child bench_children[] = {
    {&cli_device_argp, 0, NULL, 0}, {&cli_output_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};

static const struct argp bench_argp = {
    .options = bench_argp_options,
    .parser = parse_bench,
    .args_doc = "--shapes FILE\nPROBLEM...",
    .doc = "Time products, by CUDA events and by graph replay, 256 MiB written before\n"
           "each launch so that operands come from device memory.  Beside them, in the\n"
           "same run: cuBLASLt where it can be loaded, a plain read of the same bytes, and\n"
           "chained wgmma.  Without a GPU, or with --executor model, the CPU model is timed.\n"
           "@LOAD behind a problem says how rows fall to groups: even, one (all to one\n"
           "group) or zipf8 (tokens with 8 different groups each, by Zipf's law); such a\n"
           "shape is told the time that it may take.\n"
           "\nExamples:\n"
           "  halfbyte bench --shapes bench/shapes/fp8-dense.csv --json out.jsonl\n"
           "  halfbyte bench w4a8:m16n4096k7168:atoken:bk128,bf16,k:packed\n"
           "  halfbyte bench --shapes bench/shapes/fp8-grouped.csv --filter masked,m=64\n"
           "  halfbyte bench w4a8:m16384n4096k7168g256:atoken:bk128,bf16,k:packed@zipf8\n"
           "\nExit code 1 if bits differ from the CPU model's or between launches.\n",
    .children = bench_children,
};

/* ---- devices --------------------------------------------------------------------------------- */

static int open_gpu(bench_work *work)
{
    halfbyte_device_options options = work->device_options;
    bool asked = options.executor == HALFBYTE_EXECUTOR_GPU;
    if (options.executor == HALFBYTE_EXECUTOR_MODEL ||
        (!asked && options.profile == HALFBYTE_PROFILE_ANY))
        return CLI_OK;
    options.executor = HALFBYTE_EXECUTOR_GPU;
    halfbyte_status status = halfbyte_device_open(&work->gpu_device, &options);
    if (status != HALFBYTE_SUCCESS && asked)
        return cli_fail_status(status, "cannot open a device");
    if (status != HALFBYTE_SUCCESS) {
        cli_note("the CPU model is timed: %s", halfbyte_last_error());
        return CLI_OK;
    }
    work->gpu = calloc(1, sizeof *work->gpu);
    if (work->gpu == NULL)
        return cli_fail_memory(sizeof *work->gpu);
    int code = bench_gpu_open(work->gpu, options.ordinal, !work->no_probes);
    if (code == CLI_OK && !work->no_baseline)
        work->vendor = bench_vendor_open();
    return code == CLI_OK ? bench_mma_tflops(work->gpu, &work->mma_tflops) : code;
}

static int open_devices(bench_work *work)
{
    halfbyte_device_options options = work->device_options;
    if (options.executor == HALFBYTE_EXECUTOR_EMULATOR)
        return cli_fail(CLI_USAGE, "--executor: bench times gpu or model");
    int code = open_gpu(work);
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    return code == CLI_OK ? cli_open_device(&work->model, &options) : code;
}

static void state_facts(bench_work *work)
{
    bench_run_facts *facts = &work->report.facts;
    char text[HALFBYTE_TEXT_BYTES] = "";
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(facts->date, sizeof facts->date, "%Y-%m-%d", &utc);
    facts->commit = work->commit != NULL ? work->commit : "";
    facts->seed = work->seed;
    if (work->repeats == 0)
        work->repeats = work->gpu != NULL ? 21 : 3;
    facts->repeats = work->repeats;
    if (work->gpu != NULL) {
        const gpu_driver *gpu = &work->gpu->gpu;
        snprintf(facts->device, sizeof facts->device, "%s", gpu->name);
        snprintf(facts->driver, sizeof facts->driver, "%s", gpu->version);
        snprintf(facts->cuda, sizeof facts->cuda, "%d.%d", gpu->cuda / 1000, gpu->cuda % 1000 / 10);
    } else if (halfbyte_device_describe(work->model, text, sizeof text) == HALFBYTE_SUCCESS) {
        snprintf(facts->device, sizeof facts->device, "%.150s", text);
    }
}

/* ---- one shape ------------------------------------------------------------------------------- */

/* Says whether a device serves the shape, before memory is taken for it. */
static int try_plan(bench_work *work, const bench_shape *shape, bool *served)
{
    char problem[PROBLEM_TEXT_BYTES];
    halfbyte_plan *plan = NULL;
    halfbyte_device *device = work->gpu_device != NULL ? work->gpu_device : work->model;
    halfbyte_status status = halfbyte_plan_create(&plan, &shape->problem, device);
    halfbyte_plan_destroy(plan);
    *served = status == HALFBYTE_SUCCESS;
    problem_print(&shape->problem, problem);
    if (status == HALFBYTE_ERR_UNSUPPORTED) {
        work->unserved++;
        cli_note("%s: left out: %s", problem, halfbyte_last_error());
        return CLI_OK;
    }
    return *served ? CLI_OK : cli_fail_status(status, problem);
}

static int measure(bench_work *work, const bench_shape *shape)
{
    bench_row row = {.shape = shape, .on_gpu = work->gpu != NULL, .repeats_equal = true};
    instance made;
    bool served = false;
    int code = try_plan(work, shape, &served);
    if (code != CLI_OK || !served)
        return code;
    code = bench_instance(shape, (uint64_t)work->seed, &made);
    if (code == CLI_OK) {
        row.used_groups = bench_used_groups(&made);
        row.most_rows = bench_most_rows(&made);
        row.limit_us = bench_limit_us(shape, &made);
        row.minus8 = work->minus8;
    }
    if (code == CLI_OK)
        code = bench_fill(&made, work->model, (uint64_t)work->seed, work->minus8);
    if (code == CLI_OK)
        code = work->gpu != NULL ? bench_time_gpu(work, &made, &row)
                                 : bench_time_model(work, &made, &row);
    instance_free(&made);
    if (code == CLI_OK)
        code = bench_report_row(&work->report, &row);
    work->measured += code == CLI_OK;
    work->wrong += row.different > 0 || !row.repeats_equal;
    return code;
}

static int read_shapes(bench_work *work)
{
    int code = CLI_OK;
    for (int i = 0; code == CLI_OK && i < work->inputs; ++i)
        code = work->is_file[i] ? bench_shapes_read(&work->shapes, work->input[i])
                                : bench_shapes_add(&work->shapes, work->input[i], NULL);
    if (code != CLI_OK)
        return code;
    if (work->shapes.count == 0)
        return cli_fail(CLI_USAGE, "the files hold no shape");
    if (work->filter != NULL)
        bench_shapes_filter(&work->shapes, work->filter);
    if (work->shapes.count == 0)
        return cli_fail(CLI_USAGE, "--filter %s leaves no shape", io_quote(work->filter).text);
    return CLI_OK;
}

static int bench(bench_work *work)
{
    int code = read_shapes(work);
    if (code == CLI_OK)
        code = open_devices(work);
    if (code == CLI_OK)
        state_facts(work);
    if (code == CLI_OK)
        code = bench_report_open(&work->report);
    for (size_t i = 0; code == CLI_OK && i < work->shapes.count; ++i)
        code = measure(work, &work->shapes.list[i]);
    int closed = bench_report_close(&work->report);
    if (code != CLI_OK || closed != CLI_OK)
        return code != CLI_OK ? code : closed;
    if (work->wrong > 0)
        return cli_fail(CLI_CHECK_FAILED, "%d of %d shapes with wrong bits", work->wrong,
                        work->measured);
    return work->measured > 0 ? CLI_OK : CLI_NO_DEVICE;
}

int command_bench(int argc, char **argv)
{
    bench_work *work = calloc(1, sizeof *work);
    if (work == NULL)
        return cli_fail_memory(sizeof *work);
    work->device_options = halfbyte_device_options_init();
    work->seed = 1;
    int code = cli_parse(&bench_argp, "halfbyte bench", argc, argv, work);
    if (code == CLI_OK)
        code = bench(work);
    bench_vendor_close(work->vendor);
    if (work->gpu != NULL)
        bench_gpu_close(work->gpu);
    free(work->gpu);
    halfbyte_device_close(work->gpu_device);
    halfbyte_device_close(work->model);
    bench_shapes_free(&work->shapes);
    free(work);
    return code;
}
