/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_BENCH_ROW_H
#define HALFBYTE_CLI_BENCH_ROW_H

/* One measured shape of `halfbyte bench`, and how it is told. */

#include <stdio.h>

#include "bench.h"

typedef struct bench_row {
    const bench_shape *shape;
    bool on_gpu;
    char kernel[256]; /* GPU: "any_m128+group_bounds"; model: the code path */
    bench_times event;
    double graph_us;    /* 0: not measured, as below */
    double baseline_us; /* cuBLASLt */
    double read_us;
    double mma_tflops;
    double limit_us;     /* bench_limit_us() */
    int64_t used_groups; /* groups that have rows */
    int64_t most_rows;   /* of a group */
    bool minus8;         /* int4 weights hold one */
    bool checked;
    uint64_t compared, different; /* outputs of the sample */
    bool repeats_equal;
} bench_row;

/* What all rows of a run share. */
typedef struct bench_run_facts {
    char device[160], driver[32], cuda[16], date[16];
    const char *commit;
    int64_t repeats, seed;
} bench_run_facts;

typedef struct bench_report {
    bench_run_facts facts;
    const char *json_path, *csv_path; /* "-": standard output, which then has no table */
    FILE *json, *csv;
    bool table;
    bool any; /* a row was told */
} bench_report;

/* Opens the files (both are appended to; the CSV's header is written if it is empty). */
int bench_report_open(bench_report *report);
int bench_report_row(bench_report *report, const bench_row *row);
int bench_report_close(bench_report *report);

#endif
