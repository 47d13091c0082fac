/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row's bits do not depend on its company: 4,096 rows in one product, the same rows alone, a few
 * together, in groups whose weights are equal, in planes, on any number of SMs, by any kernel.
 */
#include <stdio.h>
#include <string.h>

#include "api/gemm_select.h"
#include "api/plan.h"
#include "gpu/gemm_run.h"
#include "gpu/gpu_case.h"
#include "gpu/tests.h"

enum { ROWS = 4096, GROUPS = 3, ROWS_A_PLANE = ROWS / GROUPS };

/* One kind of problem; D is dense here, in memory of its own. */
typedef struct company {
    session *s;
    oracle_kernels kernels;
    halfbyte_device *device;
    struct gemm_case c;
    gpu_case on_gpu;
    halfbyte_packed_header one; /* of group 0's weights alone, which stand first */
    cuda_pointer all;           /* D of the product of all rows */
    cuda_pointer output;        /* D of the run that is compared with it */
    size_t element;             /* bytes */
    int runs;
} company;

/* ---- groups of equal weights ----------------------------------------------------------------- */

/* Group 0's rows of an operand to the other groups; the case's memory is the test's. */
static void groups_equalise(const void *data, int64_t bits, int64_t rows, int64_t row_stride,
                            int64_t columns, int64_t group_stride)
{
    uint8_t *base = (uint8_t *)(uintptr_t)data;
    for (int64_t group = 1; data != NULL && group_stride != 0 && group < GROUPS; group++) {
        for (int64_t row = 0; row < rows; row++) {
            const int64_t at = row * row_stride;
            memcpy(base + (group * group_stride + at) * bits / 8, base + at * bits / 8,
                   (size_t)((columns * bits + 7) / 8));
        }
    }
}

static void scale_equalise(const halfbyte_scale_spec *spec, const halfbyte_scale_in *scale,
                           int64_t mn, int64_t kb)
{
    const int64_t bits =
        halfbyte_type_bits(spec->type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : spec->type);
    if (spec->mode == HALFBYTE_SCALE_TENSOR || spec->mode == HALFBYTE_SCALE_OUTER) {
        const int64_t columns = spec->mode == HALFBYTE_SCALE_OUTER ? mn : 1;
        groups_equalise(scale->data, bits, 1, 0, columns, scale->group_stride);
    } else if (spec->layout == HALFBYTE_SCALE_K_MAJOR) {
        groups_equalise(scale->data, bits, mn, scale->stride_mn, kb, scale->group_stride);
    } else if (spec->layout == HALFBYTE_SCALE_MN_MAJOR) {
        groups_equalise(scale->data, bits, kb, scale->stride_k, mn, scale->group_stride);
    } else {
        groups_equalise(scale->data, bits, kb / 4, scale->stride_k, 4 * mn, scale->group_stride);
    }
}

static void weights_equalise(struct gemm_case *c)
{
    const halfbyte_problem *p = &c->problem;
    const halfbyte_operands *o = &c->operands;
    int64_t kb = (p->k + 127) / 128;
    int64_t mn = p->n;
    if (p->b_layout == HALFBYTE_B_PACKED) {
        const int64_t bytes = (p->n + 63) / 64 * ((p->k + p->group_k_offset + 127) / 128) * 4096;
        groups_equalise(o->b.data, 8, 1, 0, bytes, bytes);
    } else {
        groups_equalise(o->b.data, p->family == HALFBYTE_FAMILY_W4A8 ? 4 : 8, p->n, o->b.ld, p->k,
                        o->b.group_stride);
    }
    if (p->b_scale.mode == HALFBYTE_SCALE_128X128) {
        mn = (p->n + 127) / 128;
    }
    if (p->b_scale.mode == HALFBYTE_SCALE_K_GROUP) {
        const int64_t size = p->weight_group_size;
        kb = size == 0 ? 1 : (p->k + p->group_k_offset + size - 1) / size;
    }
    scale_equalise(&p->b_scale, &o->b_scale, mn, kb);
    if (p->a_scale.mode == HALFBYTE_SCALE_TENSOR) {
        scale_equalise(&p->a_scale, &o->a_scale, 1, 1);
    }
    groups_equalise(o->channel_scale.data, 32, 1, 0, p->n, o->channel_scale.group_stride);
    groups_equalise(o->bias.data, halfbyte_type_bits(p->bias_type), 1, 0, p->n,
                    o->bias.group_stride);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static const void *moved_on(const void *data, int64_t bytes)
{
    return data == NULL ? NULL : (const char *)data + bytes;
}

/* Rows [first, first + rows) as a product of its own, to `d`. */
static void rows_select(const company *co, int64_t first, int64_t rows, cuda_pointer d,
                        halfbyte_problem *p, halfbyte_operands *o)
{
    *p = co->c.problem;
    *o = co->on_gpu.operands;
    p->grouping = HALFBYTE_GROUPING_DENSE;
    p->groups = 1;
    o->b_header = &co->one;
    p->flags = 0;
    p->m_max = rows;
    o->m = rows;
    o->expected_m = 0;
    memset(&o->groups, 0, sizeof o->groups);
    o->a.data = moved_on(o->a.data, first * o->a.ld);
    if (p->c_type != HALFBYTE_TYPE_NONE) {
        o->c.data = moved_on(o->c.data, first * o->c.ld * halfbyte_type_bits(p->c_type) / 8);
    }
    if (p->a_scale.mode == HALFBYTE_SCALE_OUTER || p->a_scale.mode == HALFBYTE_SCALE_1X128) {
        const bool k_major = p->a_scale.layout == HALFBYTE_SCALE_K_MAJOR;
        o->a_scale.data =
            moved_on(o->a_scale.data, 4 * first * (k_major ? o->a_scale.stride_mn : 1));
    }
    o->d = (halfbyte_matrix_out){session_pointer(d), p->n, 0};
}

static void product_run(company *co, const halfbyte_problem *p, const halfbyte_operands *o)
{
    session *s = co->s;
    gpu_case as_case;
    halfbyte_plan *plan = NULL;
    as_case.operands = *o;
    if (halfbyte_plan_create(&plan, p, co->device) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    gpu_case_run(s, plan, &as_case);
    halfbyte_plan_destroy(plan);
    co->runs++;
}

/* Runs into the output and compares `rows` rows with those of all rows from `first` on. */
static void product_compare(company *co, const halfbyte_problem *p, const halfbyte_operands *o,
                            int64_t first, int64_t rows, const char *what)
{
    session *s = co->s;
    const size_t row_bytes = (size_t)p->n * co->element;
    const size_t used = s->arena_used;
    char text[GPU_CASE_TEXT];
    uint64_t at = 0;
    session_check(s, s->set_bytes(co->output, 0x3c, ROWS * row_bytes), "cuMemsetD8");
    product_run(co, p, o);
    const uint64_t different =
        oracle_compare(s, &co->kernels, co->output, co->all + (uint64_t)first * row_bytes,
                       (uint64_t)rows * row_bytes, &at);
    s->arena_used = used;
    s->compared += rows * p->n;
    s->different += (int64_t)different;
    if (different != 0) {
        gpu_case_text(&co->c, what, text);
        printf("  %llu bytes differ, the first in row %lld: %s\n", (unsigned long long)different,
               (long long)(at / row_bytes), text);
    }
}

/* ---- companies ------------------------------------------------------------------------------- */

static void rows_alone(company *co, struct random *r)
{
    halfbyte_problem p;
    halfbyte_operands o;
    for (int i = 0; i < 6; i++) {
        const int64_t rows = i < 3 ? 1 : random_between(r, 2, 200);
        const int64_t first = i == 0 ? 0 : i == 1 ? ROWS - 1 : random_below(r, ROWS - rows + 1);
        rows_select(co, first, rows, co->output, &p, &o);
        product_compare(co, &p, &o, first, rows, rows == 1 ? "a row alone" : "a few rows");
    }
}

/* All rows in three groups, whose sizes put each row into each of them in turn. */
static void rows_grouped(company *co, struct random *r)
{
    static const int32_t caps[] = {0, 1, 7, 132};
    const int64_t few = random_between(r, 1, 90);
    const int32_t sizes[4][GROUPS] = {{ROWS, 0, 0},
                                      {(int32_t)few, ROWS - 2 * (int32_t)few, (int32_t)few},
                                      {0, (int32_t)few, ROWS - (int32_t)few},
                                      {1, 1, ROWS - 2}};
    for (int i = 0; i < 4; i++) {
        halfbyte_problem p;
        halfbyte_operands o;
        const size_t used = co->s->arena_used;
        const cuda_pointer counts = session_upload(co->s, sizes[i], sizeof sizes[i]);
        rows_select(co, 0, ROWS, co->output, &p, &o);
        p.grouping = HALFBYTE_GROUPING_RANGES;
        p.groups = GROUPS;
        o.b_header = &co->c.header;
        p.index_type = HALFBYTE_INDEX_INT32;
        p.num_sms = caps[i];
        o.groups.counts = session_pointer(counts);
        product_compare(co, &p, &o, 0, ROWS, "rows in groups");
        co->s->arena_used = used;
    }
}

/* The rows as three planes side by side in memory. */
static void rows_masked(company *co)
{
    halfbyte_problem p;
    halfbyte_operands o;
    rows_select(co, 0, ROWS_A_PLANE, co->output, &p, &o);
    p.grouping = HALFBYTE_GROUPING_MASKED;
    p.groups = GROUPS;
    o.b_header = &co->c.header;
    o.a.group_stride = ROWS_A_PLANE * o.a.ld;
    o.c.group_stride = ROWS_A_PLANE * o.c.ld;
    o.d.group_stride = ROWS_A_PLANE * p.n;
    if (p.a_scale.mode != HALFBYTE_SCALE_TENSOR) {
        const bool k_major = p.a_scale.layout == HALFBYTE_SCALE_K_MAJOR;
        o.a_scale.group_stride = ROWS_A_PLANE * (k_major ? o.a_scale.stride_mn : 1);
    }
    product_compare(co, &p, &o, 0, (int64_t)GROUPS * ROWS_A_PLANE, "rows in planes");
}

static void rows_capped(company *co)
{
    static const int32_t caps[] = {1, 3, 64, 131};
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        halfbyte_problem p;
        halfbyte_operands o;
        rows_select(co, 0, ROWS, co->output, &p, &o);
        p.num_sms = caps[i];
        product_compare(co, &p, &o, 0, ROWS, "all rows on fewer SMs");
    }
}

static void company_make(company *co, struct random *r, const struct case_kind *kind, bool finite,
                         bool bare)
{
    session *s = co->s;
    const struct case_options options = {.finite = finite,
                                         .bare = bare,
                                         .aligned = true,
                                         .packed = !gemm_serves_w4a8(HALFBYTE_B_ROW_MAJOR),
                                         .m = ROWS,
                                         .n = random_between(r, 1, 260),
                                         .k = random_between(r, 1, 900),
                                         .groups = GROUPS};
    case_make(&co->c, r, kind, &options);
    gpu_case_make_served(&co->c);
    weights_equalise(&co->c);
    co->one = co->c.header;
    co->one.groups = 1;
    co->c.operands.c = co->c.before.c; /* D is elsewhere */
    co->c.problem.num_sms = 0;
    session_reset(s);
    gpu_case_upload(s, &co->c, &co->on_gpu);
    co->element = (size_t)halfbyte_type_bits(co->c.problem.d_type) / 8;
    const size_t bytes = (size_t)(ROWS * co->c.problem.n) * co->element;
    co->all = session_memory(s, bytes);
    co->output = session_memory(s, bytes);
    session_check(s, s->set_bytes(co->all, 0xc3, bytes), "cuMemsetD8");
}

/* By the library's choice, then by each kernel that serves the dense problem. */
static void kind_test(company *co, struct random *r, const struct case_kind *kind, bool finite,
                      bool bare)
{
    halfbyte_problem p;
    halfbyte_operands o;
    halfbyte_plan *plan = NULL;
    company_make(co, r, kind, finite, bare);
    rows_select(co, 0, ROWS, co->all, &p, &o);
    gemm_choose(GEMM_ANY_KERNEL);
    product_run(co, &p, &o);
    if (halfbyte_plan_create(&plan, &p, co->device) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    for (int kernel = GEMM_ANY_KERNEL; kernel < KERNEL_COUNT; kernel++) {
        if (kernel != GEMM_ANY_KERNEL && !gemm_kernel_accepts(kernel, &plan->problem)) {
            continue;
        }
        halfbyte_problem grouped = plan->problem;
        grouped.grouping = HALFBYTE_GROUPING_RANGES;
        gemm_choose(kernel);
        rows_alone(co, r);
        rows_capped(co);
        if (kernel == GEMM_ANY_KERNEL || gemm_kernel_accepts(kernel, &grouped)) {
            rows_grouped(co, r);
            rows_masked(co);
        }
    }
    halfbyte_plan_destroy(plan);
    case_free(&co->c);
}

static void kinds_test(session *s, halfbyte_family family, int step)
{
    company co = {
        .s = s, .kernels = oracle_load_kernels(s), .device = gemm_device(HALFBYTE_EXECUTOR_GPU)};
    struct random r = {s->seed * 91 + (uint64_t)family};
    for (int i = 0; i < case_kind_count(family); i += step) {
        const struct case_kind kind = case_kind_at(family, i, FORM_COUNTS);
        const bool bare =
            family == HALFBYTE_FAMILY_W4A8 && i / step % 2 == 1; /* for some kernels */
        kind_test(&co, &r, &kind, i % 2 == 0, bare);
    }
    session_figure(s, family == HALFBYTE_FAMILY_FP8 ? "fp8_runs" : "w4a8_runs", co.runs);
    halfbyte_device_close(co.device);
}

void gpu_test_gemm_company(session *s)
{
    kinds_test(s, HALFBYTE_FAMILY_FP8, s->quick ? 6 : 1);
}

void gpu_test_gemm_w4a8_company(session *s)
{
    kinds_test(s, HALFBYTE_FAMILY_W4A8, s->quick ? 50 : 4);
}
