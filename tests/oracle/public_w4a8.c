/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/public_w4a8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct public_problem public_problem_at(int index)
{
    static const int64_t tokens[] = {2, 4, 8, 16, 32};
    static const int64_t k[] = {256, 512, 1024, 2048, 4096, 7168};
    static const int64_t n[] = {256, 512, 1024, 2048, 7168};
    static const int64_t experts[] = {2, 4, 6, 8};
    _Static_assert(LENGTH(tokens) * LENGTH(k) * LENGTH(n) * LENGTH(experts) == PUBLIC_SEVERAL,
                   "600 problems of several experts");
    struct public_problem p = {1, 1, 1024, 512, 0x5f3759df + (uint64_t)index};
    if (index >= PUBLIC_SEVERAL) {
        p.tokens <<= index - PUBLIC_SEVERAL; /* 1, 2, 4, 8, 16 */
        return p;
    }
    size_t rest = (size_t)index;
    p.experts = experts[rest % LENGTH(experts)];
    rest /= LENGTH(experts);
    p.n = n[rest % LENGTH(n)];
    rest /= LENGTH(n);
    p.k = k[rest % LENGTH(k)];
    p.tokens = tokens[rest / LENGTH(k)];
    return p;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A normal number, mean 0 and variance 1, by Box and Muller. */
static double random_normal(struct random *r)
{
    double u = ((double)(random_bits(r) >> 11) + 0.5) * 0x1p-53;
    double angle = 6.283185307179586 * ((double)(random_bits(r) >> 11) * 0x1p-53);
    return sqrt(-2 * log(u)) * cos(angle);
}

static void convert(void *to, halfbyte_type to_type, const void *from, halfbyte_type from_type,
                    int64_t count)
{
    if (halfbyte_convert(to, to_type, from, from_type, count) != HALFBYTE_SUCCESS)
        abort();
}

/* bf16 codes of `count` numbers, which are rounded to them. */
static void round_to_bf16(float *values, uint16_t *codes, int64_t count)
{
    convert(codes, HALFBYTE_TYPE_BF16, values, HALFBYTE_TYPE_F32, count);
    convert(values, HALFBYTE_TYPE_F32, codes, HALFBYTE_TYPE_BF16, count);
}

/* Normal bf16 numbers; free() them. */
static float *normals(struct random *r, uint16_t *codes, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    if (!values)
        abort();
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)random_normal(r);
    round_to_bf16(values, codes, count);
    return values;
}

/* e4m3 with one scale, which is made from the largest of all. */
static void make_a(struct gemm_case *c, struct random *r)
{
    int64_t count = c->operands.m * c->problem.k;
    uint8_t *codes = case_memory(c, (size_t)count, 0);
    float *scale = case_memory(c, sizeof *scale, 0), largest = 1e-4f;
    uint16_t *rounded = malloc((size_t)count * sizeof *rounded);
    if (!rounded)
        abort();
    float *values = normals(r, rounded, count);
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(values[i]));
    *scale = largest / 448;
    for (int64_t i = 0; i < count; i++)
        values[i] /= *scale;
    convert(codes, HALFBYTE_TYPE_E4M3, values, HALFBYTE_TYPE_F32, count);
    free(values);
    free(rounded);
    c->operands.a = (halfbyte_matrix_in){codes, c->problem.k, 0};
    c->operands.a_scale = (halfbyte_scale_in){scale, 0, 0, 0};
}

/* Any byte is two weights. */
static void make_b(struct gemm_case *c, struct random *r)
{
    const halfbyte_problem *p = &c->problem;
    size_t bytes = (size_t)(p->groups * p->n * p->k / 2);
    uint8_t *data = case_memory(c, bytes, 0);
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t sixteen = random_bits(r);
        memcpy(data + i, &sixteen, 8);
    }
    c->operands.b = (halfbyte_matrix_in){data, p->k, p->n * p->k};
}

static void make_b_scale(struct gemm_case *c, struct random *r)
{
    const halfbyte_problem *p = &c->problem;
    int64_t of_group = p->n * (p->k / 128), count = p->groups * of_group;
    uint16_t *scale = case_memory(c, (size_t)count * sizeof *scale, 0);
    float *values = normals(r, scale, count);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)values[i] * 0.005);
    round_to_bf16(values, scale, count);
    free(values);
    bool interleaved = p->b_scale.layout == HALFBYTE_SCALE_INTERLEAVED4;
    c->operands.b_scale = (halfbyte_scale_in){scale, 0, (interleaved ? 4 : 1) * p->n, of_group};
}

static void make_groups(struct gemm_case *c, struct random *r)
{
    int64_t groups = c->problem.groups;
    int32_t *starts = case_memory(c, (size_t)groups * sizeof *starts, 0);
    int32_t *sizes = case_memory(c, (size_t)groups * 3 * sizeof *sizes, 0);
    for (int64_t g = 0; g < groups; g++) {
        sizes[3 * g] = (int32_t)c->problem.n;
        sizes[3 * g + 1] = 0;
        sizes[3 * g + 2] = (int32_t)c->problem.k;
    }
    for (int64_t token = 0; token < c->operands.m; token++)
        sizes[3 * random_below(r, groups) + 1]++;
    for (int64_t g = 0, at = 0; g < groups; at += sizes[3 * g++ + 1])
        starts[g] = (int32_t)at;
    c->operands.groups.starts = starts;
    c->operands.groups.counts = sizes + 1;
    c->operands.groups.counts_stride = 3;
}

static void make_d(struct gemm_case *c)
{
    size_t guard = 256; /* D is aligned as an allocation is */
    c->d_at = guard;
    c->d_bytes = 2 * guard + (size_t)(c->operands.m * c->problem.n) * 2;
    c->d_base = case_memory(c, c->d_bytes, 0);
    c->d_before = case_memory(c, c->d_bytes, 0);
    case_poison(c->d_base, c->d_bytes);
    memcpy(c->d_before, c->d_base, c->d_bytes);
    c->operands.d = (halfbyte_matrix_out){c->d_base + c->d_at, c->problem.n, 0};
}

/* ---- cases ----------------------------------------------------------------------------------- */

void public_case_make(struct gemm_case *c, const struct public_problem *problem)
{
    struct random r = {problem->seed};
    memset(c, 0, sizeof *c);
    c->kind = (struct case_kind){
        HALFBYTE_FAMILY_W4A8,
        FORM_STARTS_COUNTS,
        {HALFBYTE_SCALE_TENSOR, HALFBYTE_TYPE_NONE, HALFBYTE_SCALE_MN_MAJOR},
        {HALFBYTE_SCALE_K_GROUP, HALFBYTE_TYPE_BF16,
         problem->k % 512 == 0 ? HALFBYTE_SCALE_INTERLEAVED4 : HALFBYTE_SCALE_MN_MAJOR},
        128};
    c->problem = halfbyte_problem_init();
    c->problem.family = HALFBYTE_FAMILY_W4A8;
    c->problem.grouping = HALFBYTE_GROUPING_RANGES;
    c->problem.groups = problem->experts;
    c->problem.m_max = problem->tokens;
    c->problem.n = problem->n;
    c->problem.k = problem->k;
    c->problem.a_scale = c->kind.a_scale;
    c->problem.b_scale = c->kind.b_scale;
    c->problem.weight_group_size = c->kind.weight_group_size;
    c->problem.d_type = HALFBYTE_TYPE_BF16;
    c->operands = halfbyte_operands_init();
    c->operands.m = problem->tokens;
    make_a(c, &r);
    make_b(c, &r);
    make_b_scale(c, &r);
    make_groups(c, &r);
    make_d(c);
    c->before = c->operands;
}

halfbyte_int4_desc public_weights(const struct gemm_case *c)
{
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    desc.n = c->problem.n;
    desc.k = c->problem.k;
    desc.groups = c->problem.groups;
    desc.ld = c->operands.b.ld;
    desc.group_stride = c->operands.b.group_stride;
    desc.weight_group_size = c->problem.weight_group_size;
    desc.scale_type = c->problem.b_scale.type;
    return desc;
}
