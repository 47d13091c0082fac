/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/harness/mutants.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/harness/schedules.h"

struct mutant_set {
    const harness_kernel *kernel;
    harness_problem problems[HARNESS_MOST_PROBLEMS];
    harness_instance *instances[HARNESS_MOST_PROBLEMS];
    int count;
    mutant *mutants;
    size_t mutant_count;
};

/* ---- equivalents ----------------------------------------------------------------------------- */

static const equivalent_mutant equivalents[] = {
#define EQUIVALENT(kernel, file, instruction, nth, kind, section, reason)                          \
    {kernel, file, instruction, nth, EMU_MUTATE_##kind, section, reason},
#include HALFBYTE_EQUIVALENTS_FILE
#undef EQUIVALENT
    {NULL, NULL, NULL, 0, EMU_MUTATE_NOTHING, NULL, NULL},
};

const equivalent_mutant *equivalents_all(size_t *count)
{
    *count = sizeof equivalents / sizeof equivalents[0] - 1;
    return equivalents;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool speaks_of(const equivalent_mutant *entry, const harness_kernel *kernel)
{
    return strcmp(entry->kernel, "*") == 0 || strcmp(entry->kernel, kernel->name) == 0 ||
           (strcmp(entry->kernel, "no cluster") == 0 && kernel->cluster == 1);
}

const equivalent_mutant *equivalents_find(const harness_kernel *kernel, const mutant *one)
{
    for (const equivalent_mutant *entry = equivalents; entry->kernel != NULL; entry++) {
        if (speaks_of(entry, kernel) && ends_with(one->site->file, entry->file) &&
            strcmp(entry->instruction, one->site->instruction) == 0 && entry->nth == one->nth &&
            entry->kind == one->kind) {
            return entry;
        }
    }
    return NULL;
}

/* ---- enumeration ----------------------------------------------------------------------------- */

static bool same_instruction(const emu_site *x, const emu_site *y)
{
    return strcmp(x->file, y->file) == 0 && strcmp(x->instruction, y->instruction) == 0;
}

/* Sites by file, then line. */
static int compare_mutants(const void *left, const void *right)
{
    const mutant *x = left, *y = right;
    const int files = strcmp(x->site->file, y->site->file);
    if (files != 0) {
        return files;
    }
    if (x->site->line != y->site->line) {
        return x->site->line < y->site->line ? -1 : 1;
    }
    if (x->site != y->site) {
        return strcmp(x->site->instruction, y->site->instruction);
    }
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Of the instruction's sites in its file, those up to this line. */
static uint32_t place_in_file(const mutant_set *set, const emu_site *site)
{
    uint32_t nth = 0;
    const emu_site *last = NULL;
    for (size_t i = 0; i < set->mutant_count; i++) {
        const emu_site *other = set->mutants[i].site;
        if (other != last && same_instruction(other, site) && other->line <= site->line) {
            nth++;
            last = other;
        }
    }
    return nth;
}

/* The mutants at sites first..end. */
static bool enumerate(mutant_set *set, size_t first, size_t end)
{
    set->mutants = calloc((end - first) * EMU_MUTATION_COUNT + 1, sizeof *set->mutants);
    if (set->mutants == NULL) {
        return false;
    }
    for (size_t i = first; i < end; i++) {
        const emu_site *site = emu_site_at(i);
        for (int kind = 1; kind < EMU_MUTATION_COUNT; kind++) {
            if (emu_mutation_kinds(site) >> kind & 1u) {
                set->mutants[set->mutant_count++] = (mutant){site, (emu_mutation)kind, 0};
            }
        }
    }
    qsort(set->mutants, set->mutant_count, sizeof *set->mutants, compare_mutants);
    for (size_t i = 0; i < set->mutant_count; i++) {
        set->mutants[i].nth = place_in_file(set, set->mutants[i].site);
    }
    return set->mutant_count > 0;
}

/* Those of the kernel's problems that mutants are tried on: the standard grid of a GEMM and the
 * marked ones; all of another kernel. */
static void problems_choose(mutant_set *set)
{
    const bool is_gemm = set->kernel->is_gemm;
    const int count = harness_problems(set->kernel, set->problems);
    for (int i = 0; i < count; i++) {
        const harness_problem *one = &set->problems[i];
        if (!is_gemm || i < HARNESS_GRID || (one->draw & HARNESS_FOR_MUTANTS) != 0) {
            set->problems[set->count++] = *one;
        }
    }
}

/* The instances; meets the kernel's sites and no others. */
static bool instances_make(mutant_set *set, emu_report *report)
{
    problems_choose(set);
    for (int i = 0; i < set->count; i++) {
        set->instances[i] = harness_create(set->kernel, &set->problems[i]);
        if (set->instances[i] == NULL || harness_meet_sites(set->instances[i], report) != EMU_OK) {
            return false;
        }
    }
    return emu_report_count(report) == 0;
}

/* One run of each problem; all must be clean. */
static bool run_unchanged(mutant_set *set, emu_report *report)
{
    const emu_config config = emu_config_default();
    for (int i = 0; i < set->count; i++) {
        uint64_t mismatches = 0;
        if (harness_run(set->instances[i], &config, report, &mismatches) != EMU_OK ||
            mismatches != 0 || emu_report_count(report) != 0) {
            return false;
        }
    }
    return true;
}

static bool prepare(mutant_set *set)
{
    emu_report *report = emu_report_create();
    const size_t first = emu_site_count();
    const bool good = report != NULL && instances_make(set, report) &&
                      enumerate(set, first, emu_site_count()) && run_unchanged(set, report);
    emu_report_destroy(report);
    return good;
}

mutant_set *mutant_set_create(const harness_kernel *kernel)
{
    mutant_set *set = calloc(1, sizeof *set);
    if (set == NULL) {
        return NULL;
    }
    set->kernel = kernel;
    if (!prepare(set)) {
        mutant_set_destroy(set);
        return NULL;
    }
    return set;
}

void mutant_set_destroy(mutant_set *set)
{
    if (set == NULL) {
        return;
    }
    for (int i = 0; i < set->count; i++) {
        harness_destroy(set->instances[i]);
    }
    free(set->mutants);
    free(set);
}

size_t mutant_count(const mutant_set *set)
{
    return set->mutant_count;
}

mutant mutant_at(const mutant_set *set, size_t index)
{
    return set->mutants[index];
}

/* ---- trial ----------------------------------------------------------------------------------- */

/* What finds most stands first. */
static emu_config schedule_of_trial(size_t index, uint32_t warps)
{
    static const struct {
        emu_policy policy;
        emu_order order;
        bool last_warp;
    } list[] = {
        {EMU_LATEST, EMU_LOW_FIRST, false},     {EMU_EARLIEST, EMU_HIGH_FIRST, false},
        {EMU_EARLIEST, EMU_STARVE_WARP, true},  {EMU_TORN, EMU_HIGH_FIRST, false},
        {EMU_LATEST, EMU_STARVE_WARP, false},   {EMU_RANDOM, EMU_SHUFFLED, false},
        {EMU_EARLIEST, EMU_STARVE_WARP, false},
    };
    emu_config config = emu_config_default();
    config.policy = list[index].policy;
    config.order = list[index].order;
    config.starved_warp = list[index].last_warp ? (int)warps - 1 : 0;
    config.seed = 1;
    return config;
}
enum { TRIAL_SCHEDULES = 7, TRIAL_SCHEDULES_OF_EQUIVALENTS = 2 };

mutant_result mutant_try(mutant_set *set, const mutant *one, emu_report *report)
{
    /* All runs of one that is never reported take as long as those of many others. */
    const size_t schedules = equivalents_find(set->kernel, one) == NULL
                                 ? TRIAL_SCHEDULES
                                 : TRIAL_SCHEDULES_OF_EQUIVALENTS;
    mutant_result result;
    memset(&result, 0, sizeof result);
    for (size_t s = 0; s < schedules && !result.reported; s++) {
        result.config = schedule_of_trial(s, set->kernel->threads / 32);
        result.config.mutate_file = one->site->file;
        result.config.mutate_line = one->site->line;
        result.config.mutate_instruction = one->site->instruction;
        result.config.mutation = one->kind;
        /* The largest unchanged problem takes a small part of this. */
        result.config.max_steps = 20000000;
        for (int i = 0; i < set->count && !result.reported; i++) {
            uint64_t mismatches = 0;
            emu_report_clear(report);
            harness_run(set->instances[i], &result.config, report, &mismatches);
            result.runs++;
            result.wrong_bits |= mismatches != 0;
            result.reported = emu_report_count(report) != 0;
            result.problem = set->problems[i];
        }
    }
    return result;
}
