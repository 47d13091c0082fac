/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_BENCH_WORK_H
#define HALFBYTE_CLI_BENCH_WORK_H

/* A run of `halfbyte bench`. */

#include "bench_row.h"

enum { BENCH_MOST_INPUTS = 256 };

typedef struct bench_work {
    const char *input[BENCH_MOST_INPUTS]; /* --shapes and problem strings, as they came */
    bool is_file[BENCH_MOST_INPUTS];
    int inputs;
    bench_shapes shapes;
    const char *filter, *commit;
    int64_t repeats, seed;
    bool minus8, no_check, no_probes, no_baseline;
    halfbyte_device_options device_options;
    bench_report report;
    halfbyte_device *gpu_device; /* NULL: the CPU model is timed */
    halfbyte_device *model;
    bench_gpu *gpu;
    bench_vendor *vendor;
    double mma_tflops;
    int measured, unserved, wrong;
} bench_work;

/* Median of whole runs on the model device. */
int bench_time_model(const bench_work *work, instance *made, bench_row *row);

/* Events, graph replay, bits, and what the machine gives beside them. */
int bench_time_gpu(const bench_work *work, instance *made, bench_row *row);

#endif
