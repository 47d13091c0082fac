/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host side of every built kernel, for runs on the emulator: problems with their data,
 * parameters, the launch, and the bits that the CPU model wants.
 *
 * The kernels are the rows of api/kernels.def.  A family of kernels, which takes the same
 * parameters, is one file here.  Needs the public API (the model as reference) and the emulator.
 */
#ifndef HALFBYTE_EMULATOR_HARNESS_HARNESS_H
#define HALFBYTE_EMULATOR_HARNESS_HARNESS_H

#include "cuda/kernel_table.h"
#include "emulator/emulator.h"
#include "halfbyte.h"

/* What is multiplied, by how many blocks: fewer than tiles make persistent ones work on several. */
typedef struct harness_problem {
    int64_t m, n, k;
    int64_t d_gap; /* elements between the rows of D */
    uint32_t blocks;
} harness_problem;

/* A problem with its data and the reference result. */
typedef struct harness_instance harness_instance;

typedef struct harness_family harness_family;

typedef struct harness_kernel {
    const char *name;
    void (*entry)(const void *params);
    uint32_t threads, smem_bytes;
    uint32_t tile_m, tile_n;
    int index; /* into kernel_table */
    uint32_t cluster;
    const harness_family *family;
} harness_kernel;

struct harness_family {
    /* Is problem (as halfbyte_plan_create() takes it) what the family computes? */
    bool (*accepts)(const halfbyte_problem *problem);
    /* The problem as the public API states it. */
    halfbyte_problem (*state)(const harness_problem *problem);
    /* Data by seed, and the model's result.  NULL if memory is out or the model refuses. */
    harness_instance *(*create)(const harness_kernel *kernel, const harness_problem *problem,
                                uint64_t seed);
    /* One run: findings are added to report, *mismatches counts the bytes of the output buffer,
     * gaps included, that differ from the model's. */
    emu_status (*run)(harness_instance *instance, const emu_config *config, emu_report *report,
                      uint64_t *mismatches);
    void (*destroy)(harness_instance *instance);
};

/* The family of a row of the table is named after the test that the row passes. */
extern const harness_family family_of_accepts_fp8_block_dense;
extern const harness_family family_of_accepts_fp8;

/* The table of all built kernels; *count of them. */
const harness_kernel *harness_all(size_t *count);

/* By name; NULL if there is none. */
const harness_kernel *harness_find(const char *name);

/* The standard grid: k tiles 0, 1, stages - 1, stages, stages + 1, 2 * stages + 1, ragged edges,
 * more tiles than blocks.  Tile and stages as the kernel's name says them: ..m128n128k128s6. */
enum { HARNESS_GRID = 8 };
harness_problem harness_grid(const harness_kernel *kernel, int index);

#endif
