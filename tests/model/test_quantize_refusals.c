/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that cannot be quantised: named by position, for every caller, and nothing written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "halfbyte.h"
#include "model/callers.h"
#include "model/quantize_reference.h"

enum { GROUPS = 2, N = 150, K = 200, POISON = 0xa5 };

static float src[GROUPS * N * K];
static uint8_t dst[GROUPS * N * K];
static float scales[GROUPS * N * K];
static callers all_callers;

/* Ordinary weights everywhere, and outputs that show a write. */
static halfbyte_weight_quantization weights_make(halfbyte_type type, int64_t weight_group_size,
                                                 halfbyte_type scale_type)
{
    halfbyte_weight_quantization a = halfbyte_weight_quantization_init();

    a.type = type;
    a.src_type = HALFBYTE_TYPE_F32;
    a.scale_type = scale_type;
    a.weight_group_size = weight_group_size;
    a.n = N;
    a.k = K;
    a.groups = GROUPS;
    a.src = (halfbyte_matrix_in){src, K, N * K};
    a.dst = (halfbyte_matrix_out){dst, K, N * K};
    a.scale.data = scales;
    a.scale.stride_k = N;
    a.scale.group_stride = N * K;
    for (int i = 0; i < GROUPS * N * K; i++) {
        src[i] = 0.5f;
    }
    memset(dst, POISON, sizeof dst);
    memset(scales, POISON, sizeof scales);
    return a;
}

static float *weight_at(int64_t group, int64_t row, int64_t column)
{
    return &src[(group * N + row) * K + column];
}

/* Zeros in rows [row, row_end), columns [column, column_end), but for a value in the middle. */
static void isolate(int64_t group, int64_t row, int64_t row_end, int64_t column, int64_t column_end,
                    float value)
{
    for (int64_t i = row; i < row_end; i++) {
        for (int64_t j = column; j < column_end; j++) {
            *weight_at(group, i, j) = 0;
        }
    }
    *weight_at(group, (row + row_end) / 2, (column + column_end) / 2) = value;
}

/* Every caller must be refused in these words. */
static void refusal_check(const halfbyte_weight_quantization *a, const char *where,
                          const char *what)
{
    int wrong = 0;

    for (int caller = 0; caller < CALLERS; caller++) {
        const fp_env before = fp_env_save();
        caller_environment_set(caller);
        const halfbyte_status status =
            halfbyte_quantize_weights(caller_device(&all_callers, caller), a);
        fp_env_restore(before);
        assert_int_equal(status, HALFBYTE_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(halfbyte_last_error(), where));
        assert_non_null(strstr(halfbyte_last_error(), what));
    }
    for (size_t i = 0; i < sizeof dst; i++) {
        wrong += !(dst[i] == POISON);
    }
    for (size_t i = 0; i < sizeof scales; i++) {
        wrong += !(((const uint8_t *)scales)[i] == POISON);
    }
    assert_int_equal(wrong, 0);
}

static void test_not_finite(void **state)
{
    static const uint32_t bad[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xff800001};
    (void)state;

    for (int type = 0; type < 2; type++) {
        for (int i = 0; i < 4; i++) {
            const halfbyte_weight_quantization a =
                type == 0 ? weights_make(HALFBYTE_TYPE_INT4, 64, HALFBYTE_TYPE_BF16)
                          : weights_make(HALFBYTE_TYPE_E4M3, 0, HALFBYTE_TYPE_NONE);
            memcpy(weight_at(1, 147, 199), &bad[i], sizeof bad[i]);
            refusal_check(&a, "group 1, row 147, column 199", "must be finite");
            memcpy(weight_at(1, 147, 5), &bad[i], sizeof bad[i]);
            refusal_check(&a, "group 1, row 147, column 5 ", "must be finite");
            memcpy(weight_at(0, 149, 198), &bad[i], sizeof bad[i]);
            refusal_check(&a, "group 0, row 149, column 198", "must be finite");
        }
    }
}

/* 16-bit sources are judged by their own infinities. */
static void test_not_finite_16_bits(void **state)
{
    (void)state;
    for (int type = HALFBYTE_TYPE_BF16; type <= HALFBYTE_TYPE_F16; type++) {
        halfbyte_weight_quantization a = weights_make(HALFBYTE_TYPE_INT4, 32, HALFBYTE_TYPE_F32);
        static uint16_t codes[GROUPS * N * K];
        for (int i = 0; i < GROUPS * N * K; i++) {
            codes[i] = (uint16_t)reference_code((halfbyte_type)type, -0.25);
        }
        codes[(N + 3) * K + 77] = (uint16_t)reference_code((halfbyte_type)type, -INFINITY);
        a.src_type = (halfbyte_type)type;
        a.src.data = codes;
        refusal_check(&a, "group 1, row 3, column 77 is -inf", "must be finite");
    }
}

static void test_scale_not_representable(void **state)
{
    halfbyte_weight_quantization a = weights_make(HALFBYTE_TYPE_INT4, 64, HALFBYTE_TYPE_F16);
    (void)state;

    isolate(1, 2, 3, 128, 192, 0x1p-120f);
    refusal_check(&a, "group 1, rows [2, 3), columns [128, 192)", "rounds to zero in f16");
    *weight_at(0, 149, 199) = -1e6f;
    refusal_check(&a, "group 0, rows [149, 150), columns [192, 200)", "overflows in f16");

    a = weights_make(HALFBYTE_TYPE_INT4, 0, HALFBYTE_TYPE_F16);
    *weight_at(0, 3, 7) = 1e6f;
    refusal_check(&a, "group 0, rows [3, 4), columns [0, 200)", "overflows in f16");

    for (int type = HALFBYTE_TYPE_F32; type <= HALFBYTE_TYPE_BF16; type++) {
        a = weights_make(HALFBYTE_TYPE_INT4, 32, (halfbyte_type)type);
        isolate(1, 0, 1, 32, 64, 0x1p-149f);
        refusal_check(&a, "group 1, rows [0, 1), columns [32, 64)", "rounds to zero");
    }

    a = weights_make(HALFBYTE_TYPE_E4M3, 0, HALFBYTE_TYPE_F32);
    isolate(1, 128, 150, 128, 200, 0x1p-149f);
    refusal_check(&a, "group 1, rows [128, 150), columns [128, 200)", "rounds to zero in f32");

    /* the smallest that has a scale, which is the smallest subnormal */
    a = weights_make(HALFBYTE_TYPE_E4M3, 0, HALFBYTE_TYPE_F32);
    isolate(1, 128, 150, 128, 200, 225 * 0x1p-149f);
    assert_int_equal(halfbyte_quantize_weights(NULL, &a), HALFBYTE_SUCCESS);
    assert_true(scales[N * K + N + 1] == 0x1p-149f);
    assert_int_equal(dst[(N + 139) * K + 164], reference_e4m3(225));
}

/* A group of zeros has scale 0 and is no reason to refuse; a block of zeros has scale 1. */
static void test_zeros(void **state)
{
    halfbyte_weight_quantization a = weights_make(HALFBYTE_TYPE_INT4, 32, HALFBYTE_TYPE_F32);
    (void)state;

    isolate(0, 5, 6, 32, 64, -0.0f);
    assert_int_equal(halfbyte_quantize_weights(NULL, &a), HALFBYTE_SUCCESS);
    assert_true(scales[N + 5] == 0 && !signbit(scales[N + 5]) && scales[N + 4] > 0);
    for (int i = 16; i < 32; i++) {
        assert_int_equal(dst[5 * K / 2 + i], 0);
    }
    assert_int_equal(dst[5 * K / 2 + 32], 0x77);

    a = weights_make(HALFBYTE_TYPE_E4M3, 0, HALFBYTE_TYPE_F32);
    isolate(0, 0, 128, 128, 200, -0.0f);
    assert_int_equal(halfbyte_quantize_weights(NULL, &a), HALFBYTE_SUCCESS);
    assert_true(scales[N] == 1 && scales[0] < 1);
    assert_int_equal(dst[128], 0);
    assert_int_equal(dst[64 * K + 164], 0x80); /* -0 stays */
    assert_int_equal(dst[127], 0x7e);
}

static int everything_open(void **state)
{
    (void)state;
    return callers_open(&all_callers) ? 0 : -1;
}

static int everything_close(void **state)
{
    (void)state;
    callers_close(&all_callers);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_not_finite_16_bits),
        cmocka_unit_test(test_scale_not_representable),
        cmocka_unit_test(test_zeros),
    };
    return cmocka_run_group_tests(tests, everything_open, everything_close);
}
