/* SPDX-License-Identifier: Apache-2.0 */
/* Calls at the edge of what the public header allows: all of them must work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/call.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define ANY SET(options.profile, HALFBYTE_PROFILE_ANY)

/* What the call does to D, as a whole. */
typedef enum effect {
    WRITES_NOTHING,
    WRITES, /* something */
    SAME    /* the bits of the base */
} effect;

typedef struct valid_row {
    call_base base;
    effect effect;
    call_edit edits[CALL_MOST_EDITS];
} valid_row;

static const valid_row rows[] = {
    /* Nothing is read or written: pointers may be anything. */
    {BASE_FP8,
     WRITES_NOTHING,
     {SET(operands.m, 0), SET(operands.a.data, 0), SET(operands.b.data, 1), SET(operands.d.data, 0),
      SET(operands.a_scale.data, 3)}},
    {BASE_W4A8,
     WRITES_NOTHING,
     {SET(operands.m, 0), SET(operands.groups.starts, 0), SET(operands.groups.ends, 0)}},
    {BASE_LABELS, WRITES_NOTHING, {SET(problem.m_max, 0), SET(operands.m, 0)}},
    {BASE_MASKED,
     WRITES_NOTHING,
     {SET(problem.n, 0), SET(operands.d.data, 0), SET(operands.b.ld, -1)}},

    /* k == 0: A, B and the scales along k are not read. */
    {BASE_FP8,
     WRITES,
     {SET(problem.k, 0), SET(operands.a.data, 0), SET(operands.b.data, 0),
      SET(operands.a_scale.data, 0), SET(operands.b_scale.data, 0)}},
    {BASE_PACKED,
     WRITES,
     {SET(problem.k, 0), SET(operands.b.data, 0), SET(operands.b_header, 0),
      SET(operands.b_scale.data, 0)}},

    /* Operands that the problem does not have, or that beta == 0 leaves out, are ignored. */
    {BASE_FP8, WRITES, {SET(operands.beta, 0), SET(operands.c.data, 0), SET(operands.c.ld, -1)}},
    {BASE_FP8, WRITES, {SET(problem.bias_type, 0), SET(operands.bias.data, 0)}},
    {BASE_MASKED, SAME, {SET(operands.bias.data, 1), SET(operands.channel_scale.data, 3)}},
    {BASE_FP8, SAME, {SET(operands.alpha_pointer, 1), SET(operands.b_header, 1)}},

    /* D may be C. */
    {BASE_FP8, WRITES, {COPY(operands.c.data, operands.d.data)}},
    {BASE_W4A8, WRITES, {COPY(operands.c.data, operands.d.data)}},

    /* Strides along an extent of one are not looked at; a unit stride may be left out. */
    {BASE_FP8,
     SAME,
     {SET(operands.a.group_stride, -7), SET(operands.b.group_stride, INT64_MAX),
      SET(operands.d.group_stride, INT64_MIN), SET(operands.a_scale.group_stride, -1)}},
    {BASE_FP8,
     WRITES,
     {SET(operands.m, 1), SET(operands.a.ld, -1), SET(operands.d.ld, 0), SET(operands.c.ld, 3),
      SET(operands.a_scale.stride_mn, 99)}},
    {BASE_FP8, SAME, {SET(operands.a_scale.stride_mn, 0), SET(operands.b_scale.stride_k, 0)}},
    {BASE_FP8, SAME, {SET(operands.b_scale.stride_mn, -8)}}, /* one row of 128x128 */
    {BASE_PACKED, SAME, {SET(operands.b_scale.stride_mn, 4), SET(operands.b_scale.stride_k, 0)}},
    {BASE_PACKED, SAME, {SET(operands.b.ld, -3), SET(operands.b.group_stride, 5)}},

    /* Shared by all groups. */
    {BASE_W4A8, WRITES, {SET(operands.bias.group_stride, 0)}},
    {BASE_LABELS,
     WRITES,
     {SET(operands.a_scale.group_stride, 0), SET(operands.b_scale.group_stride, 0)}},

    /* Matrices of the groups side by side: [rows, groups, columns]. */
    {BASE_MASKED, WRITES, {SET(operands.a.ld, 4 * 256), SET(operands.a.group_stride, 256)}},
    {BASE_MASKED, WRITES, {SET(operands.d.ld, 4 * 32), SET(operands.d.group_stride, 32)}},

    /* Every way to say the groups gives the same bits. */
    {BASE_W4A8, SAME, {SET(operands.groups.starts, 0)}},
    {BASE_MASKED, WRITES, {SET(operands.groups.counts, 0)}},

    /* Hints, and defaults written out. */
    {BASE_FP8,
     SAME,
     {SET(operands.expected_m, 9999), SET(problem.groups, 1), SET(problem.k_splits, 1),
      SET(problem.num_sms, 7), SET(problem.a_type, HALFBYTE_TYPE_E4M3)}},
    {BASE_FP8,
     SAME,
     {SET(problem.flags, 7), SET(problem.a_alignment, 256), SET(problem.d_alignment, 64),
      SET(problem.b_alignment, 1), SET(problem.b_scale.type, HALFBYTE_TYPE_F32)}},
    {BASE_FP8, WRITES, {SET(problem.k_splits, 2)}},
    {BASE_FP8, SAME, {SET(problem.m_max, INT32_MAX)}},
    {BASE_PACKED, SAME, {SET(header.scale_type, HALFBYTE_TYPE_NONE)}},

    /* Profile ANY: any n, k, pointer and stride. */
    {BASE_FP8, SAME, {ANY}},
    {BASE_FP8, WRITES, {ANY, ADD(operands.a.data, 1), ADD(operands.b.data, 3)}},
    {BASE_FP8, WRITES, {ANY, SET(problem.k, 251), SET(problem.n, 29), SET(operands.a.ld, 253)}},
    {BASE_LABELS, WRITES, {ANY, SET(problem.k, 251), SET(problem.n, 31)}},
    {BASE_LABELS,
     WRITES,
     {ANY, ADD(operands.b.data, 1), SET(operands.b.ld, 258),
      SET(operands.b.group_stride, 31 * 258 + 256)}},
};

static void edges_of_the_contract(void **state)
{
    (void)state;
    static call made;
    static unsigned char base_d[CALL_D_BYTES];
    static unsigned char poison[CALL_D_BYTES];
    memset(poison, CALL_POISON, sizeof poison);
    for (size_t i = 0; i < COUNT(rows); i++) {
        call_make(&made, rows[i].base);
        call_run(&made);
        memcpy(base_d, call_d(), sizeof base_d);
        assert_memory_not_equal(base_d, poison, sizeof base_d);
        for (int e = 0; e < CALL_MOST_EDITS; e++) {
            call_apply(&made, &rows[i].edits[e]);
        }
        call_run(&made);
        if (rows[i].effect == SAME) {
            assert_memory_equal(call_d(), base_d, sizeof base_d);
        } else if (rows[i].effect == WRITES_NOTHING) {
            assert_memory_equal(call_d(), poison, sizeof poison);
        } else {
            assert_memory_not_equal(call_d(), poison, sizeof poison);
        }
    }
    assert_int_equal(COUNT(rows), 34);
}

/* A struct of a newer program whose new fields are all zero. */
static void longer_structs(void **state)
{
    (void)state;
    struct {
        halfbyte_problem known;
        unsigned char later[40];
    } problem;
    static call made;
    call_make(&made, BASE_FP8);
    halfbyte_device *device;
    halfbyte_plan *plan = NULL;
    assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_SUCCESS);
    memset(&problem, 0, sizeof problem);
    problem.known = made.problem;
    problem.known.struct_size = sizeof problem;
    assert_int_equal(halfbyte_plan_create(&plan, &problem.known, device), HALFBYTE_SUCCESS);
    halfbyte_plan_destroy(plan);
    for (size_t i = 0; i < sizeof problem.later; i++) {
        plan = NULL;
        problem.later[i] = 1;
        assert_int_equal(halfbyte_plan_create(&plan, &problem.known, device),
                         HALFBYTE_ERR_UNSUPPORTED);
        assert_null(plan);
        problem.later[i] = 0;
    }
    halfbyte_device_close(device);
}

/* A device without options, NULL objects, and what a plan keeps of the problem. */
static void defaults(void **state)
{
    (void)state;
    halfbyte_device *device;
    halfbyte_plan *plan;
    static call made;
    static unsigned char base_d[CALL_D_BYTES];
    call_make(&made, BASE_W4A8);
    call_run(&made);
    memcpy(base_d, call_d(), sizeof base_d);

    assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_SUCCESS);
    assert_int_equal(halfbyte_plan_create(&plan, &made.problem, device), HALFBYTE_SUCCESS);
    memset(&made.problem, 0xff, sizeof made.problem); /* the plan has its own copy */
    memset(made.operands.d.data, CALL_POISON, CALL_D_BYTES);
    assert_int_equal(halfbyte_plan_workspace_bytes(plan), 0);
    assert_int_equal(halfbyte_plan_workspace_bytes(NULL), 0);
    assert_int_equal(halfbyte_run(plan, &made.operands, NULL, 0, NULL), HALFBYTE_SUCCESS);
    assert_memory_equal(call_d(), base_d, sizeof base_d);
    _Alignas(256) unsigned char workspace[256];
    memset(workspace, CALL_POISON, sizeof workspace);
    assert_int_equal(halfbyte_run(plan, &made.operands, workspace, sizeof workspace, NULL),
                     HALFBYTE_SUCCESS);
    assert_memory_equal(call_d(), base_d, sizeof base_d);
    halfbyte_plan_destroy(plan);
    halfbyte_device_close(device);
    halfbyte_plan_destroy(NULL);
    halfbyte_device_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_the_contract),
        cmocka_unit_test(longer_structs),
        cmocka_unit_test(defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
