/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel on its problems, under the schedules that were asked for. */
#include <string.h>

#include "emulator/harness/schedules.h"
#include "problem.h"
#include "race.h"
#include "random.h"

/* Without --seeds. */
enum { DEFAULT_SEEDS = 16, MAX_PROBLEMS = HARNESS_MOST_PROBLEMS };

/* A kernel at work: its problems with their data. */
typedef struct race_work {
    const race_options *options;
    const harness_kernel *kernel;
    harness_problem problems[MAX_PROBLEMS];
    harness_instance *instances[MAX_PROBLEMS];
    race_totals of[MAX_PROBLEMS];
    int count;
    schedule_axes axes;
    emu_report *report;
    uint64_t printed;
} race_work;

/* Findings that are printed in full for a kernel; the others are counted. */
enum { PRINTED_RUNS = 5 };

/* ---- problems -------------------------------------------------------------------------------- */

/* The one of --problem, if the kernel serves it; *count 0 if not. */
static int one_problem(race_work *work)
{
    char error[PROBLEM_ERROR_BYTES];
    halfbyte_problem stated;
    if (!problem_parse(work->options->problem, &stated, error))
        return cli_fail(CLI_USAGE, "--problem: %s", error);
    if (!harness_accepts(work->kernel, &stated)) {
        cli_note("%s does not serve this problem", work->kernel->name);
        return CLI_OK;
    }
    work->problems[0] = (harness_problem){
        .problem = stated,
        .blocks = work->options->blocks > 0 ? (uint32_t)work->options->blocks : 2,
        .draw = work->options->data > 0 ? (uint64_t)work->options->data : 0,
    };
    work->count = 1;
    return CLI_OK;
}

static int cannot_make(const harness_problem *problem)
{
    char text[PROBLEM_TEXT_BYTES];
    problem_print(&problem->problem, text);
    return cli_fail(CLI_ENVIRONMENT, "cannot make the problem %s: %s", text, halfbyte_last_error());
}

static int make_problems(race_work *work)
{
    if (work->options->problem != NULL) {
        int code = one_problem(work);
        if (code != CLI_OK)
            return code;
    } else {
        work->count = harness_problems(work->kernel, work->problems);
    }
    for (int i = 0; i < work->count; ++i) {
        work->instances[i] = harness_create(work->kernel, &work->problems[i]);
        if (work->instances[i] == NULL)
            return cannot_make(&work->problems[i]);
    }
    return CLI_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* A run of problem number `index`, or of the same with other data. */
static int run_one(race_work *work, int index, const harness_problem *problem,
                   harness_instance *instance, const emu_config *config)
{
    uint64_t mismatches = 0;
    emu_report_clear(work->report);
    emu_status status = harness_run(instance, config, work->report, &mismatches);
    if (status == EMU_OUT_OF_MEMORY)
        return cli_fail(CLI_ENVIRONMENT, "out of memory on the emulator");
    if (status == EMU_BAD_ARGUMENT)
        return cli_fail(CLI_USAGE, "the emulator does not take this launch");
    race_totals *totals = &work->of[index];
    size_t findings = emu_report_count(work->report);
    totals->runs++;
    totals->findings += findings;
    totals->mismatches += mismatches;
    if (findings > 0 && work->printed++ < PRINTED_RUNS)
        return race_print_findings(work->kernel, problem, config, work->report);
    if (findings == 0 && mismatches > 0 && work->printed++ < PRINTED_RUNS) {
        char again[RACE_COMMAND_BYTES];
        race_command(work->kernel, problem, config, again);
        cli_note("%llu bytes differ from the model; again: %s", (unsigned long long)mismatches,
                 again);
    }
    return CLI_OK;
}

static int run_made(race_work *work, int index, const emu_config *config)
{
    return run_one(work, index, &work->problems[index], work->instances[index], config);
}

/* The problem with other data. */
static int run_anew(race_work *work, int index, uint64_t draw, const emu_config *config)
{
    harness_problem problem = work->problems[index];
    problem.draw = draw;
    harness_instance *instance = harness_create(work->kernel, &problem);
    if (instance == NULL)
        return cannot_make(&problem);
    int code = run_one(work, index, &problem, instance, config);
    harness_destroy(instance);
    return code;
}

static bool is_wanted(const race_options *options, const emu_config *config)
{
    return (options->policy < 0 || (int)config->policy == options->policy) &&
           (options->order < 0 || (int)config->order == options->order);
}

/* Does the problem run under the s-th deterministic schedule?  Those of the standard grid, and one
 * that was asked for, do; the others take turns. */
static bool is_due(const race_work *work, int index, size_t s)
{
    const bool in_grid = work->kernel->is_gemm && index < HARNESS_GRID;
    return in_grid || work->options->thorough || work->options->problem != NULL ||
           schedule_in_share(s, (size_t)index);
}

static int run_deterministic(race_work *work)
{
    for (size_t s = 0; s < schedule_count(&work->axes); ++s) {
        emu_config config = schedule_at(&work->axes, s);
        for (int i = 0; i < work->count && is_wanted(work->options, &config); ++i) {
            int code = is_due(work, i, s) ? run_made(work, i, &config) : CLI_OK;
            if (code != CLI_OK)
                return code;
        }
    }
    return CLI_OK;
}

/* Draws, problem by problem in turn; from the second turn on with other data. */
static int run_drawn(race_work *work)
{
    const race_options *options = work->options;
    int64_t seeds = options->seeds >= 0 ? options->seeds : DEFAULT_SEEDS;
    for (int64_t seed = 0; seed < seeds; ++seed) {
        emu_config config = schedule_draw(&work->axes, (uint64_t)seed);
        if (!is_wanted(options, &config))
            config = schedule_make(
                &work->axes, options->policy >= 0 ? (emu_policy)options->policy : config.policy,
                options->order >= 0 ? (emu_order)options->order : config.order, config.seed);
        int index = (int)(seed % work->count);
        uint64_t draw = random_bits((uint64_t)seed, RANDOM_SHAPE, 0) >> 32;
        int code = seed < work->count || options->data >= 0 ? run_made(work, index, &config)
                                                            : run_anew(work, index, draw, &config);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

static int run_replay(race_work *work)
{
    emu_config config;
    if (!emu_config_parse(&config, work->options->replay))
        return cli_fail(CLI_USAGE, "--replay: no schedule");
    for (int i = 0; i < work->count; ++i) {
        int code = run_made(work, i, &config);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

/* ---- report ---------------------------------------------------------------------------------- */

static int report_problem(const race_work *work, int problem)
{
    const race_totals *of = &work->of[problem];
    char text[PROBLEM_TEXT_BYTES];
    const uint32_t blocks = work->problems[problem].blocks;
    problem_print(&work->problems[problem].problem, text);
    if (cli.json)
        return cli_emit(json_pack(
            "{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I}", "kind", "problem", "kernel",
            work->kernel->name, "problem", text, "blocks", (int)blocks, "data",
            (json_int_t)work->problems[problem].draw, "runs", (json_int_t)of->runs, "findings",
            (json_int_t)of->findings, "mismatches", (json_int_t)of->mismatches));
    if (cli.verbosity >= 0)
        printf("  %-64s %u block%s  %5llu runs  %llu findings  %llu mismatches\n", text, blocks,
               blocks == 1 ? " " : "s", (unsigned long long)of->runs,
               (unsigned long long)of->findings, (unsigned long long)of->mismatches);
    return CLI_OK;
}

static int run_all(race_work *work)
{
    int code = make_problems(work);
    if (code != CLI_OK || work->count == 0)
        return code;
    if (!cli.json && cli.verbosity >= 0)
        printf("%s%s%s\n", cli_style_on(stdout, STYLE_HEADING), work->kernel->name,
               cli_style_on(stdout, STYLE_RESET));
    if (work->options->replay != NULL)
        return run_replay(work);
    code = run_deterministic(work);
    return code == CLI_OK ? run_drawn(work) : code;
}

int race_grid(const race_options *options, const harness_kernel *kernel, race_totals *totals)
{
    race_work work;
    memset(&work, 0, sizeof work);
    work.options = options;
    work.kernel = kernel;
    work.axes = (schedule_axes){emu_site_count(), kernel->threads / 32};
    work.report = emu_report_create();
    int code = work.report != NULL ? run_all(&work) : cli_fail_memory(1);
    for (int i = 0; i < work.count; ++i) {
        if (code == CLI_OK)
            code = report_problem(&work, i);
        totals->runs += work.of[i].runs;
        totals->findings += work.of[i].findings;
        totals->mismatches += work.of[i].mismatches;
        harness_destroy(work.instances[i]);
    }
    emu_report_destroy(work.report);
    return code;
}
