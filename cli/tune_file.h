/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_TUNE_FILE_H
#define HALFBYTE_CLI_TUNE_FILE_H

/*
 * What `halfbyte tune` found, and the text file that the library reads (halfbyte-formats(7)).
 */

#include "bench.h"

enum { TUNE_MOST_KERNELS = 64, TUNE_NAME_BYTES = 96 };

typedef struct tune_candidate {
    char name[TUNE_NAME_BYTES]; /* without "halfbyte_sm90_" */
    double us;                  /* 0: was not timed */
} tune_candidate;

/* One shape: its candidates, fastest first. */
typedef struct tune_result {
    const bench_shape *shape;
    int sms;
    int count;
    int chosen; /* which of them the library would have taken by itself; -1: none */
    tune_candidate kernel[TUNE_MOST_KERNELS];
} tune_result;

/* Does a run launch the kernel?  `names` are those of all it launches, joined by '+'. */
bool tune_launches(const char *names, const char *kernel);

/*
 * Fastest first; those that were not timed are dropped.  own: what a run launches without a tune
 * file; that choice stays in front if no other kernel takes 1 % less time.
 */
void tune_rank(tune_result *result, const char *own);

/* Brings results into the order of their entries: shapes, then rows. */
void tune_results_sort(tune_result *results, size_t count);

/*
 * Writes the file: an entry for each result, from the rows of the result before of the same shape
 * on.  append: behind what the file holds, if it exists; else in its place.
 */
int tune_file_write(const char *path, bool append, const char *remark, const tune_result *results,
                    size_t count);

#endif
