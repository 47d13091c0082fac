/* SPDX-License-Identifier: Apache-2.0 */
/* Every argument and field of halfbyte_device_open() and halfbyte_plan_create(), spoiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/call.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define INVALID HALFBYTE_ERR_INVALID_ARGUMENT
#define UNSUPPORTED HALFBYTE_ERR_UNSUPPORTED

/* Rows: the call that fails, the valid call it was, the edits, status and part of the sentence. */
#define OPEN(edit, status, message)                                                                \
    {                                                                                              \
        STEP_OPEN, BASE_FP8, {edit}, status, message                                               \
    }
#define FP8(edit, status, message)                                                                 \
    {                                                                                              \
        STEP_PLAN, BASE_FP8, {edit}, status, message                                               \
    }
#define W4A8(edit, status, message)                                                                \
    {                                                                                              \
        STEP_PLAN, BASE_W4A8, {edit}, status, message                                              \
    }
#define W4A8_2(first, second, status, message)                                                     \
    {                                                                                              \
        STEP_PLAN, BASE_W4A8, {first, second}, status, message                                     \
    }
#define FP8_2(first, second, status, message)                                                      \
    {                                                                                              \
        STEP_PLAN, BASE_FP8, {first, second}, status, message                                      \
    }
#define PACKED(edit, status, message)                                                              \
    {                                                                                              \
        STEP_PLAN, BASE_PACKED, {edit}, status, message                                            \
    }

static const call_row device_rows[] = {
    OPEN(SET(null_result, 1), INVALID, "device = NULL"),
    OPEN(SET(options.struct_size, 0), INVALID, "options.struct_size = 0"),
    /* 32 bytes up to tune_file, which came later. */
    OPEN(SET(options.struct_size, 31), INVALID, "options.struct_size = 31"),
    OPEN(SET(options.struct_size, 40 + 4097), INVALID, "options.struct_size = 4137"),
    OPEN(SET(options.struct_size, -1), INVALID, "options.struct_size = 18446744073709551615"),
    OPEN(SET(options.executor, 4), INVALID, "options.executor = 4: accepted: auto (0)"),
    OPEN(SET(options.executor, -1), INVALID, "options.executor = -1"),
    OPEN(SET(options.executor, HALFBYTE_EXECUTOR_EMULATOR), UNSUPPORTED,
         "options.executor = emulator"),
    OPEN(SET(options.profile, 2), INVALID, "options.profile = 2: accepted: sm90 (0), any (1)"),
    OPEN(SET(options.ordinal, -1), INVALID, "options.ordinal = -1: must be at least 0"),
    OPEN(SET(options.threads, -1), INVALID, "options.threads = -1: must be in [0, 1024]"),
    OPEN(SET(options.threads, 1025), INVALID, "options.threads = 1025: must be in [0, 1024]"),
    OPEN(SET(options.isa, 4), INVALID, "options.isa = 4: accepted: auto (0)"),
};

static const call_row field_rows[] = {
    FP8(SET(null_result, 1), INVALID, "plan = NULL"),
    FP8(SET(null_struct, 1), INVALID, "problem = NULL: must point to a halfbyte_problem"),
    FP8(SET(null_handle, 1), INVALID, "device = NULL: must be an open device"),
    FP8(SET(problem.struct_size, 0), INVALID, "problem.struct_size = 0"),
    FP8(ADD(problem.struct_size, -8), INVALID, "halfbyte_problem_init()"),
    FP8(ADD(problem.struct_size, 5000), INVALID, "no version of halfbyte_problem has this size"),
    FP8(ADD(problem.struct_size, 64), UNSUPPORTED, "is not zero, but this library"),
    FP8(SET(problem.family, 0), INVALID, "problem.family = 0: must be set; accepted: fp8 (1)"),
    FP8(SET(problem.family, 3), INVALID, "problem.family = 3"),
    FP8(SET(problem.grouping, 4), INVALID, "problem.grouping = 4: accepted: dense (0)"),
    FP8(SET(problem.grouping, -2), INVALID, "problem.grouping = -2"),
    FP8(SET(problem.m_max, -1), INVALID, "problem.m_max = -1: must be in [0, 2147483647]"),
    FP8(SET(problem.m_max, INT64_C(2147483648)), INVALID, "problem.m_max = 2147483648"),
    FP8(SET(problem.n, -1), INVALID, "problem.n = -1: must be in [0, 2147483647]"),
    FP8(SET(problem.n, INT64_MAX), INVALID, "problem.n = 9223372036854775807"),
    FP8(SET(problem.k, -1), INVALID, "problem.k = -1: must be in [0, 2147483647]"),
    FP8(SET(problem.k, INT64_MIN), INVALID, "problem.k = -9223372036854775808"),
    W4A8(SET(problem.groups, -1), INVALID, "problem.groups = -1: must be in [0, 1048576]"),
    W4A8(SET(problem.groups, 1048577), INVALID, "problem.groups = 1048577"),
    FP8(SET(problem.a_type, HALFBYTE_TYPE_E5M2), INVALID,
        "problem.a_type = e5m2 (5): accepted: none, e4m3"),
    FP8(SET(problem.a_type, 99), INVALID, "problem.a_type = unknown (99)"),
    FP8(SET(problem.b_type, HALFBYTE_TYPE_INT4), INVALID,
        "problem.b_type = int4 (7): accepted: none, e4m3"),
    W4A8(SET(problem.b_type, HALFBYTE_TYPE_E4M3), INVALID,
         "problem.b_type = e4m3 (4): accepted: none, int4"),
    FP8(SET(problem.d_type, HALFBYTE_TYPE_NONE), INVALID,
        "problem.d_type = none: must be set; accepted: f32, bf16, f16"),
    FP8(SET(problem.d_type, HALFBYTE_TYPE_E4M3), UNSUPPORTED, "problem.d_type = e4m3: not served"),
    FP8(SET(problem.d_type, HALFBYTE_TYPE_E5M2), INVALID,
        "problem.d_type = e5m2 (5): accepted: f32, bf16, f16"),
    FP8(SET(problem.d_type, -5), INVALID, "problem.d_type = unknown (-5)"),
    FP8(SET(problem.b_layout, 2), INVALID, "problem.b_layout = 2: accepted: row_major (0)"),
    FP8(SET(problem.a_scale.mode, 6), INVALID, "problem.a_scale.mode = unknown (6)"),
    FP8(SET(problem.a_scale.type, -1), INVALID, "problem.a_scale.type = unknown (-1)"),
    FP8(SET(problem.a_scale.layout, 3), INVALID, "problem.a_scale.layout = 3"),
    FP8(SET(problem.b_scale.mode, -1), INVALID, "problem.b_scale.mode = unknown (-1)"),
    FP8(SET(problem.b_scale.type, 8), INVALID, "problem.b_scale.type = unknown (8)"),
    FP8(SET(problem.b_scale.layout, -1), INVALID, "problem.b_scale.layout = -1"),
    W4A8(SET(problem.weight_group_size, 16), INVALID,
         "problem.weight_group_size = 16: accepted: 32, 64, 128, or 0 = all of k"),
    W4A8(SET(problem.weight_group_size, -32), INVALID, "problem.weight_group_size = -32"),
    W4A8(SET(problem.group_k_offset, -32), INVALID, "problem.group_k_offset = -32"),
    FP8(SET(problem.channel_scale_type, HALFBYTE_TYPE_BF16), INVALID,
        "problem.channel_scale_type = bf16 (2): accepted: none, f32"),
    FP8(SET(problem.k_splits, -1), INVALID, "problem.k_splits = -1: must be in [0, 2]"),
    FP8(SET(problem.alpha_mode, 3), INVALID, "problem.alpha_mode = 3: accepted: none (0)"),
    FP8(SET(problem.c_type, HALFBYTE_TYPE_E4M3), INVALID,
        "problem.c_type = e4m3 (4): accepted: none, f32, bf16, f16"),
    FP8(SET(problem.bias_type, HALFBYTE_TYPE_INT4), INVALID,
        "problem.bias_type = int4 (7): accepted: none, f32, bf16, f16"),
    FP8(SET(problem.index_type, 2), INVALID, "problem.index_type = 2: accepted: int32 (0)"),
    FP8(SET(problem.flags, 8), INVALID, "problem.flags = 0x8: accepted bits: 0x7"),
    FP8(SET(problem.num_sms, -1), INVALID, "problem.num_sms = -1: must be in [0, 2147483647]"),
    FP8(SET(problem.a_alignment, 24), INVALID,
        "problem.a_alignment = 24: must be 0 or a power of two up to 1024"),
    FP8(SET(problem.b_alignment, -16), INVALID, "problem.b_alignment = -16"),
    FP8(SET(problem.d_alignment, 2048), INVALID, "problem.d_alignment = 2048"),
    FP8(SET(problem.activation, HALFBYTE_ACTIVATION_SWIGLU_HALVES), UNSUPPORTED,
        "problem.activation = 1: not served by this version; accepted: 0"),
    FP8(SET(problem.activation_type, HALFBYTE_TYPE_BF16), UNSUPPORTED,
        "problem.activation_type = 2"),
    FP8(SET(problem.d_scale.mode, HALFBYTE_SCALE_TENSOR), UNSUPPORTED, "problem.d_scale.mode = 1"),
    FP8(SET(problem.d_scale.type, HALFBYTE_TYPE_F32), UNSUPPORTED, "problem.d_scale.type = 1"),
    FP8(SET(problem.d_scale.layout, HALFBYTE_SCALE_K_MAJOR), UNSUPPORTED,
        "problem.d_scale.layout = 1"),
    W4A8(SET(problem.b_zero_point_type, HALFBYTE_TYPE_INT4), UNSUPPORTED,
         "problem.b_zero_point_type = 7"),
    W4A8(SET(problem.a_prescale_type, HALFBYTE_TYPE_BF16), UNSUPPORTED,
         "problem.a_prescale_type = 2"),
};

/* Fields that are fine alone and wrong together. */
static const call_row combination_rows[] = {
    FP8(SET(problem.groups, 2), INVALID, "problem.groups = 2: must be 0 or 1"),
    FP8(SET(problem.b_layout, HALFBYTE_B_PACKED), INVALID,
        "problem.b_layout = packed: accepted for family fp8: row_major"),
    FP8(SET(problem.a_scale.mode, HALFBYTE_SCALE_128X128), INVALID,
        "problem.a_scale.mode = 128x128 (4): accepted for family fp8: none, tensor, outer, 1x128"),
    FP8(SET(problem.a_scale.mode, HALFBYTE_SCALE_K_GROUP), INVALID,
        "problem.a_scale.mode = k_group (5): accepted for family fp8"),
    FP8(SET(problem.b_scale.mode, HALFBYTE_SCALE_K_GROUP), INVALID,
        "problem.b_scale.mode = k_group (5): accepted for family fp8: none, tensor, outer, 1x128, "
        "128x128"),
    W4A8(SET(problem.a_scale.mode, HALFBYTE_SCALE_K_GROUP), INVALID,
         "problem.a_scale.mode = k_group (5): accepted for family w4a8"),
    W4A8(
        SET(problem.b_scale.mode, HALFBYTE_SCALE_1X128), INVALID,
        "problem.b_scale.mode = 1x128 (3): accepted for family w4a8: none, tensor, outer, k_group"),
    W4A8(SET(problem.b_scale.mode, HALFBYTE_SCALE_128X128), INVALID,
         "problem.b_scale.mode = 128x128 (4)"),
    FP8(SET(problem.a_scale.type, HALFBYTE_TYPE_BF16), INVALID,
        "problem.a_scale.type = bf16 (2): accepted for family fp8, mode 1x128: f32"),
    FP8(SET(problem.b_scale.type, HALFBYTE_TYPE_E8M0), INVALID,
        "problem.b_scale.type = e8m0 (6): accepted for family fp8, mode 128x128: f32"),
    W4A8(SET(problem.b_scale.type, HALFBYTE_TYPE_E5M2), INVALID,
         "mode k_group: f32, bf16, f16, e4m3"),
    W4A8_2(SET(problem.b_scale.type, HALFBYTE_TYPE_E4M3),
           SET(problem.b_scale.mode, HALFBYTE_SCALE_OUTER), INVALID,
           "problem.b_scale.type = e4m3 (4): accepted for family w4a8, mode outer: f32, bf16, f16"),
    W4A8(SET(problem.b_scale.mode, HALFBYTE_SCALE_NONE), INVALID,
         "problem.b_scale.type = bf16 (2): accepted for family w4a8, mode none: none"),
    FP8(SET(problem.b_scale.mode, HALFBYTE_SCALE_NONE), INVALID,
        "problem.b_scale.layout = k_major: accepted for mode none"),
    FP8(SET(problem.b_scale.mode, HALFBYTE_SCALE_TENSOR), INVALID,
        "problem.b_scale.layout = k_major: accepted for mode tensor"),
    W4A8(SET(problem.a_scale.layout, HALFBYTE_SCALE_K_MAJOR), INVALID,
         "problem.a_scale.layout = k_major: accepted for mode outer"),
    FP8(SET(problem.a_scale.layout, HALFBYTE_SCALE_INTERLEAVED4), INVALID,
        "problem.a_scale.layout = interleaved4: accepted for mode 1x128: mn_major, k_major"),
    FP8(SET(problem.weight_group_size, 128), INVALID,
        "problem.weight_group_size = 128: must be 0 unless problem.b_scale.mode is k_group (it is "
        "128x128)"),
    FP8(SET(problem.group_k_offset, 32), INVALID, "problem.group_k_offset = 32: must be 0 unless"),
    W4A8(SET(problem.group_k_offset, 128), INVALID,
         "problem.group_k_offset = 128: must be 0 or a multiple of 32 below "
         "problem.weight_group_size (128)"),
    W4A8(SET(problem.group_k_offset, 48), INVALID, "problem.group_k_offset = 48"),
    W4A8_2(SET(problem.weight_group_size, 0), SET(problem.group_k_offset, 32), INVALID,
           "problem.group_k_offset = 32: must be 0 or a multiple of 32 below"),
    W4A8_2(SET(problem.a_scale.mode, HALFBYTE_SCALE_1X128), SET(problem.group_k_offset, 64),
           INVALID, "problem.group_k_offset = 64: must be 0 if problem.a_scale.mode is 1x128"),
    W4A8(SET(problem.b_scale.layout, HALFBYTE_SCALE_INTERLEAVED4), INVALID,
         "problem.b_scale.layout = interleaved4: the number of k groups, 2, must be a multiple of "
         "4"),
    PACKED(SET(problem.k, 256), INVALID, "the number of k groups, 5, must be a multiple of 4"),
    FP8(SET(problem.k_splits, 3), INVALID, "problem.k_splits = 3: must be in [0, 2]"),
    FP8_2(SET(problem.k, 0), SET(problem.k_splits, 2), INVALID,
          "problem.k_splits = 2: must be in [0, 1]"),
    W4A8_2(SET(problem.weight_group_size, 32), SET(problem.k_splits, 9), INVALID,
           "problem.k_splits = 9: must be in [0, 8]"),
    W4A8(SET(problem.k, 272), UNSUPPORTED,
         "problem.k = 272: must be a multiple of 32 (family w4a8, profile sm90)"),
    W4A8(SET(problem.n, 36), UNSUPPORTED,
         "problem.n = 36: must be a multiple of 8 (family w4a8, profile sm90)"),
};

static const call_field fields[] = {
    FIELD(problem.struct_size),
    FIELD(problem.family),
    FIELD(problem.grouping),
    FIELD(problem.m_max),
    FIELD(problem.n),
    FIELD(problem.k),
    FIELD(problem.groups),
    FIELD(problem.a_type),
    FIELD(problem.b_type),
    FIELD(problem.d_type),
    FIELD(problem.b_layout),
    FIELD(problem.a_scale.mode),
    FIELD(problem.a_scale.type),
    FIELD(problem.a_scale.layout),
    FIELD(problem.b_scale.mode),
    FIELD(problem.b_scale.type),
    FIELD(problem.b_scale.layout),
    FIELD(problem.weight_group_size),
    FIELD(problem.group_k_offset),
    FIELD(problem.channel_scale_type),
    FIELD(problem.k_splits),
    FIELD(problem.alpha_mode),
    FIELD(problem.c_type),
    FIELD(problem.bias_type),
    FIELD(problem.index_type),
    FIELD(problem.flags),
    FIELD(problem.num_sms),
    FIELD(problem.a_alignment),
    FIELD(problem.b_alignment),
    FIELD(problem.d_alignment),
    FIELD(problem.activation),
    FIELD(problem.activation_type),
    FIELD(problem.d_scale.mode),
    FIELD(problem.d_scale.type),
    FIELD(problem.d_scale.layout),
    FIELD(problem.b_zero_point_type),
    FIELD(problem.a_prescale_type),
    FIELD(null_result),
    FIELD(null_struct),
    FIELD(null_handle),
};

static const call_field option_fields[] = {
    FIELD(options.struct_size), FIELD(options.executor), FIELD(options.profile),
    FIELD(options.ordinal),     FIELD(options.threads),  FIELD(options.isa),
    FIELD(null_result),
};

static void device_arguments(void **state)
{
    (void)state;
    assert_int_equal(COUNT(device_rows), 13); /* executor gpu: test_device.c */
    call_check_fields(option_fields, COUNT(option_fields), device_rows, COUNT(device_rows));
    call_check_rows(device_rows, COUNT(device_rows));
}

static void problem_fields(void **state)
{
    (void)state;
    assert_int_equal(COUNT(field_rows), 55);
    call_check_fields(fields, COUNT(fields), field_rows, COUNT(field_rows));
    call_check_rows(field_rows, COUNT(field_rows));
}

static void problem_combinations(void **state)
{
    (void)state;
    assert_int_equal(COUNT(combination_rows), 30);
    call_check_rows(combination_rows, COUNT(combination_rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_arguments),
        cmocka_unit_test(problem_fields),
        cmocka_unit_test(problem_combinations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
