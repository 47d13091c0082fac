/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_ERROR_STATS_H
#define HALFBYTE_CLI_ERROR_STATS_H

/*
 * How far values are from a reference, over all elements added:
 *   relative RMS   sqrt(sum e^2 / sum r^2); 0 if both sums are 0, infinite if only sum r^2 is
 *   largest error  max |e|; NaN once an e was NaN
 *   SQNR           -20 log10(relative RMS) in dB; infinite if there is no error
 * Zero-initialise.
 */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct error_stats {
    double sum_error2, sum_reference2, max_error;
    uint64_t count;
} error_stats;

void error_stats_add(error_stats *stats, double value, double reference);
void error_stats_add_f32(error_stats *stats, const float *values, const float *references,
                         size_t count);
void error_stats_merge(error_stats *stats, const error_stats *other);

double error_stats_relative_rms(const error_stats *stats);
double error_stats_sqnr_db(const error_stats *stats);

/* Sets relative_rms, max_error and sqnr_db (null where infinite) in `object`. */
void error_stats_json(const error_stats *stats, json_t *object);

#endif
