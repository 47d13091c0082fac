/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte tune: times the kernels that serve a shape and stores which is the fastest. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "common.h"
#include "tune_file.h"

enum { KEY_SHAPES = 0x100, KEY_FILTER, KEY_REPEAT, KEY_SEED, KEY_APPEND, KEY_CHECK };

enum { MOST_INPUTS = 256 };

/* Which kernels a plan leaves out; gemm_select.c reads it. */
static const char skip_variable[] = "HALFBYTE_SKIP_KERNELS";

typedef struct tune_work {
    const char *input[MOST_INPUTS]; /* --shapes and problem strings, as they came */
    bool is_file[MOST_INPUTS];
    int inputs;
    bench_shapes shapes;
    const char *filter, *output, *check;
    bool append;
    int64_t repeats, seed;
    halfbyte_device *device, *model;
    bench_gpu *gpu;
    tune_result *results;
    size_t measured;
    int unserved;
} tune_work;

static const struct argp_option tune_argp_options[] = {
    {"shapes", KEY_SHAPES, "FILE", 0, "Shapes, as halfbyte bench takes them; may be repeated", 0},
    {"filter", KEY_FILTER, "WORDS", 0,
     "Only shapes that all words fit: a family, a layout, or m=16, n=, k=, groups=", 0},
    {"output", 'o', "OUT", 0, "The tune file to write", 0},
    {"append", KEY_APPEND, NULL, 0, "Keep what OUT holds; later entries go before earlier ones", 0},
    {"repeat", KEY_REPEAT, "N", 0, "Launches that are timed of each kernel (default 15)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of all random numbers (default 1)", 0},
    {"check", KEY_CHECK, "FILE", 0, "Only read a tune file, as the library does", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static void parse_end(const tune_work *work, struct argp_state *state)
{
    if (work->check != NULL) {
        if (work->inputs > 0 || work->output != NULL)
            argp_error(state, "--check FILE stands alone");
    } else if (work->inputs == 0) {
        argp_error(state, "which shapes? --shapes FILE, or problem strings");
    } else if (work->output == NULL) {
        argp_error(state, "which file is to be written? -o OUT");
    }
}

static error_t parse_tune(int key, char *text, struct argp_state *state)
{
    tune_work *work = state->input;
    switch (key) {
    case KEY_SHAPES:
    case ARGP_KEY_ARG:
        if (work->inputs == MOST_INPUTS)
            argp_error(state, "more than %d files and problems", MOST_INPUTS);
        work->input[work->inputs] = text;
        work->is_file[work->inputs++] = key == KEY_SHAPES;
        break;
    case KEY_FILTER: work->filter = text; break;
    case KEY_APPEND: work->append = true; break;
    case KEY_CHECK: work->check = text; break;
    case 'o': work->output = text; break;
    case KEY_REPEAT:
        if (!cli_parse_int(text, 1, BENCH_MOST_REPEATS, &work->repeats))
            argp_error(state, "--repeat takes a number from 1 to %d, not '%s'", BENCH_MOST_REPEATS,
                       text);
        break;
    case KEY_SEED:
        if (!cli_parse_int(text, 0, INT64_MAX, &work->seed))
            argp_error(state, "--seed takes a number from 0, not '%s'", text);
        break;
    case ARGP_KEY_END: parse_end(work, state); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child tune_children[] = {{&cli_output_argp, 0, NULL, 0},
                                                  {NULL, 0, NULL, 0}};

static const struct argp tune_argp = {
    .options = tune_argp_options,
    .parser = parse_tune,
    .args_doc = "--shapes FILE -o OUT\nPROBLEM... -o OUT\n--check FILE",
    .doc = "Time every kernel that serves a shape and store which is the fastest in a\n"
           "text file.  The library reads it where options.tune_file or the variable\n"
           "HALFBYTE_TUNE_FILE names it.  A choice changes no bit.  Needs a GPU.\n"
           "\nExamples:\n"
           "  halfbyte tune --shapes bench/shapes/fp8-dense.csv -o h200.tune\n"
           "  halfbyte tune fp8:m48n4096k7168:a1x128:b128x128,k -o h200.tune --append\n"
           "  HALFBYTE_TUNE_FILE=h200.tune halfbyte bench --shapes shapes.csv\n"
           "\nAn entry holds for the rows above those of the next smaller shape of the file.\n",
    .children = tune_children,
};

/* ---- candidates ------------------------------------------------------------------------------ */

/* The kernels among which a plan chooses, from its description. */
static int list_kernels(const gpu_tensors *tensors, tune_result *result)
{
    char text[HALFBYTE_TEXT_BYTES];
    halfbyte_status status = halfbyte_plan_describe(tensors->plan, text, sizeof text);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, NULL);
    const char *at = strstr(text, " kernels=");
    for (at = at == NULL ? "" : at + strlen(" kernels="); *at != '\0' && *at != ' ';) {
        size_t bytes = strcspn(at, ", ");
        if (result->count == TUNE_MOST_KERNELS || bytes >= TUNE_NAME_BYTES)
            return cli_fail(CLI_ENVIRONMENT, "more kernels, or longer names, than expected");
        memcpy(result->kernel[result->count].name, at, bytes);
        result->kernel[result->count++].name[bytes] = '\0';
        at += bytes + (at[bytes] == ',');
    }
    return result->count > 0 ? CLI_OK : cli_fail(CLI_NO_DEVICE, "the plan names no kernels");
}

/* Plans that leave out all kernels but one, and what the caller leaves out anyway. */
static int leave_only(const tune_result *result, int kept, const char *before)
{
    char words[TUNE_MOST_KERNELS * (TUNE_NAME_BYTES + 1) + 1024];
    size_t used = (size_t)snprintf(words, sizeof words, "%.1000s", before != NULL ? before : "");
    for (int i = 0; i < result->count; ++i) {
        /* A name that stands in the kept one would take that along. */
        if (i != kept && strstr(result->kernel[kept].name, result->kernel[i].name) == NULL)
            used +=
                (size_t)snprintf(words + used, sizeof words - used, ",%s", result->kernel[i].name);
    }
    return setenv(skip_variable, words, 1) == 0 ? CLI_OK : cli_fail_memory(used);
}

static int enqueue_run(void *context)
{
    const gpu_tensors *tensors = context;
    halfbyte_status status = gpu_tensors_run(tensors, tensors->gpu->stream);
    return status == HALFBYTE_SUCCESS ? CLI_OK : cli_fail_status(status, NULL);
}

/* Runs once over poison; D into `to`. */
static int run_once(const gpu_tensors *tensors, void *to)
{
    int code = gpu_tensors_poison(tensors);
    if (code == CLI_OK)
        code = enqueue_run((void *)(uintptr_t)tensors);
    return code == CLI_OK ? gpu_tensors_fetch(tensors, to) : code;
}

/* Times one candidate, which is planned alone; us stays 0 where it cannot be. */
static int time_kernel(tune_work *work, gpu_tensors *tensors, instance *made, tune_result *result,
                       int at, const void *expected)
{
    char names[512];
    bench_times times;
    int code = gpu_tensors_replan(tensors, work->device, &made->problem);
    if (code == CLI_OK)
        code = bench_capture(work->gpu, tensors, names, sizeof names, NULL);
    if (code != CLI_OK || !tune_launches(names, result->kernel[at].name))
        return code;
    code = run_once(tensors, made->d);
    if (code == CLI_OK && memcmp(expected, made->d, (size_t)tensors->d_bytes) != 0)
        return cli_fail(CLI_CHECK_FAILED, "%s gives other bits than the other kernels",
                        result->kernel[at].name);
    if (code == CLI_OK)
        code = bench_time(work->gpu, enqueue_run, tensors, (int)work->repeats, &times);
    if (code == CLI_OK)
        result->kernel[at].us = times.median_us;
    return code;
}

static int time_kernels(tune_work *work, gpu_tensors *tensors, instance *made, tune_result *result)
{
    const char *before = getenv(skip_variable);
    char *kept = before != NULL ? strdup(before) : NULL;
    char own[512];
    void *expected = cli_alloc(tensors->d_bytes, 1);
    int code = expected != NULL ? CLI_OK : cli_fail_memory(tensors->d_bytes);
    if (code == CLI_OK)
        code = bench_capture(work->gpu, tensors, own, sizeof own, NULL);
    if (code == CLI_OK)
        code = run_once(tensors, expected);
    if (code == CLI_OK)
        code = list_kernels(tensors, result);
    for (int i = 0; code == CLI_OK && i < result->count; ++i) {
        code = leave_only(result, i, kept);
        if (code == CLI_OK)
            code = time_kernel(work, tensors, made, result, i, expected);
    }
    if (kept != NULL)
        setenv(skip_variable, kept, 1);
    else
        unsetenv(skip_variable);
    if (code == CLI_OK)
        tune_rank(result, own);
    free(kept);
    free(expected);
    return code;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void print_result(const tune_result *result)
{
    const bench_shape *shape = result->shape;
    printf("%-9s %-10s %6lld %5lld %6lld %6lld ", shape->family, shape->layout,
           (long long)shape->groups, (long long)shape->m, (long long)shape->problem.n,
           (long long)shape->problem.k);
    int shown = cli.verbosity > 0 ? result->count : 3;
    for (int i = 0; i < result->count && i < shown; ++i)
        printf(" %.1f us %s%s", result->kernel[i].us, result->kernel[i].name,
               i == result->chosen ? " (own choice)" : "");
    printf("\n");
    fflush(stdout);
}

static int tune_shape(tune_work *work, const bench_shape *shape)
{
    instance made;
    gpu_tensors tensors;
    halfbyte_plan *plan = NULL;
    tune_result *result = &work->results[work->measured];
    char problem[PROBLEM_TEXT_BYTES];
    halfbyte_status status = halfbyte_plan_create(&plan, &shape->problem, work->device);
    halfbyte_plan_destroy(plan);
    problem_print(&shape->problem, problem);
    if (status == HALFBYTE_ERR_UNSUPPORTED) {
        work->unserved++;
        cli_note("%s: left out: %s", problem, halfbyte_last_error());
        return CLI_OK;
    }
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, problem);
    memset(result, 0, sizeof *result);
    memset(&tensors, 0, sizeof tensors);
    result->shape = shape;
    result->sms = work->gpu->gpu.sms;
    int code = instance_create(&made, &shape->problem, NULL, 0);
    if (code == CLI_OK)
        code = bench_fill(&made, work->model, (uint64_t)work->seed, false);
    if (code == CLI_OK)
        code = gpu_tensors_create(&tensors, &work->gpu->gpu, work->device, &made);
    if (code == CLI_OK)
        code = time_kernels(work, &tensors, &made, result);
    gpu_tensors_free(&tensors);
    instance_free(&made);
    if (code != CLI_OK || result->count == 0)
        return code;
    work->measured++;
    if (cli.verbosity >= 0)
        print_result(result);
    return CLI_OK;
}

static int open_devices(tune_work *work)
{
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_GPU;
    options.tune_file = ""; /* the choice without one */
    halfbyte_status status = halfbyte_device_open(&work->device, &options);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, "cannot open a device");
    work->gpu = calloc(1, sizeof *work->gpu);
    if (work->gpu == NULL)
        return cli_fail_memory(sizeof *work->gpu);
    int code = bench_gpu_open(work->gpu, options.ordinal, false);
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    return code == CLI_OK ? cli_open_device(&work->model, &options) : code;
}

static int read_shapes(tune_work *work)
{
    int code = CLI_OK;
    for (int i = 0; code == CLI_OK && i < work->inputs; ++i)
        code = work->is_file[i] ? bench_shapes_read(&work->shapes, work->input[i])
                                : bench_shapes_add(&work->shapes, work->input[i], NULL);
    if (code == CLI_OK && work->filter != NULL)
        bench_shapes_filter(&work->shapes, work->filter);
    for (size_t i = 0; code == CLI_OK && i < work->shapes.count; ++i) {
        if (work->shapes.list[i].load.kind > BENCH_LOAD_EVEN)
            code = cli_fail(CLI_USAGE, "a kernel is stored for even loads alone");
    }
    if (code == CLI_OK && work->shapes.count == 0)
        code = cli_fail(CLI_USAGE, "the files hold no shape, or none that --filter leaves");
    if (code != CLI_OK)
        return code;
    work->results = calloc(work->shapes.count, sizeof *work->results);
    return work->results != NULL ? CLI_OK
                                 : cli_fail_memory(work->shapes.count * sizeof *work->results);
}

static int store(tune_work *work)
{
    char remark[256], date[16] = "";
    const gpu_driver *gpu = &work->gpu->gpu;
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%d", &utc);
    snprintf(remark, sizeof remark, "# %s, driver %s, halfbyte %s, %s\n", gpu->name, gpu->version,
             halfbyte_version_text(), date);
    tune_results_sort(work->results, work->measured);
    int code = tune_file_write(work->output, work->append, remark, work->results, work->measured);
    if (code == CLI_OK && cli.verbosity >= 0)
        printf("%zu entries written to %s\n", work->measured, work->output);
    return code;
}

/* Reads a tune file by opening a device with it. */
static int check_file(const char *path)
{
    char text[HALFBYTE_TEXT_BYTES];
    halfbyte_device *device = NULL;
    halfbyte_device_options options = cli_default_device();
    options.threads = 1;
    options.tune_file = path;
    if (path[0] == '\0')
        return cli_fail(CLI_USAGE, "--check takes the name of a file");
    halfbyte_status status = halfbyte_device_open(&device, &options);
    if (status == HALFBYTE_SUCCESS)
        status = halfbyte_device_describe(device, text, sizeof text);
    halfbyte_device_close(device);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, NULL);
    const char *count = strstr(text, " tuned=");
    printf("entries for this library: %s\n", count != NULL ? count + strlen(" tuned=") : "none");
    return CLI_OK;
}

static int tune(tune_work *work)
{
    if (work->check != NULL)
        return check_file(work->check);
    int code = read_shapes(work);
    if (code == CLI_OK)
        code = open_devices(work);
    for (size_t i = 0; code == CLI_OK && i < work->shapes.count; ++i)
        code = tune_shape(work, &work->shapes.list[i]);
    if (code != CLI_OK)
        return code;
    return work->measured > 0 ? store(work) : CLI_NO_DEVICE;
}

int command_tune(int argc, char **argv)
{
    tune_work *work = calloc(1, sizeof *work);
    if (work == NULL)
        return cli_fail_memory(sizeof *work);
    work->repeats = 15;
    work->seed = 1;
    int code = cli_parse(&tune_argp, "halfbyte tune", argc, argv, work);
    if (code == CLI_OK)
        code = tune(work);
    if (work->gpu != NULL)
        bench_gpu_close(work->gpu);
    free(work->gpu);
    halfbyte_device_close(work->device);
    halfbyte_device_close(work->model);
    bench_shapes_free(&work->shapes);
    free(work->results);
    free(work);
    return code;
}
