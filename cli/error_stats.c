/* SPDX-License-Identifier: Apache-2.0 */
#include "error_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void error_stats_add(error_stats *stats, double value, double reference)
{
    double error = fabs(value - reference);
    stats->sum_error2 += error * error;
    stats->sum_reference2 += reference * reference;
    if (error > stats->max_error || isnan(error))
        stats->max_error = error;
    ++stats->count;
}

void error_stats_add_f32(error_stats *stats, const float *values, const float *references,
                         size_t count)
{
    for (size_t i = 0; i < count; ++i)
        error_stats_add(stats, (double)values[i], (double)references[i]);
}

void error_stats_merge(error_stats *stats, const error_stats *other)
{
    stats->sum_error2 += other->sum_error2;
    stats->sum_reference2 += other->sum_reference2;
    if (other->max_error > stats->max_error || isnan(other->max_error))
        stats->max_error = other->max_error;
    stats->count += other->count;
}

double error_stats_relative_rms(const error_stats *stats)
{
    if (stats->sum_error2 == 0)
        return 0;
    return sqrt(stats->sum_error2 / stats->sum_reference2);
}

double error_stats_sqnr_db(const error_stats *stats)
{
    if (stats->sum_error2 == 0)
        return INFINITY;
    return 10 * log10(stats->sum_reference2 / stats->sum_error2);
}

/* Six digits, as many as anybody reads; the errors of errors are larger. */
static json_t *six_digits(double value)
{
    char text[32];
    if (!isfinite(value))
        return json_null();
    snprintf(text, sizeof text, "%.6g", value);
    return json_real(strtod(text, NULL));
}

void error_stats_json(const error_stats *stats, json_t *object)
{
    json_object_set_new(object, "relative_rms", six_digits(error_stats_relative_rms(stats)));
    json_object_set_new(object, "max_error", six_digits(stats->max_error));
    json_object_set_new(object, "sqnr_db", six_digits(error_stats_sqnr_db(stats)));
}
