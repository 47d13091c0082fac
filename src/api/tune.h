/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tune files: which kernel is the fastest for a shape, as `halfbyte tune` measured it.  They decide
 * among kernels that serve a problem, all of which give the same bits.
 *
 *     halfbyte-tune 1
 *     # comment
 *     family=fp8 grouping=dense n=4096 k=7168 rows=17..64 kernel=fp8_any_m128n128k128s6
 *
 * The first line that is not blank or a comment names the version of the form.  Each other line is
 * an entry of words NAME=VALUE in any order:
 *
 *   family     fp8 or w4a8
 *   grouping   dense, ranges, masked or labels
 *   n, k       of the problem
 *   rows       LOW..HIGH or one number: rows of a group, as far as known when a run is called
 *   kernel     its name without "halfbyte_sm90_"
 *   groups     where given, weight matrices; else any number
 *   sms        where given, SMs that the run may use; else any number
 *
 * Of the entries that fit, the last counts.  One whose kernel this library does not have is passed
 * over, so that a file may serve several versions; everything else that is not as above is refused.
 */
#ifndef HALFBYTE_API_TUNE_H
#define HALFBYTE_API_TUNE_H

#include <stddef.h>
#include <stdint.h>

#include "halfbyte.h"

typedef struct tune_entry {
    halfbyte_family family;
    halfbyte_grouping grouping;
    int64_t n, k;
    int64_t first_rows, last_rows;
    int64_t groups, sms; /* 0: any */
    int kernel;          /* row of kernels.def */
    size_t position;     /* in the file */
} tune_entry;

/* Sorted by family, grouping, n and k; of equals the last of the file comes first. */
typedef struct tune_table {
    tune_entry *entries;
    size_t count;
    size_t passed_over; /* entries for kernels that this library does not have */
} tune_table;

/*
 * Reads `bytes` bytes of text.  *table belongs to the caller; tune_free() ends it.  `name` stands
 * in messages: "tune file NAME, line 3: ...".  ERR_INVALID_ARGUMENT, ERR_OUT_OF_MEMORY.
 */
halfbyte_status tune_parse(const char *text, size_t bytes, const char *name, tune_table **table);

/* The same of a file. */
halfbyte_status tune_read(const char *path, tune_table **table);

/* Brings entries whose positions are set into order; part of parsing. */
void tune_sort(tune_table *table);

/* NULL is fine. */
void tune_free(tune_table *table);

/*
 * The kernel that is stored for a run of the problem with `rows` rows a group on `sms` SMs, if it
 * is one of the set `kernels` (bit i: row i of kernels.def); else -1.  table may be NULL.
 */
int tune_find(const tune_table *table, uint64_t kernels, const halfbyte_problem *problem,
              int64_t rows, int sms);

#endif
