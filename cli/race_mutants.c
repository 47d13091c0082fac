/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte race --mutants: the emulator's own test, on the kernels as they are. */
#include <string.h>

#include "emulator/harness/isolate.h"
#include "emulator/harness/mutants.h"
#include "race.h"

typedef struct mutant_totals {
    uint64_t total, reported, equivalent, faults;
} mutant_totals;

static const char *outcome_of(const mutant_result *result, const equivalent_mutant *entry)
{
    if (result->reported)
        return entry == NULL ? "reported" : "reported, yet listed as equivalent";
    if (entry != NULL)
        return "equivalent";
    return result->wrong_bits ? "NOT REPORTED, wrong bits" : "NOT REPORTED";
}

static int print_mutant(const harness_kernel *kernel, const mutant *one,
                        const mutant_result *result, const equivalent_mutant *entry,
                        const emu_report *report)
{
    const char *outcome = outcome_of(result, entry);
    const char *hazard = result->reported ? emu_report_finding(report, 0)->hazard : "";
    if (cli.json)
        return cli_emit(json_pack("{s:s, s:s, s:o, s:i, s:s, s:s, s:s, s:s, s:I}", "kind", "mutant",
                                  "kernel", kernel->name, "file", cli_json_text(one->site->file),
                                  "line", one->site->line, "instruction", one->site->instruction,
                                  "mutation", emu_mutation_name(one->kind), "outcome", outcome,
                                  "hazard", hazard, "runs", (json_int_t)result->runs));
    bool good = result->reported == (entry == NULL);
    if (good && cli.verbosity < 0)
        return CLI_OK;
    const char *slash = strrchr(one->site->file, '/');
    printf("  %s:%d %s %s: %s%s%s%s%s", slash != NULL ? slash + 1 : one->site->file,
           one->site->line, one->site->instruction, emu_mutation_name(one->kind),
           cli_style_on(stdout, good ? STYLE_GOOD : STYLE_BAD), outcome,
           cli_style_on(stdout, STYLE_RESET), result->reported ? " as " : "", hazard);
    if (entry != NULL)
        printf(" (PTX %s: %s)", entry->section, entry->reason);
    putchar('\n');
    return CLI_OK;
}

/* A kernel at a time, in a child process. */
typedef struct kernel_work {
    const harness_kernel *kernel;
    emu_report *report;
    mutant_totals *totals; /* shared */
} kernel_work;

static int try_kernel(void *argument)
{
    const kernel_work *work = argument;
    const harness_kernel *kernel = work->kernel;
    mutant_totals *totals = work->totals;
    mutant_set *set = mutant_set_create(kernel);
    if (set == NULL)
        return cli_fail(CLI_CHECK_FAILED, "%s: not clean unchanged, so no mutant was tried",
                        kernel->name);
    if (!cli.json && cli.verbosity >= 0)
        printf("%s%s%s\n", cli_style_on(stdout, STYLE_HEADING), kernel->name,
               cli_style_on(stdout, STYLE_RESET));
    int code = CLI_OK;
    for (size_t i = 0; i < mutant_count(set) && code == CLI_OK; ++i) {
        const mutant one = mutant_at(set, i);
        const equivalent_mutant *entry = equivalents_find(kernel, &one);
        const mutant_result result = mutant_try(set, &one, work->report);
        totals->total++;
        totals->reported += result.reported;
        totals->equivalent += !result.reported && entry != NULL;
        totals->faults += result.reported != (entry == NULL);
        code = print_mutant(kernel, &one, &result, entry, work->report);
    }
    mutant_set_destroy(set);
    return code;
}

static int finish(const mutant_totals *totals)
{
    if (cli.json) {
        int code =
            cli_emit(json_pack("{s:s, s:I, s:I, s:I}", "kind", "summary", "total",
                               (json_int_t)totals->total, "reported", (json_int_t)totals->reported,
                               "equivalent", (json_int_t)totals->equivalent));
        if (code != CLI_OK)
            return code;
    } else {
        printf("%llu/%llu mutants reported, %llu equivalent\n",
               (unsigned long long)totals->reported, (unsigned long long)totals->total,
               (unsigned long long)totals->equivalent);
    }
    return totals->faults == 0 && totals->total > 0 ? CLI_OK : CLI_CHECK_FAILED;
}

int race_mutants(const harness_kernel *const *kernels, int count)
{
    mutant_totals *totals = isolate_memory(sizeof *totals);
    emu_report *report = emu_report_create();
    int code = totals != NULL && report != NULL ? CLI_OK : cli_fail_memory(sizeof *totals);
    for (int i = 0; i < count && code == CLI_OK; ++i) {
        kernel_work work = {kernels[i], report, totals};
        code = isolate_run(try_kernel, &work);
        if (code < 0)
            code = cli_fail(CLI_ENVIRONMENT, "%s: the run died", kernels[i]->name);
    }
    if (code == CLI_OK)
        code = finish(totals);
    emu_report_destroy(report);
    isolate_free(totals, sizeof *totals);
    return code;
}
