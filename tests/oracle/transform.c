/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/transform.h"
#include "oracle/operand.h"

#include <string.h>

static size_t element_bytes(halfbyte_type type)
{
    return type == HALFBYTE_TYPE_NONE ? 4 : (size_t)halfbyte_type_bits(type) / 8;
}

static void fill_random(struct random *r, uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)random_bits(r);
}

/* A tight D of `rows` rows for v. */
static void new_d(struct gemm_case *c, struct gemm_case *v, int64_t rows)
{
    size_t element = element_bytes(v->problem.d_type);
    int64_t matrices = case_matrices(&v->problem);
    v->d_bytes = (size_t)(matrices * rows * v->problem.n) * element;
    v->d_base = case_memory(c, v->d_bytes, 0);
    v->d_at = 0;
    case_poison(v->d_base, v->d_bytes);
    v->operands.d = (halfbyte_matrix_out){v->d_base, v->problem.n, rows * v->problem.n};
    v->operands.m = rows;
    v->problem.m_max = rows;
}

void transform_again(struct gemm_case *c, struct gemm_case *v)
{
    *v = *c;
    v->operands = c->before;
    new_d(c, v, c->operands.m);
    v->before = v->operands;
}

bool transform_same_row(const struct gemm_case *v, int64_t i, const struct gemm_case *c, int64_t j)
{
    size_t element = element_bytes(c->problem.d_type);
    return memcmp((const uint8_t *)v->operands.d.data + (size_t)(i * v->operands.d.ld) * element,
                  (const uint8_t *)c->operands.d.data + (size_t)(j * c->operands.d.ld) * element,
                  (size_t)c->problem.n * element) == 0;
}

/* ---- scale tensors --------------------------------------------------------------------------- */

void transform_b_scale_extents(const halfbyte_problem *p, int64_t *mn, int64_t *kb)
{
    bool one_k = p->b_scale.mode == HALFBYTE_SCALE_OUTER || p->weight_group_size == 0;
    *mn = p->b_scale.mode == HALFBYTE_SCALE_128X128 ? (p->n + 127) / 128 : p->n;
    *kb = p->b_scale.mode < HALFBYTE_SCALE_K_GROUP && p->b_scale.mode != HALFBYTE_SCALE_OUTER
              ? (p->k + 127) / 128
          : one_k ? 1
                  : oracle_blocks(p).count;
}

static int64_t scale_offset(const halfbyte_scale_spec *spec, const halfbyte_scale_in *s, int64_t mn,
                            int64_t kb)
{
    if (spec->mode == HALFBYTE_SCALE_OUTER)
        return mn;
    switch (spec->layout) {
    case HALFBYTE_SCALE_K_MAJOR: return mn * s->stride_mn + kb;
    case HALFBYTE_SCALE_INTERLEAVED4: return kb / 4 * s->stride_k + 4 * mn + kb % 4;
    default: return mn + kb * s->stride_k;
    }
}

/* Tight strides for `matrices` tensors of mn x kb, and random bytes of that size. */
static halfbyte_scale_in new_scale(struct gemm_case *c, const halfbyte_scale_spec *spec,
                                   int64_t matrices, int64_t mn, int64_t kb, struct random *r)
{
    halfbyte_scale_in s = {NULL, 1, 1, mn * kb};
    if (spec->mode == HALFBYTE_SCALE_OUTER || spec->layout == HALFBYTE_SCALE_MN_MAJOR)
        s.stride_k = mn;
    else if (spec->layout == HALFBYTE_SCALE_K_MAJOR)
        s.stride_mn = kb;
    else
        s.stride_k = 4 * mn;
    size_t bytes = (size_t)(matrices * mn * kb) * element_bytes(spec->type);
    uint8_t *data = case_memory(c, bytes, 0);
    fill_random(r, data, bytes);
    s.data = data;
    return s;
}

static void copy_scale(const halfbyte_scale_spec *spec, const halfbyte_scale_in *to, int64_t to_at,
                       const halfbyte_scale_in *from, int64_t from_at)
{
    size_t element = element_bytes(spec->type);
    /* `to` is memory that new_scale() took. */
    memcpy((uint8_t *)(uintptr_t)to->data + (size_t)to_at * element,
           (const uint8_t *)from->data + (size_t)from_at * element, element);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const void *advance(const void *data, halfbyte_type type, int64_t elements)
{
    return data ? (const uint8_t *)data + (size_t)elements * element_bytes(type) : NULL;
}

void transform_take_rows(struct gemm_case *c, struct gemm_case *v, int64_t first, int64_t count)
{
    transform_again(c, v);
    new_d(c, v, count);
    halfbyte_operands *o = &v->operands;
    o->a.data = advance(o->a.data, HALFBYTE_TYPE_E4M3, first * o->a.ld);
    o->c.data = advance(o->c.data, v->problem.c_type, first * o->c.ld);
    if (v->problem.a_scale.mode == HALFBYTE_SCALE_OUTER ||
        v->problem.a_scale.mode == HALFBYTE_SCALE_1X128)
        o->a_scale.data = advance(o->a_scale.data, HALFBYTE_TYPE_F32,
                                  scale_offset(&v->problem.a_scale, &o->a_scale, first, 0));
    v->before = *o;
}

void transform_gather_rows(struct gemm_case *c, struct gemm_case *v, const int64_t *map,
                           int64_t rows, struct random *r)
{
    transform_again(c, v);
    new_d(c, v, rows);
    const halfbyte_problem *p = &c->problem;
    const halfbyte_operands *old = &c->before;
    halfbyte_operands *o = &v->operands;
    bool row_scale =
        p->a_scale.mode == HALFBYTE_SCALE_OUTER || p->a_scale.mode == HALFBYTE_SCALE_1X128;
    int64_t kb = p->a_scale.mode == HALFBYTE_SCALE_1X128 ? (p->k + 127) / 128 : 1;
    size_t c_row = (size_t)p->n * element_bytes(p->c_type);

    uint8_t *a = case_memory(c, (size_t)(rows * p->k), 0);
    uint8_t *addend = case_memory(c, (size_t)rows * c_row, 0);
    fill_random(r, a, (size_t)(rows * p->k));
    fill_random(r, addend, (size_t)rows * c_row);
    if (row_scale)
        o->a_scale = new_scale(c, &p->a_scale, 1, rows, kb, r);
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = map[i];
        if (from < 0)
            continue;
        memcpy(a + i * p->k, (const uint8_t *)old->a.data + from * old->a.ld, (size_t)p->k);
        if (old->c.data)
            memcpy(addend + (size_t)i * c_row, advance(old->c.data, p->c_type, from * old->c.ld),
                   c_row);
        for (int64_t b = 0; row_scale && b < kb; b++)
            copy_scale(&p->a_scale, &o->a_scale, scale_offset(&p->a_scale, &o->a_scale, i, b),
                       &old->a_scale, scale_offset(&p->a_scale, &old->a_scale, from, b));
    }
    o->a = (halfbyte_matrix_in){a, p->k, 0};
    if (old->c.data)
        o->c = (halfbyte_matrix_in){addend, p->n, 0};
    v->before = *o;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void regroup_b(struct gemm_case *c, struct gemm_case *v, const int64_t *map, int64_t groups,
                      struct random *r)
{
    const halfbyte_problem *p = &c->problem;
    const halfbyte_matrix_in *old = &c->before.b;
    bool packed = p->b_layout == HALFBYTE_B_PACKED, int4 = p->family == HALFBYTE_FAMILY_W4A8;
    int64_t ld = int4 ? (p->k + 1) / 2 * 2 : p->k, bytes_of_row = int4 ? ld / 2 : ld;
    int64_t one = p->n * bytes_of_row;
    if (packed)
        one = (p->n + 63) / 64 * ((p->k + p->group_k_offset + 127) / 128) * 4096;
    uint8_t *data = case_memory(c, (size_t)(groups * one), 0);
    fill_random(r, data, (size_t)(groups * one));
    for (int64_t g = 0; g < groups; g++) {
        if (map[g] < 0)
            continue;
        const uint8_t *from = old->data;
        if (packed) {
            memcpy(data + g * one, from + map[g] * one, (size_t)one);
            continue;
        }
        for (int64_t row = 0; row < p->n; row++) {
            int64_t at = map[g] * old->group_stride + row * old->ld;
            int64_t bytes = int4 ? (p->k + 1) / 2 : p->k;
            memcpy(data + g * one + row * bytes_of_row, from + (int4 ? at / 2 : at), (size_t)bytes);
        }
    }
    v->operands.b = (halfbyte_matrix_in){data, ld, p->n * ld};
    v->header.groups = groups;
    if (packed)
        v->operands.b_header = &v->header;
}

static void regroup_scale(struct gemm_case *c, struct gemm_case *v, const int64_t *map,
                          int64_t groups, struct random *r)
{
    const halfbyte_problem *p = &c->problem;
    const halfbyte_scale_in *old = &c->before.b_scale;
    int64_t mn, kb;
    transform_b_scale_extents(p, &mn, &kb);
    v->operands.b_scale = new_scale(c, &p->b_scale, groups, mn, kb, r);
    for (int64_t i = 0; i < groups * mn * kb; i++) {
        int64_t g = i / (mn * kb), row = i / kb % mn, b = i % kb;
        if (map[g] < 0)
            continue;
        copy_scale(&p->b_scale, &v->operands.b_scale,
                   g * mn * kb + scale_offset(&p->b_scale, &v->operands.b_scale, row, b), old,
                   map[g] * old->group_stride + scale_offset(&p->b_scale, old, row, b));
    }
}

/* A tensor's scale a group, and vectors: `count` values a group. */
static const void *regroup_values(struct gemm_case *c, const void *old, int64_t old_stride,
                                  halfbyte_type type, int64_t count, const int64_t *map,
                                  int64_t groups, struct random *r)
{
    size_t bytes = (size_t)count * element_bytes(type);
    uint8_t *data = case_memory(c, (size_t)groups * bytes, 0);
    fill_random(r, data, (size_t)groups * bytes);
    for (int64_t g = 0; g < groups; g++) {
        if (map[g] >= 0)
            memcpy(data + (size_t)g * bytes, advance(old, type, map[g] * old_stride), bytes);
    }
    return data;
}

void transform_regroup(struct gemm_case *c, struct gemm_case *v, const int64_t *map, int64_t groups,
                       struct random *r)
{
    transform_again(c, v);
    const halfbyte_problem *p = &c->problem;
    const halfbyte_operands *old = &c->before;
    halfbyte_operands *o = &v->operands;
    v->problem.groups = groups;
    regroup_b(c, v, map, groups, r);
    if (p->b_scale.mode >= HALFBYTE_SCALE_OUTER)
        regroup_scale(c, v, map, groups, r);
    if (p->b_scale.mode == HALFBYTE_SCALE_TENSOR) {
        o->b_scale.data = regroup_values(c, old->b_scale.data, old->b_scale.group_stride,
                                         p->b_scale.type, 1, map, groups, r);
        o->b_scale.group_stride = 1;
    }
    if (p->a_scale.mode == HALFBYTE_SCALE_TENSOR) {
        o->a_scale.data = regroup_values(c, old->a_scale.data, old->a_scale.group_stride,
                                         p->a_scale.type, 1, map, groups, r);
        o->a_scale.group_stride = 1;
    }
    if (p->channel_scale_type != HALFBYTE_TYPE_NONE) {
        o->channel_scale.data =
            regroup_values(c, old->channel_scale.data, old->channel_scale.group_stride,
                           p->channel_scale_type, p->n, map, groups, r);
        o->channel_scale.group_stride = p->n;
    }
    if (p->bias_type != HALFBYTE_TYPE_NONE) {
        o->bias.data = regroup_values(c, old->bias.data, old->bias.group_stride, p->bias_type, p->n,
                                      map, groups, r);
        o->bias.group_stride = p->n;
    }
    v->before = *o;
}

/* ---- k --------------------------------------------------------------------------------------- */

void transform_widen_k(struct gemm_case *c, struct gemm_case *v)
{
    transform_again(c, v);
    const halfbyte_problem *p = &c->problem;
    const halfbyte_operands *old = &c->before;
    struct oracle_blocks blocks = oracle_blocks(p);
    int64_t k = blocks.count * blocks.length - blocks.offset, m = c->operands.m;
    bool int4 = p->family == HALFBYTE_FAMILY_W4A8;
    uint8_t *a = case_memory(c, (size_t)(m * k), 0), *b = case_memory(c, (size_t)(p->n * k), 0);
    memset(a, 0, (size_t)(m * k));
    memset(b, 0, (size_t)(p->n * k));
    for (int64_t row = 0; row < m; row++)
        memcpy(a + row * k, (const uint8_t *)old->a.data + row * old->a.ld, (size_t)p->k);
    for (int64_t i = 0; i < p->n * p->k; i++) {
        int64_t row = i / p->k, at = row * k + i % p->k;
        if (int4)
            b[at / 2] |= (uint8_t)((oracle_int4(p, old, 0, row, i % p->k) & 15) << (at % 2 * 4));
        else
            b[at] = oracle_b(p, old, 0, row, i % p->k);
    }
    v->problem.k = k;
    v->operands.a = (halfbyte_matrix_in){a, k, 0};
    v->operands.b = (halfbyte_matrix_in){b, k, 0};
    v->before = v->operands;
}

void transform_take_blocks(struct gemm_case *c, struct gemm_case *v, int64_t first, int64_t end)
{
    transform_again(c, v);
    const halfbyte_problem *p = &c->problem;
    halfbyte_operands *o = &v->operands;
    int64_t start, stop, unused;
    oracle_block_range(p, first, &start, &unused);
    oracle_block_range(p, end - 1, &unused, &stop);
    bool int4 = p->family == HALFBYTE_FAMILY_W4A8;
    v->problem.k = stop - start;
    v->problem.k_splits = 1;
    if (first > 0)
        v->problem.group_k_offset = 0;
    o->a.data = advance(o->a.data, HALFBYTE_TYPE_E4M3, start);
    o->b.data = advance(o->b.data, HALFBYTE_TYPE_E4M3, int4 ? start / 2 : start);
    if (p->a_scale.mode == HALFBYTE_SCALE_1X128)
        o->a_scale.data = advance(o->a_scale.data, HALFBYTE_TYPE_F32,
                                  scale_offset(&p->a_scale, &o->a_scale, 0, first));
    bool along_k = p->b_scale.mode == HALFBYTE_SCALE_1X128 ||
                   p->b_scale.mode == HALFBYTE_SCALE_128X128 || p->weight_group_size != 0;
    if (along_k)
        o->b_scale.data = advance(o->b_scale.data, p->b_scale.type,
                                  scale_offset(&p->b_scale, &o->b_scale, 0, first));
    v->before = *o;
}
