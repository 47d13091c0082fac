/* SPDX-License-Identifier: Apache-2.0 */
/* Every argument and field of halfbyte_run(), spoiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/call.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define INVALID HALFBYTE_ERR_INVALID_ARGUMENT
#define MISALIGNED HALFBYTE_ERR_MISALIGNED
#define ANY SET(options.profile, HALFBYTE_PROFILE_ANY)
#define WITH_C SET(problem.c_type, HALFBYTE_TYPE_F32), SET(operands.beta, 0x3f800000 /* 1.0f */)
#define EIGHT_K_GROUPS SET(problem.k, 480), SET(header.k, 480), SET(operands.a.ld, 480)
#define FAR INT64_C(0x7ffffffffffffc00) /* a stride that overflows and is a multiple of 1024 */

/* Rows: the valid call, the edits, status and part of the sentence. */
#define FP8(edit, status, message)                                                                 \
    {                                                                                              \
        STEP_RUN, BASE_FP8, {edit}, status, message                                                \
    }
#define W4A8(edit, status, message)                                                                \
    {                                                                                              \
        STEP_RUN, BASE_W4A8, {edit}, status, message                                               \
    }
#define MASKED(edit, status, message)                                                              \
    {                                                                                              \
        STEP_RUN, BASE_MASKED, {edit}, status, message                                             \
    }
#define LABELS(edit, status, message)                                                              \
    {                                                                                              \
        STEP_RUN, BASE_LABELS, {edit}, status, message                                             \
    }
#define PACKED(edit, status, message)                                                              \
    {                                                                                              \
        STEP_RUN, BASE_PACKED, {edit}, status, message                                             \
    }
#define ROW2(base, first, second, status, message)                                                 \
    {                                                                                              \
        STEP_RUN, base, {first, second}, status, message                                           \
    }

static const call_row call_rows[] = {
    FP8(SET(null_handle, 1), INVALID, "plan = NULL: must be a plan"),
    FP8(SET(null_struct, 1), INVALID, "operands = NULL: must point to a halfbyte_operands"),
    FP8(SET(operands.struct_size, 0), INVALID, "operands.struct_size = 0"),
    FP8(ADD(operands.struct_size, -8), INVALID, "halfbyte_operands_init()"),
    PACKED(ADD(operands.struct_size, 32), HALFBYTE_ERR_UNSUPPORTED,
           "is not zero, but this library"),
    FP8(SET(operands.m, -1), INVALID, "operands.m = -1: must be in [0, 24] (problem.m_max)"),
    FP8(SET(operands.m, 25), INVALID, "operands.m = 25: must be in [0, 24] (problem.m_max)"),
    FP8(SET(operands.expected_m, -1), INVALID, "operands.expected_m = -1: must be at least 0"),
    FP8(SET(stream, 64), INVALID, "stream = 0x40: must be NULL"),
    FP8(SET(workspace_bytes, 256), INVALID,
        "workspace = NULL: must point to workspace_bytes = 256"),
    FP8(SET(workspace, 128), MISALIGNED, "workspace = 0x80: must be a multiple of 256 bytes"),
};

static const call_row matrix_rows[] = {
    FP8(SET(operands.a.data, 0), INVALID, "operands.a = NULL"),
    FP8(ADD(operands.a.data, 8), MISALIGNED, "must be aligned to 16 bytes"),
    FP8(SET(operands.a.ld, 240), INVALID, "operands.a.ld = 240: must be at least 256"),
    FP8(SET(operands.a.ld, -256), INVALID, "operands.a.ld = -256: must be at least 256"),
    FP8(SET(operands.a.ld, 264), MISALIGNED, "operands.a.ld = 264: must be a multiple of 16"),
    FP8(SET(operands.a.ld, FAR), INVALID, "operands.a.ld = 9223372036854774784"),
    MASKED(SET(operands.a.group_stride, 0), INVALID,
           "operands.a.group_stride = 0: groups would overlap"),
    MASKED(SET(operands.a.group_stride, -6144), INVALID,
           "operands.a.group_stride = -6144: must be at least 0"),
    MASKED(ADD(operands.a.group_stride, 8), MISALIGNED,
           "operands.a.group_stride = 6152: must be a multiple of 16"),
    MASKED(SET(operands.a.group_stride, FAR), INVALID,
           "group_stride = 9223372036854774784: the tensor would not fit"),
    FP8(SET(operands.b.data, 0), INVALID, "operands.b = NULL"),
    W4A8(ADD(operands.b.data, 4), MISALIGNED, "must be aligned to 16 bytes"),
    FP8(SET(operands.b.ld, 255), INVALID, "operands.b.ld = 255: must be at least 256"),
    W4A8(SET(operands.b.ld, 272), MISALIGNED, "operands.b.ld = 272: must be a multiple of 32"),
    ROW2(BASE_W4A8, ANY, SET(operands.b.ld, 257), MISALIGNED,
         "operands.b.ld = 257: must be a multiple of 2"),
    W4A8(SET(operands.b.ld, FAR), INVALID, "operands.b.ld = 9223372036854774784"),
    W4A8(SET(operands.b.group_stride, 0), INVALID,
         "operands.b.group_stride = 0: groups would overlap"),
    W4A8(ADD(operands.b.group_stride, 16), MISALIGNED, "must be a multiple of 32"),
    W4A8(SET(operands.b.group_stride, FAR), INVALID, "the tensor would not fit"),
    FP8(SET(operands.d.data, 0), INVALID, "operands.d = NULL"),
    FP8(ADD(operands.d.data, 1), MISALIGNED, "must be aligned to 2 bytes"),
    ROW2(BASE_FP8, SET(problem.d_alignment, 64), ADD(operands.d.data, 32), MISALIGNED,
         "must be aligned to 64 bytes"),
    FP8(SET(operands.d.ld, 31), INVALID, "operands.d.ld = 31: must be at least 32"),
    ROW2(BASE_FP8, SET(problem.d_alignment, 64), SET(operands.d.ld, 48), MISALIGNED,
         "operands.d.ld = 48: must be a multiple of 32"),
    FP8(SET(operands.d.ld, FAR), INVALID, "operands.d.ld = 9223372036854774784"),
    MASKED(SET(operands.d.group_stride, 767), INVALID,
           "operands.d.group_stride = 767: groups would overlap; must be at least 768"),
    MASKED(SET(operands.d.group_stride, -1), INVALID, "operands.d.group_stride = -1"),
    FP8(SET(operands.c.data, 0), INVALID, "operands.c = NULL"),
    FP8(ADD(operands.c.data, 1), MISALIGNED, "must be aligned to 2 bytes"),
    FP8(SET(operands.c.ld, 31), INVALID, "operands.c.ld = 31: must be at least 32"),
    {STEP_RUN,
     BASE_MASKED,
     {WITH_C, SET(operands.c.group_stride, 0)},
     INVALID,
     "operands.c.group_stride = 0: groups would overlap"},
    ROW2(BASE_FP8, SET(problem.a_alignment, 512), SET(operands.a.ld, 256), MISALIGNED,
         "operands.a.ld = 256: must be a multiple of 512"),
    ROW2(BASE_FP8, SET(problem.b_alignment, 128), ADD(operands.b.data, 64), MISALIGNED,
         "must be aligned to 128 bytes"),
};

/* D in place of an input: only C may be D, and only all of it. */
static const call_row overlap_rows[] = {
    FP8(COPY(operands.a.data, operands.d.data), INVALID, "overlaps operands.a"),
    FP8(COPY(operands.b.data, operands.d.data), INVALID, "overlaps operands.b"),
    FP8(COPY(operands.a_scale.data, operands.d.data), INVALID, "overlaps operands.a_scale"),
    FP8(COPY(operands.b_scale.data, operands.d.data), INVALID, "overlaps operands.b_scale"),
    FP8(COPY(operands.bias.data, operands.d.data), INVALID, "overlaps operands.bias"),
    W4A8(COPY(operands.channel_scale.data, operands.d.data), INVALID,
         "overlaps operands.channel_scale"),
    W4A8(COPY(operands.alpha_pointer, operands.d.data), INVALID, "overlaps operands.alpha_pointer"),
    W4A8(COPY(operands.groups.starts, operands.d.data), INVALID, "overlaps operands.groups.starts"),
    W4A8(COPY(operands.groups.ends, operands.d.data), INVALID, "overlaps operands.groups.ends"),
    MASKED(COPY(operands.groups.counts, operands.d.data), INVALID,
           "overlaps operands.groups.counts"),
    LABELS(COPY(operands.groups.labels, operands.d.data), INVALID,
           "overlaps operands.groups.labels"),
    PACKED(COPY(operands.b.data, operands.d.data), INVALID, "overlaps operands.b"),
    ROW2(BASE_FP8, COPY(operands.c.data, operands.d.data), ADD(operands.c.data, 64), INVALID,
         "overlaps operands.c"),
    ROW2(BASE_FP8, COPY(operands.c.data, operands.d.data), SET(operands.c.ld, 40), INVALID,
         "operands.c.ld = 40: must be operands.d.ld (32)"),
    ROW2(BASE_FP8, SET(problem.c_type, HALFBYTE_TYPE_F16), COPY(operands.c.data, operands.d.data),
         INVALID, "is operands.d too, but problem.c_type = f16 and problem.d_type = bf16"),
    {STEP_RUN,
     BASE_MASKED,
     {WITH_C, COPY(operands.c.data, operands.d.data), SET(operands.c.group_stride, 800)},
     INVALID,
     "operands.c.group_stride = 800: must be operands.d.group_stride (768)"},
};

static const call_row scale_rows[] = {
    FP8(SET(operands.a_scale.data, 0), INVALID, "operands.a_scale = NULL"),
    FP8(ADD(operands.a_scale.data, 2), MISALIGNED, "must be aligned to 4 bytes"),
    FP8(SET(operands.a_scale.stride_mn, 2), INVALID,
        "operands.a_scale.stride_mn = 2: must be 1 (or 0, which stands for 1) with mode 1x128, "
        "layout mn_major"),
    FP8(SET(operands.a_scale.stride_k, 23), INVALID,
        "operands.a_scale.stride_k = 23: must be at least 24"),
    FP8(SET(operands.a_scale.stride_k, INT64_MAX), INVALID,
        "operands.a_scale.stride_k = 9223372036854775807"),
    W4A8(SET(operands.a_scale.stride_mn, 24), INVALID,
         "operands.a_scale.stride_mn = 24: must be 1 (or 0, which stands for 1) with mode outer"),
    MASKED(SET(operands.a_scale.stride_mn, 1), INVALID,
           "operands.a_scale.stride_mn = 1: must be at least 2"),
    MASKED(SET(operands.a_scale.stride_k, 24), INVALID,
           "operands.a_scale.stride_k = 24: must be 1 (or 0, which stands for 1) with mode 1x128, "
           "layout k_major"),
    MASKED(SET(operands.a_scale.group_stride, 47), INVALID,
           "operands.a_scale.group_stride = 47: groups would overlap; must be at least 48"),
    LABELS(SET(operands.a_scale.group_stride, -1), INVALID,
           "operands.a_scale.group_stride = -1: must be 0 (all groups share it) or at least 1"),
    LABELS(SET(operands.a_scale.group_stride, INT64_MAX), INVALID,
           "group_stride = 9223372036854775807: the tensor would not fit"),
    FP8(SET(operands.b_scale.data, 0), INVALID, "operands.b_scale = NULL"),
    W4A8(ADD(operands.b_scale.data, 1), MISALIGNED, "must be aligned to 2 bytes"),
    W4A8(SET(operands.b_scale.stride_mn, 2), INVALID,
         "operands.b_scale.stride_mn = 2: must be 1 (or 0, which stands for 1) with mode k_group"),
    W4A8(SET(operands.b_scale.stride_k, 31), INVALID,
         "operands.b_scale.stride_k = 31: must be at least 32"),
    {STEP_RUN,
     BASE_PACKED,
     {EIGHT_K_GROUPS, SET(operands.b_scale.stride_k, 124)},
     INVALID,
     "operands.b_scale.stride_k = 124: must be at least 128"},
    {STEP_RUN,
     BASE_PACKED,
     {EIGHT_K_GROUPS, SET(operands.b_scale.stride_k, 130)},
     MISALIGNED,
     "operands.b_scale.stride_k = 130: must be a multiple of 4"},
    W4A8(SET(operands.b_scale.group_stride, 0), INVALID,
         "operands.b_scale.group_stride = 0: groups would overlap; must be at least 64"),
    PACKED(SET(operands.b_scale.group_stride, 127), MISALIGNED,
           "operands.b_scale.group_stride = 127: must be a multiple of 4"),
    LABELS(SET(operands.b_scale.group_stride, -4), INVALID,
           "operands.b_scale.group_stride = -4: must be 0"),
    W4A8(SET(operands.channel_scale.data, 0), INVALID, "operands.channel_scale = NULL"),
    W4A8(ADD(operands.channel_scale.data, 2), MISALIGNED, "must be aligned to 4 bytes"),
    W4A8(
        SET(operands.channel_scale.group_stride, 31), INVALID,
        "operands.channel_scale.group_stride = 31: must be 0 (all groups share it) or at least 32"),
    FP8(SET(operands.bias.data, 0), INVALID, "operands.bias = NULL"),
    FP8(ADD(operands.bias.data, 2), MISALIGNED, "must be aligned to 4 bytes"),
    W4A8(SET(operands.bias.group_stride, -32), INVALID, "operands.bias.group_stride = -32"),
    W4A8(SET(operands.bias.group_stride, INT64_MAX), INVALID, "the tensor would not fit"),
    W4A8(SET(operands.alpha_pointer, 0), INVALID, "operands.alpha_pointer = NULL"),
    W4A8(ADD(operands.alpha_pointer, 1), MISALIGNED, "must be aligned to 4 bytes"),
};

static const call_row packed_rows[] = {
    PACKED(SET(operands.b_header, 0), INVALID, "operands.b_header = NULL"),
    PACKED(SET(operands.b.data, 0), INVALID, "operands.b = NULL"),
    PACKED(ADD(operands.b.data, 8), MISALIGNED, "must be aligned to 16 bytes"),
    ROW2(BASE_PACKED, ANY, ADD(operands.b.data, 8), MISALIGNED, "must be aligned to 16 bytes"),
    PACKED(SET(header.version, 2), HALFBYTE_ERR_UNSUPPORTED,
           "operands.b_header.version = 2: accepted: 1"),
    PACKED(SET(header.flags, 4), INVALID, "operands.b_header.flags = 0x4: accepted bits: 0x3"),
    PACKED(SET(header.flags, HALFBYTE_PACKED_GATE_UP_ROWS), INVALID,
           "operands.b_header.flags = 0x2: gate and up rows are interleaved"),
    PACKED(SET(header.n, 64), INVALID,
           "operands.b_header.n = 64: the weights were packed for another problem; accepted: 32"),
    PACKED(SET(header.k, 256), INVALID, "operands.b_header.k = 256"),
    PACKED(SET(header.groups, 3), INVALID, "operands.b_header.groups = 3"),
    PACKED(SET(header.group_k_offset, 0), INVALID, "operands.b_header.group_k_offset = 0"),
    PACKED(SET(header.weight_group_size, 128), INVALID,
           "operands.b_header.weight_group_size = 128"),
    PACKED(SET(header.scale_type, HALFBYTE_TYPE_BF16), INVALID,
           "operands.b_header.scale_type = bf16 (2)"),
    PACKED(SET(header.reserved, 1), INVALID, "operands.b_header.reserved = 1"),
};

static const call_row group_rows[] = {
    FP8(SET(operands.groups.labels, 64), INVALID,
        "operands.groups has labels: accepted where problem.grouping is dense: no array"),
    FP8(SET(operands.groups.counts, 64), INVALID, "operands.groups has counts"),
    W4A8(SET(operands.groups.ends, 0), INVALID,
         "operands.groups has starts: accepted where problem.grouping is ranges: starts and ends"),
    W4A8(SET(operands.groups.counts, 64), INVALID, "operands.groups has starts ends counts"),
    W4A8(SET(operands.groups.labels, 64), INVALID, "operands.groups has starts ends labels"),
    ROW2(BASE_W4A8, SET(operands.groups.starts, 0), SET(operands.groups.ends, 0), INVALID,
         "operands.groups has no array"),
    MASKED(SET(operands.groups.starts, 64), INVALID,
           "operands.groups has starts counts: accepted where problem.grouping is masked: counts, "
           "or no array"),
    MASKED(SET(operands.groups.ends, 64), INVALID, "operands.groups has ends counts"),
    LABELS(SET(operands.groups.labels, 0), INVALID,
           "operands.groups has no array: accepted where problem.grouping is labels: labels"),
    LABELS(SET(operands.groups.counts, 64), INVALID, "operands.groups has counts labels"),
    W4A8(ADD(operands.groups.starts, 2), MISALIGNED, "must be aligned to 4 bytes"),
    W4A8(ADD(operands.groups.ends, 1), MISALIGNED, "must be aligned to 4 bytes"),
    MASKED(ADD(operands.groups.counts, 4), MISALIGNED, "must be aligned to 8 bytes"),
    LABELS(ADD(operands.groups.labels, 2), MISALIGNED, "must be aligned to 4 bytes"),
    W4A8(SET(operands.groups.starts_stride, -1), INVALID,
         "operands.groups.starts_stride = -1: must be at least 0"),
    W4A8(SET(operands.groups.ends_stride, INT64_MIN), INVALID,
         "operands.groups.ends_stride = -9223372036854775808"),
    W4A8(SET(operands.groups.ends_stride, INT64_MAX), INVALID,
         "operands.groups.ends.stride = 9223372036854775807"),
    MASKED(SET(operands.groups.counts_stride, INT64_C(1) << 60), INVALID,
           "operands.groups.counts.stride = 1152921504606846976"),
};

static const call_field call_fields[] = {
    FIELD(null_handle),         FIELD(null_struct), FIELD(operands.struct_size), FIELD(operands.m),
    FIELD(operands.expected_m), FIELD(stream),      FIELD(workspace_bytes),      FIELD(workspace),
};

static const call_field matrix_fields[] = {
    FIELD(operands.a.data), FIELD(operands.a.ld), FIELD(operands.a.group_stride),
    FIELD(operands.b.data), FIELD(operands.b.ld), FIELD(operands.b.group_stride),
    FIELD(operands.c.data), FIELD(operands.c.ld), FIELD(operands.c.group_stride),
    FIELD(operands.d.data), FIELD(operands.d.ld), FIELD(operands.d.group_stride),
};

static const call_field scale_fields[] = {
    FIELD(operands.a_scale.data),       FIELD(operands.a_scale.stride_mn),
    FIELD(operands.a_scale.stride_k),   FIELD(operands.a_scale.group_stride),
    FIELD(operands.b_scale.data),       FIELD(operands.b_scale.stride_mn),
    FIELD(operands.b_scale.stride_k),   FIELD(operands.b_scale.group_stride),
    FIELD(operands.channel_scale.data), FIELD(operands.channel_scale.group_stride),
    FIELD(operands.bias.data),          FIELD(operands.bias.group_stride),
    FIELD(operands.alpha_pointer),
};

static const call_field packed_fields[] = {
    FIELD(operands.b_header),
    FIELD(header.version),
    FIELD(header.flags),
    FIELD(header.n),
    FIELD(header.k),
    FIELD(header.groups),
    FIELD(header.scale_type),
    FIELD(header.group_k_offset),
    FIELD(header.weight_group_size),
    FIELD(header.reserved),
};

static const call_field group_fields[] = {
    FIELD(operands.groups.starts),        FIELD(operands.groups.ends),
    FIELD(operands.groups.counts),        FIELD(operands.groups.labels),
    FIELD(operands.groups.starts_stride), FIELD(operands.groups.ends_stride),
    FIELD(operands.groups.counts_stride),
};

static void check(const call_row *rows, size_t count, size_t expected, const call_field *fields,
                  size_t field_count)
{
    assert_int_equal(count, expected);
    call_check_fields(fields, field_count, rows, count);
    call_check_rows(rows, count);
}

#define TABLE_TEST(name, expected)                                                                 \
    static void name##_arguments(void **state)                                                     \
    {                                                                                              \
        (void)state;                                                                               \
        check(name##_rows, COUNT(name##_rows), expected, name##_fields, COUNT(name##_fields));     \
    }
TABLE_TEST(call, 11)
TABLE_TEST(matrix, 33)
TABLE_TEST(scale, 29)
TABLE_TEST(packed, 14)
TABLE_TEST(group, 18)

static void overlap(void **state)
{
    (void)state;
    assert_int_equal(COUNT(overlap_rows), 16);
    call_check_rows(overlap_rows, COUNT(overlap_rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_arguments),   cmocka_unit_test(matrix_arguments),
        cmocka_unit_test(overlap),          cmocka_unit_test(scale_arguments),
        cmocka_unit_test(packed_arguments), cmocka_unit_test(group_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
