/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_RACE_H
#define HALFBYTE_CLI_RACE_H

/*
 * halfbyte race: kernels on the emulator. The one subcommand that sees more than the public header:
 * what it runs are the kernels themselves.
 */

#include "common.h"
#include "emulator/harness/harness.h"

enum { RACE_MAX_KERNELS = 64 };

typedef struct race_options {
    bool list, all, mutants;
    bool thorough; /* every problem under every schedule */
    int64_t seeds; /* draws over all axes, for each kernel */
    int policy;    /* emu_policy, -1: all */
    int order;     /* emu_order, -1: all */
    const char *problem;
    int64_t blocks;
    int64_t data; /* of the problem, -1: not given */
    const char *replay;
    const char *names[RACE_MAX_KERNELS];
    int name_count;
} race_options;

/* What the runs of a command came to. */
typedef struct race_totals {
    uint64_t runs, findings, mismatches;
} race_totals;

/* Runs the kernel on the problems and schedules that the options ask for; prints what it finds.
 * An exit code of what fails; findings are no failure here. */
int race_grid(const race_options *options, const harness_kernel *kernel, race_totals *totals);

/* Tries every mutant of the kernels; the exit code. */
int race_mutants(const harness_kernel *const *kernels, int count);

/* The command line that makes this run again. */
enum { RACE_COMMAND_BYTES = 2048 };
void race_command(const harness_kernel *kernel, const harness_problem *problem,
                  const emu_config *config, char *text);

/* Prints what a run reported, with the command line that shows it again. */
int race_print_findings(const harness_kernel *kernel, const harness_problem *problem,
                        const emu_config *config, const emu_report *report);

#endif
