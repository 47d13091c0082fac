/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_CHECK_H
#define HALFBYTE_CLI_CHECK_H

/*
 * The exactness checks. Each counts what it compared and what differed and prints the first
 * differences on stderr; a check that could not run at all returns an exit code other than CLI_OK.
 */

#include "instance.h"

/* One check, or one element type of the golden vectors. */
typedef struct check_count {
    const char *name;
    const char *meaning;
    uint64_t problems;
    uint64_t compared;
    uint64_t mismatches;
} check_count;

enum { CHECK_CHAINS, CHECK_PATHS, CHECK_ROWS, CHECK_PACKED, CHECK_BOUNDS, NUM_CHECKS };

typedef struct check_devices {
    halfbyte_device *base; /* portable, one thread: what the others are compared with */
    halfbyte_device *others[16];
    char names[16][32]; /* "avx2, 7 threads" */
    int count;
    bool has_avx2, has_avx512;
} check_devices;

typedef struct check_run {
    uint64_t seed;
    int64_t rounds;
    bool selected[NUM_CHECKS];
    check_count counts[NUM_CHECKS];
    check_devices devices;
} check_run;

/* Problem number `index` of the grid under `seed`; *gap as for instance_create. Every index below
 * check_num_problems() combines other scale modes; sizes, groupings and the rest are drawn. */
int check_num_problems(void);
void check_make_problem(uint64_t seed, int index, halfbyte_problem *problem, int64_t *gap);

/* Code paths and thread counts; plain and packed weights; single rows; fp64: on one problem. */
int check_problem(check_run *run, const halfbyte_problem *problem, int64_t gap, uint64_t seed,
                  flavour kind);

/* Chains of the instruction against blocks of every code path. */
int check_chains(check_run *run, uint64_t seed);

/* A difference, printed unless this check has printed enough of them. */
void check_mismatch(check_count *count, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- golden vectors -------------------------------------------------------------------------- */

enum { GOLDEN_TYPES = 4, GOLDEN_SKIPPED = 2 };

typedef struct golden_counts {
    check_count types[GOLDEN_TYPES];     /* e4m3, e5m2, bf16, f16 */
    check_count skipped[GOLDEN_SKIPPED]; /* mma.sync, another arithmetic: counted in `problems` */
} golden_counts;

/* Replays a file of golden vectors through halfbyte_tensor_core_dot. */
int check_vectors(const char *path, golden_counts *counts);

#endif
