/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutation score: every wait, fence, arrival, commit and count of a kernel is removed or weakened
 * in turn, at run time, and each such mutant must be reported.
 *
 * tests/emulator/equivalents lists the mutants that cannot be reported since they change nothing
 * that PTX promises or forbids.
 */
#ifndef HALFBYTE_EMULATOR_HARNESS_MUTANTS_H
#define HALFBYTE_EMULATOR_HARNESS_MUTANTS_H

#include "emulator/harness/harness.h"

typedef struct mutant {
    const emu_site *site;
    emu_mutation kind;
    uint32_t nth; /* of the instruction's sites in the file, by line, from 1 */
} mutant;

/* A mutant known to be no fault. */
typedef struct equivalent_mutant {
    const char *kernel; /* name, "*", or "no cluster": those that run without */
    const char *file;   /* end of the site's file name */
    const char *instruction;
    uint32_t nth;
    emu_mutation kind;
    const char *section; /* of the PTX ISA, as in the instruction layer's comments */
    const char *reason;
} equivalent_mutant;

const equivalent_mutant *equivalents_all(size_t *count);

/* The entry that speaks of the mutant of this kernel, or NULL. */
const equivalent_mutant *equivalents_find(const harness_kernel *kernel, const mutant *one);

typedef struct mutant_set mutant_set;

/* Prepares the kernel's problems and runs them once, unchanged, so that its sites are known: one
 * kernel a process, since sites of shared headers are met once.  NULL if memory is out or that run
 * is not clean. */
mutant_set *mutant_set_create(const harness_kernel *kernel);
void mutant_set_destroy(mutant_set *set);

size_t mutant_count(const mutant_set *set);
mutant mutant_at(const mutant_set *set, size_t index);

/* How a mutant was caught. */
typedef struct mutant_result {
    bool reported;
    bool wrong_bits; /* some run gave other bits than the model */
    size_t runs;
    harness_problem problem; /* of the run that reported it */
    emu_config config;
} mutant_result;

/* Runs it on the kernel's problems under a fixed list of schedules until it is reported; report
 * then holds that run's findings.  One that is known as equivalent under the first of them only. */
mutant_result mutant_try(mutant_set *set, const mutant *one, emu_report *report);

#endif
