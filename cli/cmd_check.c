/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte check: golden vectors, or the exactness suite. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "command.h"
#include "common.h"
#include "names.h"
#include "progress.h"

typedef struct check_options {
    const char *vectors;
    const char *filter;
    bool list;
    bool seed_given;
    int64_t seed;
    int64_t rounds;
} check_options;

enum { KEY_VECTORS = 0x100, KEY_LIST, KEY_SEED, KEY_ROUNDS };

static const struct argp_option check_argp_options[] = {
    {"vectors", KEY_VECTORS, "FILE", 0, "Replay golden vectors measured on an H200", 0},
    {"filter", 'f', "GLOB", 0, "Only checks whose name matches", 0},
    {"list", KEY_LIST, NULL, 0, "List the checks", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of the random problems and numbers (default 1)", 0},
    {"rounds", KEY_ROUNDS, "N", 0, "How many times all scale modes are gone through (default 2)",
     0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse_check(int key, char *text, struct argp_state *state)
{
    check_options *options = state->input;
    switch (key) {
    case KEY_VECTORS: options->vectors = text; break;
    case 'f': options->filter = text; break;
    case KEY_LIST: options->list = true; break;
    case KEY_SEED:
        options->seed_given = true;
        if (!cli_parse_int(text, 0, INT64_MAX, &options->seed))
            argp_error(state, "--seed takes a number from 0, not '%s'", text);
        break;
    case KEY_ROUNDS:
        if (!cli_parse_int(text, 1, 1000000, &options->rounds))
            argp_error(state, "--rounds takes a number from 1 to 1000000, not '%s'", text);
        break;
    case ARGP_KEY_ARG: argp_error(state, "check takes options only, not '%s'", text); break;
    case ARGP_KEY_END:
        if (options->vectors != NULL && (options->filter != NULL || options->list))
            argp_error(state, "--filter and --list are for the checks without --vectors");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child check_children[] = {{&cli_common_argp, 0, NULL, 0},
                                                   {NULL, 0, NULL, 0}};
static const struct argp check_argp = {
    .options = check_argp_options,
    .parser = parse_check,
    .doc = "Prove that the arithmetic is exact on this machine: all code paths and thread\n"
           "counts give the same bits, and they are what the definition says.\n"
           "\nExamples:\n"
           "  halfbyte check\n"
           "  halfbyte check --filter bounds --rounds 50 --seed 3\n"
           "  halfbyte check --vectors tests/golden/hopper_vectors.bin\n"
           "\nThe last line is 'N compared, M mismatches'; exit code 1 if M is not 0.\n",
    .children = check_children,
};

static const check_count all_checks[NUM_CHECKS] = {
    [CHECK_CHAINS] = {.name = "chains",
                      .meaning = "blocks of each code path = chained instructions"},
    [CHECK_PATHS] = {.name = "paths", .meaning = "code paths and thread counts give the same bits"},
    [CHECK_ROWS] = {.name = "rows", .meaning = "a row alone = that row in its batch and group"},
    [CHECK_PACKED] = {.name = "packed", .meaning = "packed int4 weights = row-major ones"},
    [CHECK_BOUNDS] = {.name = "bounds", .meaning = "every element within its bound of fp64"},
};

void check_mismatch(check_count *count, const char *format, ...)
{
    enum { SHOWN = 5 };
    if (count->mismatches > SHOWN)
        return;
    va_list arguments;
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "%smismatch%s ", cli_style_on(stderr, STYLE_BAD),
            cli_style_on(stderr, STYLE_RESET));
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    if (count->mismatches == SHOWN)
        fprintf(stderr, "further mismatches of this kind are counted only\n");
}

/* ---- report ---------------------------------------------------------------------------------- */

static int emit_count(const char *kind, const check_count *count)
{
    return cli_emit(json_pack("{s:s, s:s, s:I, s:I, s:I}", "kind", kind, "name", count->name,
                              "problems", (json_int_t)count->problems, "compared",
                              (json_int_t)count->compared, "mismatches",
                              (json_int_t)count->mismatches));
}

/* The last line; vacuous success is none. */
static int finish(uint64_t compared, uint64_t mismatches, const int64_t *seed)
{
    if (cli.json) {
        json_t *summary = json_pack("{s:s, s:I, s:I}", "kind", "summary", "compared",
                                    (json_int_t)compared, "mismatches", (json_int_t)mismatches);
        if (summary != NULL && seed != NULL)
            json_object_set_new(summary, "seed", json_integer(*seed));
        int code = cli_emit(summary);
        if (code != CLI_OK)
            return code;
    } else {
        printf("%s%llu compared, %llu mismatches%s\n",
               cli_style_on(stdout, mismatches == 0 ? STYLE_GOOD : STYLE_BAD),
               (unsigned long long)compared, (unsigned long long)mismatches,
               cli_style_on(stdout, STYLE_RESET));
    }
    if (compared == 0)
        return cli_fail(CLI_CHECK_FAILED, "nothing was compared");
    return mismatches == 0 ? CLI_OK : CLI_CHECK_FAILED;
}

static void print_count(const check_count *count)
{
    printf("%-8s  %12llu  %10llu%s%s\n", count->name, (unsigned long long)count->compared,
           (unsigned long long)count->mismatches, count->meaning != NULL ? "  " : "",
           count->meaning != NULL ? count->meaning : "");
}

static void print_count_heading(const char *first)
{
    printf("%s%-8s  %12s  %10s%s\n", cli_style_on(stdout, STYLE_HEADING), first, "compared",
           "mismatches", cli_style_on(stdout, STYLE_RESET));
}

/* ---- golden vectors -------------------------------------------------------------------------- */

static int run_vectors(const check_options *options)
{
    golden_counts counts;
    uint64_t compared = 0;
    uint64_t mismatches = 0;
    int code = check_vectors(options->vectors, &counts);
    if (code != CLI_OK)
        return code;
    bool text = !cli.json && cli.verbosity >= 0;
    if (text)
        print_count_heading("type");
    for (int i = 0; i < GOLDEN_TYPES; ++i) {
        compared += counts.types[i].compared;
        mismatches += counts.types[i].mismatches;
        if (text)
            print_count(&counts.types[i]);
        else if (cli.json && (code = emit_count("vectors", &counts.types[i])) != CLI_OK)
            return code;
    }
    for (int i = 0; i < GOLDEN_SKIPPED; ++i) {
        const check_count *skipped = &counts.skipped[i];
        if (text)
            printf("%s: %llu skipped, another arithmetic\n", skipped->name,
                   (unsigned long long)skipped->problems);
        else if (cli.json && (code = cli_emit(json_pack("{s:s, s:s, s:I}", "kind", "skipped",
                                                        "name", skipped->name, "records",
                                                        (json_int_t)skipped->problems))) != CLI_OK)
            return code;
    }
    return finish(compared, mismatches, NULL);
}

/* ---- the suite ------------------------------------------------------------------------------- */

static int open_model(halfbyte_device **device, halfbyte_isa isa, int32_t threads)
{
    halfbyte_device_options options = cli_default_device();
    options.profile = HALFBYTE_PROFILE_ANY;
    options.isa = isa;
    options.threads = threads;
    halfbyte_status status = halfbyte_device_open(device, &options);
    if (status == HALFBYTE_ERR_NO_DEVICE)
        return CLI_NO_DEVICE;
    return status == HALFBYTE_SUCCESS ? CLI_OK : cli_fail_status(status, "cannot open a device");
}

/* The base and every other code path that this CPU has, with 1, 2 and 7 threads. */
static int open_devices(check_devices *devices)
{
    static const struct {
        halfbyte_isa isa;
        const char *name;
    } paths[] = {{HALFBYTE_ISA_PORTABLE, "portable"},
                 {HALFBYTE_ISA_AVX2, "avx2"},
                 {HALFBYTE_ISA_AVX512, "avx512"}};
    static const int32_t threads[] = {1, 2, 7};
    int code = open_model(&devices->base, HALFBYTE_ISA_PORTABLE, 1);
    if (code != CLI_OK)
        return code;
    for (size_t path = 0; path < sizeof paths / sizeof paths[0]; ++path) {
        for (size_t i = path == 0 ? 1 : 0; i < sizeof threads / sizeof threads[0]; ++i) {
            code = open_model(&devices->others[devices->count], paths[path].isa, threads[i]);
            if (code == CLI_NO_DEVICE)
                break;
            if (code != CLI_OK)
                return code;
            snprintf(devices->names[devices->count], sizeof devices->names[0], "%s, %d thread%s",
                     paths[path].name, (int)threads[i], threads[i] == 1 ? "" : "s");
            ++devices->count;
            devices->has_avx2 |= paths[path].isa == HALFBYTE_ISA_AVX2;
            devices->has_avx512 |= paths[path].isa == HALFBYTE_ISA_AVX512;
        }
    }
    return CLI_OK;
}

static void close_devices(check_devices *devices)
{
    halfbyte_device_close(devices->base);
    for (int i = 0; i < devices->count; ++i)
        halfbyte_device_close(devices->others[i]);
}

static int run_round(check_run *run, uint64_t round)
{
    static const flavour kinds[] = {FLAVOUR_PLAIN, FLAVOUR_WIDE, FLAVOUR_SPECIAL};
    bool grid = false;
    int code = CLI_OK;
    uint64_t seed = run->seed + (round << 32);
    for (int i = CHECK_PATHS; i < NUM_CHECKS; ++i)
        grid |= run->selected[i];
    if (run->selected[CHECK_CHAINS])
        code = check_chains(run, seed);
    for (int i = 0; grid && code == CLI_OK && i < check_num_problems(); ++i) {
        halfbyte_problem problem;
        int64_t gap = 0;
        check_make_problem(seed, i, &problem, &gap);
        for (int kind = 0; code == CLI_OK && kind < 3; ++kind)
            code = check_problem(run, &problem, gap, seed + (uint64_t)i, kinds[kind]);
        progress_add(1);
    }
    return code;
}

static int report_suite(const check_run *run)
{
    uint64_t compared = 0;
    uint64_t mismatches = 0;
    int64_t seed = (int64_t)run->seed;
    bool text = !cli.json && cli.verbosity >= 0;
    if (text) {
        printf("code paths: portable%s%s; threads: 1, 2, 7; seed %lld\n",
               run->devices.has_avx2 ? ", avx2" : "", run->devices.has_avx512 ? ", avx512" : "",
               (long long)seed);
        print_count_heading("check");
    } else if (!cli.json) {
        printf("seed %lld\n", (long long)seed);
    }
    for (int i = 0; i < NUM_CHECKS; ++i) {
        if (!run->selected[i])
            continue;
        compared += run->counts[i].compared;
        mismatches += run->counts[i].mismatches;
        if (text)
            print_count(&run->counts[i]);
        else if (cli.json) {
            int code = emit_count("check", &run->counts[i]);
            if (code != CLI_OK)
                return code;
        }
    }
    return finish(compared, mismatches, &seed);
}

static int run_suite(const check_options *options)
{
    check_run *run = calloc(1, sizeof *run);
    bool any = false;
    if (run == NULL)
        return cli_fail_memory(sizeof *run);
    run->seed = (uint64_t)options->seed;
    run->rounds = options->rounds;
    memcpy(run->counts, all_checks, sizeof all_checks);
    for (int i = 0; i < NUM_CHECKS; ++i) {
        run->selected[i] =
            options->filter == NULL || name_matches(options->filter, all_checks[i].name);
        any |= run->selected[i];
    }
    int code = CLI_OK;
    if (!any)
        code = cli_fail(CLI_USAGE, "no check matches %s; --list names them",
                        io_quote(options->filter).text);
    if (code == CLI_OK)
        code = open_devices(&run->devices);
    progress_begin("checking", (uint64_t)(run->rounds * check_num_problems()), "problems");
    for (int64_t round = 0; code == CLI_OK && round < run->rounds; ++round)
        code = run_round(run, (uint64_t)round);
    progress_end();
    if (code == CLI_OK)
        code = report_suite(run);
    close_devices(&run->devices);
    free(run);
    return code;
}

static int list_checks(void)
{
    for (int i = 0; i < NUM_CHECKS; ++i) {
        if (!cli.json) {
            printf("%-8s  %s\n", all_checks[i].name, all_checks[i].meaning);
            continue;
        }
        int code = cli_emit(json_pack("{s:s, s:s, s:s}", "kind", "check", "name",
                                      all_checks[i].name, "meaning", all_checks[i].meaning));
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

int command_check(int argc, char **argv)
{
    check_options options = {.seed = 1, .rounds = 2};
    int code = cli_parse(&check_argp, "halfbyte check", argc, argv, &options);
    if (code != CLI_OK)
        return code;
    if (options.list)
        return list_checks();
    return options.vectors != NULL ? run_vectors(&options) : run_suite(&options);
}
