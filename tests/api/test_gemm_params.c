/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels are told of a problem: where scales of four k groups may be one load, and where
 * each may be read with all of its word.  Each row changes one thing of a problem that has them so;
 * a flag too many is a misaligned load, or one past a tensor's end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/gemm_launch.h"

enum { N = 192, K = 1024, GROUPS = 3 };

typedef struct scale_case {
    const char *what;
    halfbyte_scale_layout layout;
    halfbyte_type type;
    int64_t weight_group_size;
    int64_t groups;
    uintptr_t data;
    int64_t stride_mn, stride_k, group_stride;
    bool by_four, by_word;
} scale_case;

#define BASE 0x7f0000000100u

static const scale_case cases[] = {
    {"along k", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 128, GROUPS, BASE, 8, 1, 1536, true,
     false},
    {"f16", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_F16, 128, GROUPS, BASE, 8, 1, 1536, true, false},
    {"f32", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_F32, 128, GROUPS, BASE, 8, 1, 1536, true, true},
    {"e4m3", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_E4M3, 128, GROUPS, BASE, 8, 1, 1536, true,
     false},
    {"a gap of four", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 128, 1, BASE, 12, 1, 0, true,
     false},
    {"a gap of one", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 128, 1, BASE, 9, 1, 0, false,
     false},
    {"a gap of two", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_F32, 128, 1, BASE, 10, 1, 0, false,
     true},
    {"groups apart by an odd number", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 128, GROUPS, BASE,
     8, 1, 1537, false, false},
    {"one group, whatever its stride", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 128, 1, BASE, 8,
     1, 1537, true, false},
    {"all groups the same scales", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 128, GROUPS, BASE, 8,
     1, 0, true, false},
    {"bf16 at 4 bytes", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 128, 1, BASE + 4, 8, 1, 0,
     false, false},
    {"e4m3 at 4 bytes", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_E4M3, 128, 1, BASE + 4, 8, 1, 0, true,
     false},
    {"e4m3 at 2 bytes", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_E4M3, 128, 1, BASE + 2, 8, 1, 0,
     false, false},
    {"f32 at 8 bytes", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_F32, 128, 1, BASE + 8, 8, 1, 0, false,
     true},
    {"interleaved", HALFBYTE_SCALE_INTERLEAVED4, HALFBYTE_TYPE_BF16, 128, GROUPS, BASE, 4, 768,
     1536, true, false},
    {"along n", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_BF16, 128, GROUPS, BASE, 1, 192, 1536, false,
     true},
    {"along n, f16", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_F16, 128, GROUPS, BASE + 4, 1, 194,
     1552, false, true},
    {"along n, e4m3", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_E4M3, 128, GROUPS, BASE + 4, 1, 196,
     1568, false, true},
    {"along n, f32", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_F32, 128, GROUPS, BASE + 4, 1, 193,
     1545, false, true},
    {"along n, a gap of one", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_BF16, 128, 1, BASE, 1, 193, 0,
     false, false},
    {"along n, e4m3, a gap of two", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_E4M3, 128, 1, BASE, 1,
     194, 0, false, false},
    {"along n, bf16 at 2 bytes", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_BF16, 128, 1, BASE + 2, 1,
     192, 0, false, false},
    {"along n, groups apart by an odd number", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_BF16, 128,
     GROUPS, BASE, 1, 192, 1537, false, false},
    {"along n, one group, whatever its stride", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_BF16, 128, 1,
     BASE, 1, 192, 1537, false, true},
    {"f32 interleaved", HALFBYTE_SCALE_INTERLEAVED4, HALFBYTE_TYPE_F32, 128, 1, BASE + 4, 4, 768, 0,
     false, false},
    {"one scale for all of k", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 0, GROUPS, BASE, 4, 1,
     768, false, false},
    {"one for all of k, along n", HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_TYPE_BF16, 0, GROUPS, BASE, 1,
     192, 192, false, true},
    {"one for all of k, f32", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_F32, 0, GROUPS, BASE, 4, 1, 768,
     false, true},
    {"none", HALFBYTE_SCALE_K_MAJOR, HALFBYTE_TYPE_BF16, 128, 1, 0, 8, 1, 0, false, false},
};

static int32_t flags_of_case(const scale_case *c)
{
    static const halfbyte_packed_header header;
    halfbyte_problem problem = halfbyte_problem_init();
    halfbyte_operands operands = halfbyte_operands_init();
    gemm_params params;
    problem.family = HALFBYTE_FAMILY_W4A8;
    problem.n = N;
    problem.k = K;
    problem.groups = c->groups;
    problem.weight_group_size = c->weight_group_size;
    problem.b_scale = (halfbyte_scale_spec){HALFBYTE_SCALE_K_GROUP, c->type, c->layout};
    operands.b_header = &header;
    operands.b_scale =
        (halfbyte_scale_in){(const void *)c->data, c->stride_mn, c->stride_k, c->group_stride};
    gemm_params_fill(&problem, &operands, &params);
    return params.flags;
}

static void test_scale_flags(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int32_t flags = flags_of_case(&cases[i]);
        const bool by_four = (flags & GEMM_SCALES_BY_FOUR) != 0;
        const bool by_word = (flags & GEMM_SCALES_BY_WORD) != 0;
        if (by_four != cases[i].by_four || by_word != cases[i].by_word) {
            fail_msg("%s: by four: %d, by word: %d", cases[i].what, by_four, by_word);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
