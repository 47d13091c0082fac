/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_K = 256, A_BYTES = CALL_GROUPS * CALL_M * MOST_K, B_BYTES = CALL_GROUPS * 64 * MOST_K };

/* Tensors of all bases; sizes are those of the largest. */
static _Alignas(1024) unsigned char tensor_a[A_BYTES];
static _Alignas(1024) unsigned char tensor_b[B_BYTES];
static _Alignas(1024) unsigned char tensor_d[CALL_D_BYTES];
static _Alignas(64) float tensor_c[CALL_GROUPS * CALL_M * CALL_N];
static _Alignas(64) float tensor_a_scale[CALL_GROUPS * CALL_M * 2];
static _Alignas(64) float tensor_b_scale[CALL_GROUPS * CALL_N * 4];
static _Alignas(64) float tensor_channel_scale[CALL_N];
static _Alignas(64) float tensor_bias[CALL_GROUPS * CALL_N];

/* Finite e4m3 codes, or int4 pairs without -8: the same in every process. */
static void fill_codes(unsigned char *codes, size_t count)
{
    uint32_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        codes[i] = (unsigned char)(state >> 24 & 0x77);
    }
}

static void fill_floats(float *memory, size_t count, halfbyte_type type)
{
    float values[CALL_GROUPS * CALL_M * CALL_N];
    assert_true(count <= sizeof values / sizeof values[0]);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(i % 17) * 0.125f + 0.25f;
    }
    if (type != HALFBYTE_TYPE_NONE) {
        assert_int_equal(halfbyte_convert(memory, type, values, HALFBYTE_TYPE_F32, (int64_t)count),
                         HALFBYTE_SUCCESS);
    }
}

static void make_fp8(call *made)
{
    halfbyte_problem *p = &made->problem;
    halfbyte_operands *o = &made->operands;
    p->family = HALFBYTE_FAMILY_FP8;
    p->a_scale.mode = HALFBYTE_SCALE_1X128;
    p->b_scale.mode = HALFBYTE_SCALE_128X128;
    p->b_scale.layout = HALFBYTE_SCALE_K_MAJOR;
    p->d_type = HALFBYTE_TYPE_BF16;
    p->c_type = HALFBYTE_TYPE_BF16;
    p->bias_type = HALFBYTE_TYPE_F32;
    p->alpha_mode = HALFBYTE_ALPHA_HOST;
    o->alpha = 0.5f;
    o->beta = 1.0f;
    o->a_scale = (halfbyte_scale_in){tensor_a_scale, 1, CALL_M, 0};
    o->b_scale = (halfbyte_scale_in){tensor_b_scale, 2, 1, 0};
}

static void make_ranges(call *made)
{
    made->problem.grouping = HALFBYTE_GROUPING_RANGES;
    made->problem.groups = CALL_GROUPS;
    made->operands.groups.starts = made->starts;
    made->operands.groups.ends = made->ends;
}

static void make_w4a8(call *made)
{
    halfbyte_problem *p = &made->problem;
    halfbyte_operands *o = &made->operands;
    make_ranges(made);
    p->family = HALFBYTE_FAMILY_W4A8;
    p->a_scale.mode = HALFBYTE_SCALE_OUTER;
    p->b_scale.mode = HALFBYTE_SCALE_K_GROUP;
    p->b_scale.type = HALFBYTE_TYPE_BF16;
    p->weight_group_size = 128;
    p->channel_scale_type = HALFBYTE_TYPE_F32;
    p->d_type = HALFBYTE_TYPE_F32;
    p->c_type = HALFBYTE_TYPE_F32;
    p->bias_type = HALFBYTE_TYPE_BF16;
    p->alpha_mode = HALFBYTE_ALPHA_DEVICE;
    o->alpha_pointer = &made->alpha;
    o->beta = -0.5f;
    o->a_scale = (halfbyte_scale_in){tensor_a_scale, 1, 0, 0};
    o->b_scale = (halfbyte_scale_in){tensor_b_scale, 1, CALL_N, 2 * CALL_N};
    o->bias.group_stride = CALL_N;
}

static void make_masked(call *made)
{
    halfbyte_problem *p = &made->problem;
    halfbyte_operands *o = &made->operands;
    p->family = HALFBYTE_FAMILY_FP8;
    p->grouping = HALFBYTE_GROUPING_MASKED;
    p->groups = CALL_GROUPS;
    p->index_type = HALFBYTE_INDEX_INT64;
    p->a_scale.mode = HALFBYTE_SCALE_1X128;
    p->a_scale.layout = HALFBYTE_SCALE_K_MAJOR;
    p->b_scale.mode = HALFBYTE_SCALE_1X128;
    p->d_type = HALFBYTE_TYPE_F32;
    o->groups.counts = made->counts64;
    o->a_scale = (halfbyte_scale_in){tensor_a_scale, 2, 1, 2 * CALL_M};
    o->b_scale = (halfbyte_scale_in){tensor_b_scale, 1, CALL_N, 2 * CALL_N};
}

static void make_labels(call *made)
{
    halfbyte_problem *p = &made->problem;
    p->family = HALFBYTE_FAMILY_W4A8;
    p->grouping = HALFBYTE_GROUPING_LABELS;
    p->groups = CALL_GROUPS;
    p->a_scale.mode = HALFBYTE_SCALE_TENSOR;
    p->b_scale.mode = HALFBYTE_SCALE_TENSOR;
    p->d_type = HALFBYTE_TYPE_F16;
    made->operands.groups.labels = made->labels;
    made->operands.a_scale = (halfbyte_scale_in){tensor_a_scale, 0, 0, 1};
    made->operands.b_scale = (halfbyte_scale_in){tensor_b_scale, 0, 0, 1};
}

static void make_packed(call *made)
{
    halfbyte_problem *p = &made->problem;
    halfbyte_operands *o = &made->operands;
    make_ranges(made);
    p->family = HALFBYTE_FAMILY_W4A8;
    p->k = 224;
    p->b_layout = HALFBYTE_B_PACKED;
    p->b_scale.mode = HALFBYTE_SCALE_K_GROUP;
    p->b_scale.layout = HALFBYTE_SCALE_INTERLEAVED4;
    p->weight_group_size = 64;
    p->group_k_offset = 32;
    p->d_type = HALFBYTE_TYPE_BF16;
    o->groups = (halfbyte_groups){.counts = made->counts};
    o->b_scale = (halfbyte_scale_in){tensor_b_scale, 0, 4 * CALL_N, 4 * CALL_N};
    made->header = (halfbyte_packed_header){.version = 1,
                                            .n = CALL_N,
                                            .k = p->k,
                                            .groups = CALL_GROUPS,
                                            .group_k_offset = 32,
                                            .weight_group_size = 64,
                                            .scale_type = HALFBYTE_TYPE_F32};
}

static void fill_groups(call *made)
{
    static const int32_t counts[CALL_GROUPS] = {5, 0, 9, 7};
    int32_t row = 0;
    for (int g = 0; g < CALL_GROUPS; g++) {
        made->starts[g] = row;
        made->counts[g] = counts[g];
        made->counts64[g] = counts[g];
        for (int32_t i = 0; i < counts[g]; i++) {
            made->labels[row++] = g;
        }
        made->ends[g] = row;
    }
    while (row < CALL_M) {
        made->labels[row++] = -1;
    }
}

void call_make(call *made, call_base base)
{
    memset(made, 0, sizeof *made);
    made->options = halfbyte_device_options_init();
    made->options.threads = 1;
    made->problem = halfbyte_problem_init();
    made->operands = halfbyte_operands_init();
    made->alpha = 2.0f;
    made->problem.m_max = CALL_M;
    made->problem.n = CALL_N;
    made->problem.k = MOST_K;
    fill_groups(made);
    static void (*const makers[CALL_BASES])(call *) = {make_fp8, make_w4a8, make_masked,
                                                       make_labels, make_packed};
    makers[base](made);
    const halfbyte_problem *p = &made->problem;
    halfbyte_operands *o = &made->operands;
    o->m = CALL_M;
    o->a = (halfbyte_matrix_in){tensor_a, p->k, CALL_M * p->k};
    o->b = (halfbyte_matrix_in){tensor_b, p->k, CALL_N * p->k};
    o->c = (halfbyte_matrix_in){tensor_c, CALL_N, CALL_M * CALL_N};
    o->d = (halfbyte_matrix_out){tensor_d, CALL_N, CALL_M * CALL_N};
    o->channel_scale.data = tensor_channel_scale;
    o->bias.data = tensor_bias;
    o->b_header = &made->header;
    fill_codes(tensor_a, sizeof tensor_a);
    fill_codes(tensor_b, sizeof tensor_b);
    fill_floats(tensor_c, sizeof tensor_c / sizeof(float), p->c_type);
    fill_floats(tensor_a_scale, sizeof tensor_a_scale / sizeof(float), HALFBYTE_TYPE_F32);
    fill_floats(tensor_b_scale, sizeof tensor_b_scale / sizeof(float),
                p->b_scale.type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : p->b_scale.type);
    fill_floats(tensor_channel_scale, CALL_N, HALFBYTE_TYPE_F32);
    fill_floats(tensor_bias, sizeof tensor_bias / sizeof(float), p->bias_type);
}

static int64_t field_read(const call *made, size_t offset, size_t size)
{
    const unsigned char *field = (const unsigned char *)made + offset;
    int32_t narrow;
    int64_t wide;
    if (size == sizeof narrow) {
        memcpy(&narrow, field, sizeof narrow);
        return narrow;
    }
    assert_int_equal(size, sizeof wide);
    memcpy(&wide, field, sizeof wide);
    return wide;
}

void call_apply(call *made, const call_edit *edit)
{
    if (edit->size == 0) {
        return;
    }
    int64_t value = edit->value;
    if (edit->kind == EDIT_ADD) {
        value += field_read(made, edit->offset, edit->size);
    } else if (edit->kind == EDIT_COPY) {
        value = field_read(made, (size_t)edit->value, edit->size);
    }
    const int32_t narrow = (int32_t)value;
    memcpy((unsigned char *)made + edit->offset,
           edit->size == sizeof narrow ? (const void *)&narrow : (const void *)&value, edit->size);
}

const call_edit *call_fault(const call_row *row)
{
    const call_edit *fault = &row->edits[0];
    for (int i = 1; i < CALL_MOST_EDITS && row->edits[i].size != 0; i++) {
        fault = &row->edits[i];
    }
    return fault;
}

const unsigned char *call_d(void)
{
    return tensor_d;
}

/* What stands where the library stores a handle until it succeeds. */
static char untouched_handle;

/* STEP_RUN or STEP_CHECK_GROUPS on a plan of its own. */
static halfbyte_status use_plan(const call *made, call_step step, halfbyte_plan *plan)
{
    const halfbyte_plan *used = made->null_handle ? NULL : plan;
    const halfbyte_operands *operands = made->null_struct ? NULL : &made->operands;
    if (step == STEP_CHECK_GROUPS) {
        return halfbyte_check_groups(used, operands, made->stream);
    }
    return halfbyte_run(used, operands, made->workspace, made->workspace_bytes, made->stream);
}

/* The steps from STEP_PLAN on; NULL arguments are those of the last. */
static halfbyte_status use_device(const call *made, call_step last, halfbyte_device *device,
                                  call_step *reached)
{
    const bool at_fault = last == STEP_PLAN;
    halfbyte_plan *plan = (halfbyte_plan *)&untouched_handle;
    *reached = STEP_PLAN;
    halfbyte_status status =
        halfbyte_plan_create(at_fault && made->null_result ? NULL : &plan,
                             at_fault && made->null_struct ? NULL : &made->problem,
                             at_fault && made->null_handle ? NULL : device);
    if (status != HALFBYTE_SUCCESS) {
        assert_ptr_equal(plan, &untouched_handle);
        return status;
    }
    if (last > STEP_PLAN) {
        *reached = last;
        status = use_plan(made, last, plan);
    }
    halfbyte_plan_destroy(plan);
    return status;
}

/* Makes the calls up to and including `last`; returns the status of the first that fails. */
static halfbyte_status call_steps(const call *made, call_step last, call_step *reached)
{
    halfbyte_device *device = (halfbyte_device *)&untouched_handle;
    memset(tensor_d, CALL_POISON, sizeof tensor_d);
    *reached = STEP_OPEN;
    halfbyte_status status = halfbyte_device_open(
        last == STEP_OPEN && made->null_result ? NULL : &device, &made->options);
    if (status != HALFBYTE_SUCCESS) {
        assert_ptr_equal(device, &untouched_handle);
        return status;
    }
    if (last > STEP_OPEN) {
        status = use_device(made, last, device, reached);
    }
    halfbyte_device_close(device);
    return status;
}

static void assert_success(halfbyte_status status)
{
    if (status != HALFBYTE_SUCCESS) {
        print_error("%s: %s\n", halfbyte_status_name(status), halfbyte_last_error());
    }
    assert_int_equal(status, HALFBYTE_SUCCESS);
}

void call_succeed(const call *made, call_step step)
{
    call_step reached;
    assert_success(call_steps(made, step, &reached));
    assert_int_equal(reached, step);
}

void call_run(const call *made)
{
    call_succeed(made, STEP_RUN);
}

/* A row of a table; a failure prints its number and what was expected. */
static bool row_fails_as_told(const call_row *row, const call *spoiled)
{
    call_step reached;
    const halfbyte_status status = call_steps(spoiled, row->step, &reached);
    bool ok = status == row->status && reached == row->step;
    ok = ok && strstr(halfbyte_last_error(), row->message) != NULL;
    for (size_t i = 0; i < sizeof tensor_d; i++) {
        ok = ok && tensor_d[i] == CALL_POISON;
    }
    if (!ok) {
        print_error("wanted %s in step %d: %s\n   got %s in step %d: %s\n",
                    halfbyte_status_name(row->status), (int)row->step, row->message,
                    halfbyte_status_name(status), (int)reached, halfbyte_last_error());
    }
    return ok;
}

void call_check_fields(const call_field *fields, size_t field_count, const call_row *rows,
                       size_t row_count)
{
    size_t missed = 0;
    for (size_t f = 0; f < field_count; f++) {
        bool found = false;
        for (size_t i = 0; i < row_count; i++) {
            found = found || call_fault(&rows[i])->offset == fields[f].offset;
        }
        if (!found) {
            print_error("no row spoils %s\n", fields[f].name);
            missed++;
        }
    }
    assert_int_equal(missed, 0);
}

void call_check_rows(const call_row *rows, size_t count)
{
    static unsigned char expected[CALL_BASES][CALL_D_BYTES];
    static call made;
    static call before;
    for (call_base base = 0; base < CALL_BASES; base++) {
        call_make(&made, base);
        call_run(&made);
        memcpy(expected[base], tensor_d, sizeof tensor_d);
    }
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        call_make(&made, rows[i].base);
        for (int e = 0; e < CALL_MOST_EDITS; e++) {
            call_apply(&made, &rows[i].edits[e]);
        }
        memcpy(&before, &made, sizeof made);
        if (!row_fails_as_told(&rows[i], &made)) {
            print_error("in row %zu\n", i);
            wrong++;
        }
        assert_memory_equal(&before, &made, sizeof made);
        call_make(&made, rows[i].base);
        call_run(&made);
        assert_memory_equal(tensor_d, expected[rows[i].base], sizeof tensor_d);
    }
    assert_int_equal(wrong, 0);
}
