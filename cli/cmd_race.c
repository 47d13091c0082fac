/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte race: the kernels under every schedule that the hardware may choose. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "emulator/harness/isolate.h"
#include "race.h"

enum {
    KEY_ALL = 0x100,
    KEY_SEEDS,
    KEY_POLICY,
    KEY_ORDER,
    KEY_PROBLEM,
    KEY_BLOCKS,
    KEY_DATA,
    KEY_THOROUGH,
    KEY_REPLAY,
    KEY_MUTANTS,
    KEY_LIST
};

static const struct argp_option race_argp_options[] = {
    {"all", KEY_ALL, NULL, 0, "All kernels of matrix products (the default)", 0},
    {"list", KEY_LIST, NULL, 0, "List the kernels", 0},
    {"mutants", KEY_MUTANTS, NULL, 0,
     "Remove or weaken every wait, fence, arrival and count in turn; each must be reported", 0},
    {"seeds", KEY_SEEDS, "N", 0, "Random schedules and data for each kernel (default 16)", 0},
    {"thorough", KEY_THOROUGH, NULL, 0,
     "Every problem under every schedule, not only those around the edges of ring and tiles", 0},
    {"policy", KEY_POLICY, "NAME", 0,
     "When copies and wgmma take effect: earliest, latest, lifo, torn, delay or random", 0},
    {"order", KEY_ORDER, "NAME", 0,
     "Which thread runs first: low-first, high-first, starve or shuffled", 0},
    {"problem", KEY_PROBLEM, "STRING", 0,
     "Instead of the kernel's own, as in fp8:m200n96k640:a1x128:b128x128,k", 0},
    {"blocks", KEY_BLOCKS, "N", 0, "Blocks that share the problem's tiles (default 2)", 0},
    {"data", KEY_DATA, "N", 0,
     "Draws what the problem leaves open: strides, group sizes, values (default 0)", 0},
    {"replay", KEY_REPLAY, "STRING", 0, "One schedule, as a report names it", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

/* The index of `text` among the names, or an error that ends the program. */
static int choose(struct argp_state *state, const char *option, const char *text, int count,
                  const char *(*name)(int))
{
    for (int i = 0; i < count; ++i) {
        if (strcmp(name(i), text) == 0)
            return i;
    }
    argp_error(state, "%s does not take '%s'; see --help", option, text);
    return -1;
}

static const char *policy_name(int policy)
{
    return emu_policy_name((emu_policy)policy);
}

static const char *order_name(int order)
{
    return emu_order_name((emu_order)order);
}

static void check_options(const race_options *options, struct argp_state *state)
{
    bool schedule = options->policy >= 0 || options->order >= 0 || options->seeds >= 0;
    if (options->mutants && (schedule || options->problem != NULL || options->replay != NULL))
        argp_error(state, "--mutants has problems and schedules of its own");
    if (options->replay != NULL && schedule)
        argp_error(state, "--replay says it all: no --policy, --order or --seeds beside it");
    emu_config config;
    if (options->replay != NULL && !emu_config_parse(&config, options->replay))
        argp_error(state, "--replay: '%s' is no schedule", options->replay);
    if (options->all && options->name_count > 0)
        argp_error(state, "--all and '%s' do not go together", options->names[0]);
    if (options->blocks > 0 && options->problem == NULL)
        argp_error(state, "--blocks needs --problem");
    if (options->data >= 0 && options->problem == NULL)
        argp_error(state, "--data needs --problem");
    if (options->thorough && (options->problem != NULL || options->mutants))
        argp_error(state, "--thorough is about the kernels' own problems");
}

static error_t parse_race(int key, char *text, struct argp_state *state)
{
    race_options *options = state->input;
    switch (key) {
    case KEY_ALL: options->all = true; break;
    case KEY_LIST: options->list = true; break;
    case KEY_MUTANTS: options->mutants = true; break;
    case KEY_SEEDS:
        if (!cli_parse_int(text, 0, 1000000000, &options->seeds))
            argp_error(state, "--seeds takes a number from 0, not '%s'", text);
        break;
    case KEY_POLICY:
        options->policy = choose(state, "--policy", text, EMU_POLICY_COUNT, policy_name);
        break;
    case KEY_ORDER:
        options->order = choose(state, "--order", text, EMU_ORDER_COUNT, order_name);
        break;
    case KEY_PROBLEM: options->problem = text; break;
    case KEY_BLOCKS:
        if (!cli_parse_int(text, 1, 1024, &options->blocks))
            argp_error(state, "--blocks takes a number from 1 to 1024, not '%s'", text);
        break;
    case KEY_DATA:
        if (!cli_parse_int(text, 0, INT64_MAX, &options->data))
            argp_error(state, "--data takes a number from 0, not '%s'", text);
        break;
    case KEY_THOROUGH: options->thorough = true; break;
    case KEY_REPLAY: options->replay = text; break;
    case ARGP_KEY_ARG:
        if (options->name_count == RACE_MAX_KERNELS)
            argp_error(state, "more than %d kernels", RACE_MAX_KERNELS);
        options->names[options->name_count++] = text;
        break;
    case ARGP_KEY_END: check_options(options, state); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child race_children[] = {{&cli_common_argp, 0, NULL, 0},
                                                  {NULL, 0, NULL, 0}};
static const struct argp race_argp = {
    .options = race_argp_options,
    .parser = parse_race,
    .args_doc = "[KERNEL...]",
    .doc = "Run the GPU kernels on the CPU, under every order in which copies, tensor\n"
           "core and threads may come, and report what a correct kernel must not do,\n"
           "by file and line.\n"
           "\nExamples:\n"
           "  halfbyte race --all --seeds 200\n"
           "  halfbyte race --problem fp8:m200n96k640:a1x128:b128x128,k\n"
           "  halfbyte race --mutants\n"
           "\nThe last line is 'R runs, F findings, M mismatches', or with --mutants\n"
           "'K/T mutants reported, E equivalent'. Exit code 1 if there is a finding,\n"
           "a mismatch with the CPU model, or a mutant that is neither.\n",
    .children = race_children,
};

/* ---- kernels --------------------------------------------------------------------------------- */

static int list_kernels(void)
{
    size_t count;
    const harness_kernel *all = harness_all(&count);
    for (size_t i = 0; i < count; ++i) {
        int code = CLI_OK;
        if (!cli.json)
            puts(all[i].name);
        else
            code = cli_emit(json_pack("{s:s, s:s, s:i, s:i}", "kind", "kernel", "name", all[i].name,
                                      "threads", (int)all[i].threads, "smem_bytes",
                                      (int)all[i].smem_bytes));
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

/* The kernels that were asked for; their number in *count. */
static int select_kernels(const race_options *options, const harness_kernel **chosen, int *count)
{
    size_t all_count;
    const harness_kernel *all = harness_all(&all_count);
    *count = 0;
    for (int i = 0; i < options->name_count; ++i) {
        chosen[*count] = harness_find(options->names[i]);
        if (chosen[*count] == NULL)
            return cli_fail(CLI_USAGE, "no kernel %s; --list names them",
                            io_quote(options->names[i]).text);
        ++*count;
    }
    for (size_t i = 0; options->name_count == 0 && i < all_count && i < RACE_MAX_KERNELS; ++i)
        chosen[(*count)++] = &all[i];
    return CLI_OK;
}

static int finish(const race_totals *totals)
{
    bool clean = totals->findings == 0 && totals->mismatches == 0;
    if (cli.json) {
        int code = cli_emit(json_pack(
            "{s:s, s:I, s:I, s:I}", "kind", "summary", "runs", (json_int_t)totals->runs, "findings",
            (json_int_t)totals->findings, "mismatches", (json_int_t)totals->mismatches));
        if (code != CLI_OK)
            return code;
    } else {
        printf("%s%llu runs, %llu findings, %llu mismatches%s\n",
               cli_style_on(stdout, clean ? STYLE_GOOD : STYLE_BAD),
               (unsigned long long)totals->runs, (unsigned long long)totals->findings,
               (unsigned long long)totals->mismatches, cli_style_on(stdout, STYLE_RESET));
    }
    if (totals->runs == 0)
        return cli_fail(CLI_USAGE, "no kernel serves this problem, so nothing ran");
    return clean ? CLI_OK : CLI_CHECK_FAILED;
}

/* A kernel at a time, in a child process. */
typedef struct kernel_work {
    const race_options *options;
    const harness_kernel *kernel;
    race_totals *totals; /* shared */
} kernel_work;

static int run_kernel(void *argument)
{
    const kernel_work *work = argument;
    return race_grid(work->options, work->kernel, work->totals);
}

static int run_kernels(const race_options *options, const harness_kernel *const *chosen, int count)
{
    race_totals *totals = isolate_memory(sizeof *totals);
    if (totals == NULL)
        return cli_fail_memory(sizeof *totals);
    int code = CLI_OK;
    for (int i = 0; i < count && code == CLI_OK; ++i) {
        kernel_work work = {options, chosen[i], totals};
        code = isolate_run(run_kernel, &work);
        if (code < 0)
            code = cli_fail(CLI_ENVIRONMENT, "%s: the run died", chosen[i]->name);
    }
    if (code == CLI_OK)
        code = finish(totals);
    isolate_free(totals, sizeof *totals);
    return code;
}

int command_race(int argc, char **argv)
{
    race_options options;
    const harness_kernel *chosen[RACE_MAX_KERNELS];
    int count = 0;
    memset(&options, 0, sizeof options);
    options.seeds = options.policy = options.order = -1;
    options.data = -1;
    int code = cli_parse(&race_argp, "halfbyte race", argc, argv, &options);
    if (code == CLI_OK && options.list)
        return list_kernels();
    if (code == CLI_OK)
        code = select_kernels(&options, chosen, &count);
    if (code != CLI_OK)
        return code;
    return options.mutants ? race_mutants(chosen, count) : run_kernels(&options, chosen, count);
}
