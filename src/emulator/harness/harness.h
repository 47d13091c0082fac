/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host side of every built kernel, for runs on the emulator: problems with their data,
 * parameters, the launch, and the bits that the CPU model wants.
 *
 * A family of kernels is one file here and one entry in harness_all().  Needs the public API
 * (the model as reference) and the emulator.
 */
#ifndef HALFBYTE_EMULATOR_HARNESS_HARNESS_H
#define HALFBYTE_EMULATOR_HARNESS_HARNESS_H

#include "emulator/emulator.h"
#include "halfbyte.h"

/* What is multiplied, by how many blocks: fewer than tiles make persistent ones work on several. */
typedef struct harness_problem {
    int64_t m, n, k;
    uint32_t blocks;
} harness_problem;

/* A problem with its data and the reference result; made by a kernel's create(). */
typedef struct harness_instance harness_instance;

typedef struct harness_kernel {
    const char *name;
    /* The file of the kernel's body, as the end of __FILE__ of its call sites. */
    const char *source;
    uint32_t threads, stages;
    /* The standard grid: k tiles 0, 1, stages - 1, stages, stages + 1, 2 * stages + 1, ragged
     * edges, more tiles than blocks; cheapest first. */
    const harness_problem *grid;
    size_t grid_count;

    /* Is problem (as halfbyte_plan_create() takes it) what this kernel computes? */
    bool (*accepts)(const halfbyte_problem *problem);
    /* Data by seed, and the model's result.  NULL if memory is out or the model refuses. */
    harness_instance *(*create)(const harness_problem *problem, uint64_t seed);
    /* One run: findings are added to report, *mismatches counts the bytes of the output buffer,
     * padding included, that differ from the model's. */
    emu_status (*run)(harness_instance *instance, const emu_config *config, emu_report *report,
                      uint64_t *mismatches);
    void (*destroy)(harness_instance *instance);
} harness_kernel;

/* All built kernels; *count of them. */
const harness_kernel *const *harness_all(size_t *count);

/* By name; NULL if there is none. */
const harness_kernel *harness_find(const char *name);

extern const harness_kernel harness_fp8_block;

#endif
