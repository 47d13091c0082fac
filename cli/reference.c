/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

static const double U = 0x1p-24;        /* half a unit of fp32 */
static const double QUANTUM = 0x1p-149; /* the smallest fp32 number */
static const double CUT = 0x1p-13;      /* what the tensor core cuts, relative */

/* A value with the most that the computed one may differ from it. */
typedef struct approx {
    double value, error;
} approx;

/* ---- decoding -------------------------------------------------------------------------------- */

static float widen(const void *data, halfbyte_type type, int64_t at)
{
    float value = 0;
    if (type == HALFBYTE_TYPE_NONE)
        type = HALFBYTE_TYPE_F32;
    const char *from = (const char *)data + at * halfbyte_type_bits(type) / 8;
    halfbyte_convert(&value, HALFBYTE_TYPE_F32, from, type, 1);
    return value;
}

/* 2^max(exponent, -6): e4m3 subnormals are not normalised before they are aligned. */
static float unnormalised_weight(float value)
{
    int exponent = 0;
    if (value == 0)
        return 0;
    frexpf(value, &exponent);
    exponent = exponent - 1 > -6 ? exponent - 1 : -6;
    return ldexpf(1, exponent);
}

static void decode_table(float *table)
{
    for (int code = 0; code < 256; ++code) {
        uint8_t byte = (uint8_t)code;
        table[code] = widen(&byte, HALFBYTE_TYPE_E4M3, 0);
    }
}

static float nibble(const uint8_t *row, int64_t k)
{
    int value = k % 2 == 0 ? row[k / 2] & 15 : row[k / 2] >> 4;
    return (float)(value >= 8 ? value - 16 : value) / 512.0f;
}

static void decode_rows(const reference *made, const float *table)
{
    const instance *of = made->of;
    int64_t k = of->k;
    bool int4 = of->problem.family == HALFBYTE_FAMILY_W4A8;
    for (int64_t row = 0; row < of->owned_rows; ++row) {
        const uint8_t *from = of->a + of->owned[row] * of->operands.a.ld;
        for (int64_t i = 0; i < k; ++i) {
            made->a[row * k + i] = table[from[i]];
            made->a_weight[row * k + i] = unnormalised_weight(table[from[i]]);
        }
    }
    for (int64_t row = 0; row < of->groups * of->n; ++row) {
        int64_t ld = of->operands.b.ld;
        const uint8_t *from = of->b + row * (int4 ? ld / 2 : ld);
        for (int64_t i = 0; i < k; ++i) {
            float value = int4 ? nibble(from, i) : table[from[i]];
            made->b[row * k + i] = value;
            made->b_weight[row * k + i] = unnormalised_weight(value);
        }
    }
}

int reference_create(reference *made, const instance *of)
{
    float table[256];
    int64_t a_groups = of->problem.grouping == HALFBYTE_GROUPING_MASKED ? of->groups : 1;
    uint64_t a_count = (uint64_t)(of->owned_rows * of->k);
    uint64_t b_count = (uint64_t)(of->groups * of->n * of->k);
    int64_t a_scales = a_groups * of->a_extent.mn * of->a_extent.kb;
    int64_t b_scales = of->groups * of->b_extent.mn * of->b_extent.kb;
    memset(made, 0, sizeof *made);
    made->of = of;
    made->a = cli_alloc(a_count, sizeof(float));
    made->a_weight = cli_alloc(a_count, sizeof(float));
    made->b = cli_alloc(b_count, sizeof(float));
    made->b_weight = cli_alloc(b_count, sizeof(float));
    made->a_scale = cli_alloc((uint64_t)a_scales, sizeof(float));
    made->b_scale = cli_alloc((uint64_t)b_scales, sizeof(float));
    if (made->a == NULL || made->a_weight == NULL || made->b == NULL || made->b_weight == NULL ||
        made->a_scale == NULL || made->b_scale == NULL)
        return cli_fail_memory((a_count + b_count) * 2 * sizeof(float));
    decode_table(table);
    decode_rows(made, table);
    for (int64_t i = 0; i < a_scales; ++i)
        made->a_scale[i] = of->a_scale[i];
    for (int64_t i = 0; i < b_scales; ++i)
        made->b_scale[i] = widen(of->b_scale, of->problem.b_scale.type, i);
    return CLI_OK;
}

void reference_free(reference *made)
{
    free(made->a);
    free(made->a_weight);
    free(made->b);
    free(made->b_weight);
    free(made->a_scale);
    free(made->b_scale);
    memset(made, 0, sizeof *made);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* The rows that meet in one output. */
typedef struct operand_rows {
    const float *a, *b, *a_weight, *b_weight;
} operand_rows;

/* One instruction on k in [from, to): adds to the sum *t, the magnitudes *p and the error *e. */
static void instruction(const operand_rows *rows, int64_t from, int64_t to, bool first, double *t,
                        double *p, double *e)
{
    double largest = 0;
    double losses = 0;
    double magnitudes = 0;
    for (int64_t k = from; k < to; ++k) {
        double weight = (double)rows->a_weight[k] * (double)rows->b_weight[k];
        largest = weight > largest ? weight : largest;
    }
    double top = largest > *p ? largest : *p;
    for (int64_t k = from; k < to; ++k) {
        double product = (double)rows->a[k] * (double)rows->b[k];
        double weight = (double)rows->a_weight[k] * (double)rows->b_weight[k];
        *t += product;
        magnitudes += fabs(product);
        if (weight < 0x1p-7 * top)
            losses += fmin(fabs(product), CUT * top);
    }
    double carried = *e + losses + (first ? 0 : fmin(*p, CUT * largest));
    *e = carried + CUT * (fabs(*t) + carried);
    *p += magnitudes;
}

static approx block(const operand_rows *rows, int64_t from, int64_t to)
{
    double t = 0;
    double p = 0;
    double e = 0;
    for (int64_t k = from; k < to; k += 32)
        instruction(rows, k, k + 32 < to ? k + 32 : to, k == from, &t, &p, &e);
    return (approx){t, e};
}

static approx times(approx x, double factor)
{
    approx result = {x.value * factor, fabs(factor) * x.error};
    result.error += U * (fabs(result.value) + result.error) + QUANTUM;
    return result;
}

static approx plus(approx x, double value, double error)
{
    approx result = {x.value + value, x.error + error};
    result.error += U * (fabs(result.value) + result.error) + QUANTUM;
    return result;
}

/* Where an output's scales lie. */
typedef struct place {
    int64_t row, column; /* owned row, column */
    int64_t group;
    int64_t a_base, b_base; /* of the group's scales */
    int64_t a_row;          /* row that A scales know */
} place;

static double a_scale_at(const reference *from, const place *at, int64_t kb)
{
    const instance *of = from->of;
    return (double)from
        ->a_scale[at->a_base + scale_position(&of->problem.a_scale, &of->a_extent, at->a_row, kb)];
}

static double b_scale_at(const reference *from, const place *at, int64_t mn, int64_t kb)
{
    const instance *of = from->of;
    return (double)
        from->b_scale[at->b_base + scale_position(&of->problem.b_scale, &of->b_extent, mn, kb)];
}

static bool varies_along_k(halfbyte_scale_mode mode)
{
    return mode >= HALFBYTE_SCALE_1X128;
}

/* acc + partial * scale for the block with number `number` that begins at k = start. */
static approx promote(const reference *from, const place *at, approx acc, approx partial,
                      int64_t number, int64_t start)
{
    const halfbyte_problem *problem = &from->of->problem;
    bool by_a = varies_along_k(problem->a_scale.mode);
    bool by_b = varies_along_k(problem->b_scale.mode);
    double scale = problem->family == HALFBYTE_FAMILY_W4A8 ? 512 : 1;
    double factors = 0;
    if (by_a) {
        double value = a_scale_at(from, at, start / 128);
        scale *= value;
        factors += fabs(value);
    }
    if (by_b) {
        bool blocks = problem->b_scale.mode == HALFBYTE_SCALE_128X128;
        bool whole =
            problem->b_scale.mode == HALFBYTE_SCALE_K_GROUP && problem->weight_group_size == 0;
        double value =
            b_scale_at(from, at, blocks ? at->column / 128 : at->column, whole ? 0 : number);
        scale *= value;
        factors += fabs(value);
    }
    double scale_error = by_a && by_b ? U * fabs(scale) + 512 * QUANTUM * (1 + factors) : 0;
    approx result = {acc.value + partial.value * scale, acc.error};
    result.error += fabs(scale) * partial.error;
    result.error += (fabs(partial.value) + partial.error) * scale_error;
    result.error += U * (fabs(result.value) + result.error) + QUANTUM;
    return result;
}

/* All blocks, in k_splits ranges. */
static approx accumulate(const reference *from, const place *at)
{
    const instance *of = from->of;
    const halfbyte_problem *problem = &of->problem;
    int64_t k = of->k;
    operand_rows rows = {from->a + at->row * k, from->b + (at->group * of->n + at->column) * k,
                         from->a_weight + at->row * k,
                         from->b_weight + (at->group * of->n + at->column) * k};
    int64_t span = problem->weight_group_size > 0 ? problem->weight_group_size : 128;
    int64_t offset = problem->group_k_offset;
    int64_t blocks = (k + offset + span - 1) / span;
    int64_t splits = problem->k_splits > 1 ? problem->k_splits : 1;
    int64_t next = 0;
    approx total = {0, 0};
    for (int64_t split = 0; split < splits; ++split) {
        int64_t count = blocks / splits + (split < blocks % splits);
        approx acc = {0, 0};
        for (int64_t number = next; number < next + count; ++number) {
            int64_t start = number * span - offset > 0 ? number * span - offset : 0;
            int64_t end = (number + 1) * span - offset < k ? (number + 1) * span - offset : k;
            acc = promote(from, at, acc, block(&rows, start, end), number, start);
        }
        next += count;
        total = split == 0 ? acc : plus(total, acc.value, acc.error);
    }
    return total;
}

static approx finish(const reference *from, const place *at, approx x)
{
    const instance *of = from->of;
    const halfbyte_problem *problem = &of->problem;
    int64_t channel = at->group * of->n + at->column;
    if (problem->a_scale.mode == HALFBYTE_SCALE_TENSOR ||
        problem->a_scale.mode == HALFBYTE_SCALE_OUTER)
        x = times(x, problem->a_scale.mode == HALFBYTE_SCALE_TENSOR ? (double)from->a_scale[0]
                                                                    : a_scale_at(from, at, 0));
    if (problem->b_scale.mode == HALFBYTE_SCALE_TENSOR)
        x = times(x, (double)from->b_scale[at->b_base]);
    if (problem->b_scale.mode == HALFBYTE_SCALE_OUTER)
        x = times(x, b_scale_at(from, at, at->column, 0));
    if (problem->channel_scale_type != HALFBYTE_TYPE_NONE)
        x = times(x, (double)of->channel_scale[channel]);
    if (problem->alpha_mode != HALFBYTE_ALPHA_NONE)
        x = times(x, (double)of->operands.alpha);
    if (problem->c_type != HALFBYTE_TYPE_NONE && of->operands.beta != 0) {
        double c = (double)widen(of->c, problem->c_type, of->owned[at->row] * of->n + at->column);
        x = plus(x, (double)of->operands.beta * c, 0);
    }
    if (problem->bias_type != HALFBYTE_TYPE_NONE)
        x = plus(x, (double)widen(of->bias, problem->bias_type, channel), 0);
    return x;
}

void reference_element(const reference *from, int64_t row, int64_t column, double *value,
                       double *bound)
{
    const instance *of = from->of;
    bool masked = of->problem.grouping == HALFBYTE_GROUPING_MASKED;
    place at = {.row = row, .column = column, .group = of->owner[row]};
    at.a_row = of->owned[row] - (masked ? at.group * of->m : 0);
    if (masked && of->problem.a_scale.mode != HALFBYTE_SCALE_TENSOR)
        at.a_base = at.group * of->a_extent.mn * of->a_extent.kb;
    at.b_base = at.group * of->b_extent.mn * of->b_extent.kb;
    approx x = finish(from, &at, accumulate(from, &at));
    double magnitude = fabs(x.value) + x.error;
    if (of->problem.d_type == HALFBYTE_TYPE_BF16)
        x.error += 0x1p-8 * magnitude + 0x1p-133;
    else if (of->problem.d_type == HALFBYTE_TYPE_F16)
        x.error += 0x1p-11 * magnitude + 0x1p-24;
    *value = x.value;
    /* fp64 rounds too, 2^29 times more finely than any step above. */
    *bound = x.error * (1 + 0x1p-20);
}
