/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every built kernel on the emulator: problems with their data, launches made by the very host code
 * that the GPU executor uses (api/gemm_launch.h), and the bits that the CPU model wants.
 *
 * The kernels are the rows of api/kernels.def and, as those that run before or behind a GEMM, of
 * api/group_kernels.def; in front of a product with row-major int4 weights that of
 * api/pack_kernels.def runs which packs them.  Needs the public API (the model as reference) and
 * the emulator.
 */
#ifndef HALFBYTE_EMULATOR_HARNESS_HARNESS_H
#define HALFBYTE_EMULATOR_HARNESS_HARNESS_H

#include "emulator/emulator.h"
#include "halfbyte.h"

typedef struct harness_kernel {
    const char *name;
    void (*entry)(const void *params);
    int index; /* into kernel_table, as that of a GEMM if is_gemm */
    bool is_gemm;
    uint32_t threads, smem_bytes;
    uint32_t cluster; /* blocks of one */
} harness_kernel;

/* The table of all built kernels; *count of them. */
const harness_kernel *harness_all(size_t *count);

/* By name; NULL if there is none. */
const harness_kernel *harness_find(const char *name);

/* By its index into kernel_table: one of these, or one that packs weights. */
const harness_kernel *harness_at(int index);

/* ---- problems -------------------------------------------------------------------------------- */

/* Bit of harness_problem.draw, beside those of gemm_case.h: the kernel depends, by programmatic
 * dependent launch, on a grid that writes all that it reads (but constant weights). */
enum { HARNESS_BEHIND = 1 << 10 };

/* And one that says nothing of the data: some mutant is reported on this problem alone. */
enum { HARNESS_FOR_MUTANTS = 1 << 12 };

/* And some that are all set where a grouped product runs as two launches of the kernel, for the
 * groups of at most the mean size and for the others (gemm_choice): with one range of k. */
#define HARNESS_BY_SIZE (UINT64_C(7) << 40)

/* What is multiplied, on how many SMs: fewer than tiles give each block several. */
typedef struct harness_problem {
    halfbyte_problem problem; /* as halfbyte_plan_create() takes it */
    uint32_t blocks;
    uint64_t draw; /* of the data: gemm_case_make() */
} harness_problem;

/* Does the kernel run in the product of this problem?  GEMMs by the test of their row, the others
 * in problems that need them; none where nothing is computed or the problem is not valid. */
bool harness_accepts(const harness_kernel *kernel, const halfbyte_problem *problem);

/*
 * The kernel's problems (harness_problems.c).  First the standard grid of a GEMM: k tiles 0, 1,
 * stages - 1, stages, stages + 1, 2 * stages + 1, ragged edges, more tiles than blocks, with tile
 * and stages as the kernel's name says them (..m128n128k128s6).  Behind it all kinds of problems
 * that the kernel accepts: scales, types, terms, groupings.
 */
enum { HARNESS_GRID = 8, HARNESS_MOST_PROBLEMS = 144 };
int harness_problems(const harness_kernel *kernel, harness_problem list[HARNESS_MOST_PROBLEMS]);

/* ---- runs ------------------------------------------------------------------------------------ */

/* A problem with its data and the reference result. */
typedef struct harness_instance harness_instance;

/* NULL if memory is out or the library refuses: halfbyte_last_error() says why. */
harness_instance *harness_create(const harness_kernel *kernel, const harness_problem *problem);
void harness_destroy(harness_instance *instance);

/*
 * One run: findings are added to report, *mismatches counts the bytes of all tensors, gaps and
 * guards included, that differ from the model's.  config is that of the kernel; launches of other
 * kernels that the product needs run under the default one.
 */
emu_status harness_run(harness_instance *instance, const emu_config *config, emu_report *report,
                       uint64_t *mismatches);

/* Runs the kernel alone, on what happens to lie in its workspace, so that its sites are met, and
 * none of other kernels. */
emu_status harness_meet_sites(harness_instance *instance, emu_report *report);

#endif
