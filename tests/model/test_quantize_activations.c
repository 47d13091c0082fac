/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte_quantize_activations against the formulas in double: every mode, source type, layout and
 * flag, ragged shapes, padded strides and special values; each in three floating-point environments
 * of the caller and with 1, 2 and 7 threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "halfbyte.h"
#include "model/callers.h"
#include "model/quantize_reference.h"
#include "oracle/splitmix.h"

enum { POISON = 0xa5, PAD = 5, BLOCK = 128 };

/* What the values look like. */
typedef enum fill {
    FILL_NORMAL,       /* around 1, some zeros */
    FILL_SPECIAL,      /* NaN, infinities, subnormals, largest values in between */
    FILL_TINY,         /* below every epsilon */
    FILL_ZERO_ROW,     /* every other row zero, signs mixed */
    FILL_SPECIAL_ONLY, /* nothing finite */
    FILLS
} fill;

typedef struct shape {
    int64_t m, k;
} shape;

typedef struct matrix {
    halfbyte_type type;
    int64_t m, k, ld;
    void *data; /* exact size: a read beyond it shows under the sanitizers */
    double *values;
} matrix;

static callers all_callers;

static uint32_t random_code(struct random *r, halfbyte_type type, fill kind, int64_t row)
{
    static const uint32_t special[2][8] = {
        {0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x00000001, 0x807fffff, 0x7f7fffff, 0},
        {0x7c00, 0xfc00, 0x7e00, 0xffff, 0x0001, 0x83ff, 0x7bff, 0x7f80}};
    const int wide = type == HALFBYTE_TYPE_F32 ? 0 : 1;
    const uint32_t sign = random_percent(r, 50) ? (wide == 0 ? 0x80000000u : 0x8000u) : 0;

    if (kind == FILL_SPECIAL_ONLY) {
        const uint32_t bf16[4] = {0x7f80, 0xff80, 0x7fc0, 0xff81};
        const int64_t i = random_below(r, 4);
        return type == HALFBYTE_TYPE_BF16 ? bf16[i] : special[wide][i];
    }
    if (kind == FILL_SPECIAL && random_percent(r, 20)) {
        return special[wide][random_below(r, 8)];
    }
    if ((kind == FILL_ZERO_ROW && row % 2 == 0) || random_percent(r, 5)) {
        return sign;
    }
    double value = ldexp((double)random_between(r, 1, 1 << 24), (int)random_between(r, -29, -22));
    value = kind == FILL_TINY ? ldexp(value, -20) : value;
    return sign | reference_code(type, reference_round(type, value));
}

static matrix matrix_make(struct random *r, halfbyte_type type, shape s, fill kind)
{
    matrix x = {.type = type, .m = s.m, .k = s.k, .ld = s.k + PAD};
    const size_t bytes = type == HALFBYTE_TYPE_F32 ? 4 : 2;
    const size_t count = (size_t)((s.m - 1) * x.ld + s.k);

    x.data = malloc(count * bytes);
    x.values = calloc(count, sizeof *x.values);
    assert_non_null(x.data);
    assert_non_null(x.values);
    memset(x.data, 0xff, count * bytes); /* the gaps hold NaN */
    for (int64_t row = 0; row < s.m; row++) {
        for (int64_t i = row * x.ld; i < row * x.ld + s.k; i++) {
            const uint32_t code = random_code(r, type, kind, row);
            x.values[i] = reference_decode(type, code);
            if (bytes == 4) {
                ((uint32_t *)x.data)[i] = code;
            } else {
                ((uint16_t *)x.data)[i] = (uint16_t)code;
            }
        }
    }
    return x;
}

static void matrix_free(matrix *x)
{
    free(x->data);
    free(x->values);
}

/* ---- what must come out ---------------------------------------------------------------------- */

typedef struct result {
    size_t q_bytes, scale_bytes;
    uint8_t *q;
    float *scales;
} result;

static result result_make(size_t q_bytes, size_t scale_count)
{
    result out = {q_bytes, scale_count * sizeof(float), malloc(q_bytes + 1), NULL};
    out.scales = malloc(out.scale_bytes + 1);
    assert_non_null(out.q);
    assert_non_null(out.scales);
    memset(out.q, POISON, q_bytes);
    memset(out.scales, POISON, out.scale_bytes);
    return out;
}

static void result_free(result *out)
{
    free(out->q);
    free(out->scales);
}

/* The scale of rows [row, row_end) and columns [column, column_end). */
static double expected_scale(const halfbyte_activation_quantization *a, const matrix *x,
                             int64_t row, int64_t row_end, int64_t column, int64_t column_end)
{
    double amax = 0;

    for (int64_t i = row; i < row_end; i++) {
        for (int64_t j = column; j < column_end && j < x->k; j++) {
            const double value = fabs(x->values[i * x->ld + j]);
            amax = isfinite(value) && value > amax ? value : amax;
        }
    }
    const double epsilon = a->epsilon == 0 ? (double)1e-4f : (double)a->epsilon;
    const double scale = reference_divide(amax > epsilon ? amax : epsilon, 448);
    return (a->flags & HALFBYTE_QUANTIZE_POWER_OF_TWO) != 0 ? reference_power_of_two(scale) : scale;
}

static void expected_store(const matrix *x, result *out, int64_t row, int64_t column,
                           int64_t columns, double scale)
{
    for (int64_t j = column; j < column + columns && j < x->k; j++) {
        const double value = x->values[row * x->ld + j];
        const double quotient = isfinite(value) ? reference_divide(value, scale) : value / scale;
        out->q[row * x->ld + j] = reference_e4m3(quotient);
    }
}

static void scale_store(float *to, double scale)
{
    const uint32_t code = reference_code(HALFBYTE_TYPE_F32, scale);
    memcpy(to, &code, sizeof code);
}

static void expected_make(const halfbyte_activation_quantization *a, const matrix *x, result *out)
{
    const bool is_static = (a->flags & HALFBYTE_QUANTIZE_STATIC) != 0;

    if (a->mode == HALFBYTE_SCALE_TENSOR) {
        const double scale =
            is_static ? (double)out->scales[0] : expected_scale(a, x, 0, x->m, 0, x->k);
        scale_store(out->scales, scale);
        for (int64_t row = 0; row < x->m; row++) {
            expected_store(x, out, row, 0, x->k, scale);
        }
        return;
    }
    for (int64_t row = 0; row < x->m; row++) {
        const int64_t width = a->mode == HALFBYTE_SCALE_OUTER ? x->k : BLOCK;
        for (int64_t column = 0; column < x->k; column += width) {
            const int64_t block = column / width;
            const double scale = expected_scale(a, x, row, row + 1, column, column + width);
            expected_store(x, out, row, column, width, scale);
            scale_store(
                &out->scales[a->layout == HALFBYTE_SCALE_K_MAJOR ? row * a->scale.stride_mn + block
                                                                 : row + block * a->scale.stride_k],
                scale);
        }
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int compared_calls, compared_bytes;

/* Runs the call in every environment and with every device; each must give the expected bytes. */
static void case_check(halfbyte_activation_quantization a, const result *expected)
{
    const float given = expected->scales[0]; /* STATIC */

    for (int caller = 0; caller < CALLERS; caller++) {
        result out = result_make(expected->q_bytes, expected->scale_bytes / sizeof(float));
        if ((a.flags & HALFBYTE_QUANTIZE_STATIC) != 0) {
            memcpy(out.scales, &given, sizeof given);
        }
        a.dst.data = out.q;
        a.scale.data = out.scales;

        const fp_env before = fp_env_save();
        caller_environment_set(caller);
        const fp_env set = fp_env_save();
        const halfbyte_status status =
            halfbyte_quantize_activations(caller_device(&all_callers, caller), &a, NULL);
        const fp_env after = fp_env_save();
        fp_env_restore(before);

        assert_int_equal(status, HALFBYTE_SUCCESS);
        assert_true(memcmp(&set, &after, sizeof set) == 0);
        assert_memory_equal(out.q, expected->q, expected->q_bytes);
        assert_memory_equal(out.scales, expected->scales, expected->scale_bytes);
        compared_calls++;
        compared_bytes += (int)(expected->q_bytes + expected->scale_bytes);
        result_free(&out);
    }
}

static void shape_check(struct random *r, shape s, halfbyte_type type, fill kind,
                        halfbyte_scale_mode mode, halfbyte_scale_layout layout, uint32_t flags,
                        float epsilon)
{
    matrix x = matrix_make(r, type, s, kind);
    const int64_t blocks = (s.k + BLOCK - 1) / BLOCK;
    halfbyte_activation_quantization a = halfbyte_activation_quantization_init();
    int64_t scale_count = 1;

    a.mode = mode;
    a.layout = layout;
    a.src_type = type;
    a.flags = flags;
    a.m = s.m;
    a.k = s.k;
    a.src.data = x.data;
    a.src.ld = a.dst.ld = x.ld;
    a.epsilon = epsilon;
    if (mode == HALFBYTE_SCALE_OUTER) {
        a.scale.stride_mn = 1;
        scale_count = s.m;
    } else if (mode == HALFBYTE_SCALE_1X128 && layout == HALFBYTE_SCALE_K_MAJOR) {
        a.scale.stride_mn = blocks + 3;
        scale_count = (s.m - 1) * a.scale.stride_mn + blocks;
    } else if (mode == HALFBYTE_SCALE_1X128) {
        a.scale.stride_k = s.m + 3;
        scale_count = (blocks - 1) * a.scale.stride_k + s.m;
    }
    result expected = result_make((size_t)((s.m - 1) * x.ld + s.k), (size_t)scale_count);
    if ((flags & HALFBYTE_QUANTIZE_STATIC) != 0) {
        expected.scales[0] = ldexpf((float)random_between(r, 1, 4096), -16);
    }
    expected_make(&a, &x, &expected);
    case_check(a, &expected);
    result_free(&expected);
    matrix_free(&x);
}

static const halfbyte_type source_types[] = {HALFBYTE_TYPE_F32, HALFBYTE_TYPE_BF16,
                                             HALFBYTE_TYPE_F16};
static const shape shapes[] = {{1, 1}, {2, 31}, {3, 127}, {4, 128}, {3, 129}, {5, 300}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void mode_check(halfbyte_scale_mode mode, halfbyte_scale_layout layout, uint32_t flags)
{
    struct random r = {.state = (uint64_t)mode * 100 + layout * 10 + flags};
    static const float epsilons[] = {0.0f, 0.25f, 0x1p-126f, 0x1p-140f};

    compared_calls = compared_bytes = 0;
    for (size_t i = 0; i < SHAPES; i++) {
        for (int type = 0; type < 3; type++) {
            for (int kind = 0; kind < FILLS; kind++) {
                shape_check(&r, shapes[i], source_types[type], (fill)kind, mode, layout, flags,
                            epsilons[random_below(&r, 4)]);
            }
        }
    }
    assert_int_equal(compared_calls, SHAPES * 3 * FILLS * CALLERS);
    assert_true(compared_bytes >= compared_calls * 5);
}

static void test_tensor(void **state)
{
    (void)state;
    mode_check(HALFBYTE_SCALE_TENSOR, HALFBYTE_SCALE_MN_MAJOR, 0);
    mode_check(HALFBYTE_SCALE_TENSOR, HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_QUANTIZE_POWER_OF_TWO);
    mode_check(HALFBYTE_SCALE_TENSOR, HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_QUANTIZE_STATIC);
}

static void test_outer(void **state)
{
    (void)state;
    mode_check(HALFBYTE_SCALE_OUTER, HALFBYTE_SCALE_MN_MAJOR, 0);
    mode_check(HALFBYTE_SCALE_OUTER, HALFBYTE_SCALE_K_MAJOR, HALFBYTE_QUANTIZE_POWER_OF_TWO);
}

static void test_blocks(void **state)
{
    (void)state;
    mode_check(HALFBYTE_SCALE_1X128, HALFBYTE_SCALE_MN_MAJOR, 0);
    mode_check(HALFBYTE_SCALE_1X128, HALFBYTE_SCALE_K_MAJOR, 0);
    mode_check(HALFBYTE_SCALE_1X128, HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_QUANTIZE_POWER_OF_TWO);
    mode_check(HALFBYTE_SCALE_1X128, HALFBYTE_SCALE_K_MAJOR, HALFBYTE_QUANTIZE_POWER_OF_TWO);
}

/* Large enough for several tasks, so that threads share it. */
static void test_many_tasks(void **state)
{
    struct random r = {.state = 7};
    const shape large = {600, 333};
    (void)state;

    compared_calls = 0;
    shape_check(&r, large, HALFBYTE_TYPE_F32, FILL_SPECIAL, HALFBYTE_SCALE_TENSOR,
                HALFBYTE_SCALE_MN_MAJOR, 0, 0);
    shape_check(&r, large, HALFBYTE_TYPE_BF16, FILL_NORMAL, HALFBYTE_SCALE_TENSOR,
                HALFBYTE_SCALE_MN_MAJOR, HALFBYTE_QUANTIZE_STATIC, 0);
    shape_check(&r, large, HALFBYTE_TYPE_F16, FILL_SPECIAL, HALFBYTE_SCALE_OUTER,
                HALFBYTE_SCALE_MN_MAJOR, 0, 0);
    shape_check(&r, large, HALFBYTE_TYPE_F32, FILL_ZERO_ROW, HALFBYTE_SCALE_1X128,
                HALFBYTE_SCALE_MN_MAJOR, 0, 0);
    assert_int_equal(compared_calls, 4 * CALLERS);
}

/* A given scale may be anything; arithmetic goes its usual way. */
static void test_odd_static_scales(void **state)
{
    static const uint32_t scales[] = {0x00000000, 0x80000000, 0xbf800000, 0x7f800000,
                                      0xff800000, 0x7fc00000, 0x00000001, 0x7f7fffff};
    struct random r = {.state = 11};
    matrix x = matrix_make(&r, HALFBYTE_TYPE_F32, (shape){3, 150}, FILL_SPECIAL);
    halfbyte_activation_quantization a = halfbyte_activation_quantization_init();
    (void)state;

    a.mode = HALFBYTE_SCALE_TENSOR;
    a.src_type = HALFBYTE_TYPE_F32;
    a.flags = HALFBYTE_QUANTIZE_STATIC;
    a.m = x.m;
    a.k = x.k;
    a.src.data = x.data;
    a.src.ld = a.dst.ld = x.ld;
    compared_calls = 0;
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        const double scale = reference_decode(HALFBYTE_TYPE_F32, scales[i]);
        result expected = result_make((size_t)((x.m - 1) * x.ld + x.k), 1);
        memcpy(expected.scales, &scales[i], sizeof scales[i]);
        for (int64_t row = 0; row < x.m; row++) {
            for (int64_t j = row * x.ld; j < row * x.ld + x.k; j++) {
                const double quotient = x.values[j] / scale;
                expected.q[j] = reference_e4m3(
                    isfinite(quotient) ? reference_round(HALFBYTE_TYPE_F32, quotient) : quotient);
            }
        }
        case_check(a, &expected);
        result_free(&expected);
    }
    assert_int_equal(compared_calls, 8 * CALLERS);
    matrix_free(&x);
}

/* No element: scales that cover none are those of zeros; nothing else is touched. */
static void test_empty(void **state)
{
    const float expected = (float)reference_divide((double)1e-4f, 448);
    halfbyte_activation_quantization a = halfbyte_activation_quantization_init();
    float scales[3] = {-1, -1, -1};
    (void)state;

    a.src_type = HALFBYTE_TYPE_F32;
    a.mode = HALFBYTE_SCALE_TENSOR;
    a.scale.data = scales;
    a.k = 5;
    assert_int_equal(halfbyte_quantize_activations(NULL, &a, NULL), HALFBYTE_SUCCESS);
    assert_true(scales[0] == expected && scales[1] == -1);
    a.flags = HALFBYTE_QUANTIZE_STATIC;
    scales[0] = -1;
    assert_int_equal(halfbyte_quantize_activations(NULL, &a, NULL), HALFBYTE_SUCCESS);
    assert_true(scales[0] == -1);

    a.flags = 0;
    a.mode = HALFBYTE_SCALE_OUTER;
    a.m = 2;
    a.k = 0;
    a.scale.stride_mn = 1;
    assert_int_equal(halfbyte_quantize_activations(NULL, &a, NULL), HALFBYTE_SUCCESS);
    assert_true(scales[0] == expected && scales[1] == expected && scales[2] == -1);
    a.mode = HALFBYTE_SCALE_1X128;
    a.scale.data = NULL;
    assert_int_equal(halfbyte_quantize_activations(NULL, &a, NULL), HALFBYTE_SUCCESS);
    a.m = 0;
    assert_int_equal(halfbyte_quantize_activations(NULL, &a, NULL), HALFBYTE_SUCCESS);
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
        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_outer),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_many_tasks),
        cmocka_unit_test(test_odd_static_scales),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, everything_open, everything_close);
}
