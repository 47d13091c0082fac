/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte_quantize_weights and halfbyte_dequantize_weights against the formulas in double: both
 * types, every group size, scale type, layout and flag, ragged shapes, several groups in two
 * arrangements; in three floating-point environments of the caller and with 1, 2 and 7 threads.
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

enum { POISON = 0xa5, PAD = 6, BLOCK = 128 };

static callers all_callers;
static int64_t compared_weights, compared_scales, compared_calls;

/* One quantisation: its arguments, its input as numbers and the output that must come. */
typedef struct job {
    halfbyte_weight_quantization a;
    int64_t columns, blocks_mn, blocks_k; /* of a scale */
    int64_t rows_of_scale;
    size_t src_count, q_bytes, scale_bytes;
    void *src;
    double *values; /* at the indices of src */
    uint8_t *q, *scales;
    float *back;
} job;

static void *filled(size_t bytes, int with)
{
    void *memory = malloc(bytes + 1);
    assert_non_null(memory);
    memset(memory, with, bytes);
    return memory;
}

static int type_bytes(halfbyte_type type)
{
    return type == HALFBYTE_TYPE_F32 ? 4 : 2;
}

static uint32_t random_weight(struct random *r, halfbyte_type type, int64_t row, int64_t column)
{
    const bool zero_group = (row / 128 + column / 32) % 5 == 4;
    const double value =
        ldexp((double)random_between(r, 1, 1 << 24), (int)random_between(r, -31, -26));

    if (zero_group || random_percent(r, 5)) {
        return random_percent(r, 50) ? 0 : type == HALFBYTE_TYPE_F32 ? 0x80000000u : 0x8000u;
    }
    return reference_code(type, reference_round(type, random_percent(r, 50) ? -value : value));
}

static void code_store(void *at, halfbyte_type type, int64_t index, uint32_t code)
{
    if (type == HALFBYTE_TYPE_F32) {
        ((uint32_t *)at)[index] = code;
    } else {
        ((uint16_t *)at)[index] = (uint16_t)code;
    }
}

static int64_t ceil_divide(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

/* Strides and sizes.  side_by_side: groups lie within rows instead of one after the other. */
static void job_lay_out(job *j, bool side_by_side)
{
    halfbyte_weight_quantization *a = &j->a;
    const bool int4 = a->type == HALFBYTE_TYPE_INT4;
    const bool k_major = a->layout == HALFBYTE_SCALE_K_MAJOR;

    j->columns = !int4 ? BLOCK : a->weight_group_size != 0 ? a->weight_group_size : a->k;
    j->rows_of_scale = int4 ? 1 : BLOCK;
    j->blocks_mn = ceil_divide(a->n, j->rows_of_scale);
    j->blocks_k = ceil_divide(a->k, j->columns);

    const int64_t pitch = (a->k + 1) / 2 * 2 + PAD;
    const int64_t inner = k_major ? j->blocks_k : j->blocks_mn;
    const int64_t outer = k_major ? j->blocks_mn : j->blocks_k;
    a->src.ld = a->dst.ld = side_by_side ? a->groups * pitch : pitch;
    a->src.group_stride = a->dst.group_stride = side_by_side ? pitch : a->n * pitch;
    const int64_t scale_ld = side_by_side ? a->groups * (inner + 1) : inner + 1;
    a->scale.group_stride = side_by_side ? inner + 1 : outer * (inner + 1);
    a->scale.stride_mn = k_major ? scale_ld : 1;
    a->scale.stride_k = k_major ? 1 : scale_ld;
    j->src_count = (size_t)((a->groups - 1) * a->src.group_stride + (a->n - 1) * a->src.ld + a->k);
    j->q_bytes = int4 ? (j->src_count + 1) / 2 : j->src_count;
    j->scale_bytes =
        (size_t)((a->groups - 1) * a->scale.group_stride + (outer - 1) * scale_ld + inner) *
        (size_t)type_bytes(a->scale_type);
}

static int64_t src_index(const job *j, int64_t group, int64_t row, int64_t column)
{
    return group * j->a.src.group_stride + row * j->a.src.ld + column;
}

static int64_t scale_index(const job *j, int64_t group, int64_t mn, int64_t kb)
{
    return group * j->a.scale.group_stride + mn * j->a.scale.stride_mn + kb * j->a.scale.stride_k;
}

/* ---- what must come out ---------------------------------------------------------------------- */

static double expected_scale(const job *j, int64_t group, int64_t mn, int64_t kb)
{
    double amax = 0;
    for (int64_t row = mn * j->rows_of_scale; row < (mn + 1) * j->rows_of_scale; row++) {
        for (int64_t i = kb * j->columns; i < (kb + 1) * j->columns; i++) {
            if (row < j->a.n && i < j->a.k) {
                amax = fmax(amax, fabs(j->values[src_index(j, group, row, i)]));
            }
        }
    }
    if (amax == 0) {
        return j->a.type == HALFBYTE_TYPE_INT4 ? 0 : 1;
    }
    double scale = reference_divide(amax, j->a.type == HALFBYTE_TYPE_INT4 ? 7 : 448);
    if ((j->a.flags & HALFBYTE_QUANTIZE_POWER_OF_TWO) != 0) {
        scale = reference_power_of_two(scale);
    }
    return reference_round(j->a.scale_type, scale);
}

/* Sets q and the f32 that comes back for one weight. */
static void expected_weight(job *j, int64_t index, double scale)
{
    const double w = j->values[index];
    double q;

    if (j->a.type == HALFBYTE_TYPE_INT4) {
        const int value = scale == 0 ? 0 : reference_int4(reference_divide(w, scale));
        const int shift = index % 2 == 0 ? 0 : 4;
        j->q[index / 2] = (uint8_t)((j->q[index / 2] & (0xf0 >> shift)) | (value & 15) << shift);
        q = value;
        /* half a step, and what rounding the scale down takes from the largest magnitude */
        assert_true(fabs(w - q * scale) <= scale * (0.5 + 7.1 * 0x1p-8));
    } else {
        const uint8_t code = reference_e4m3(reference_divide(w, scale));
        j->q[index] = code;
        q = reference_decode(HALFBYTE_TYPE_E4M3, code);
    }
    const uint32_t back =
        reference_code(HALFBYTE_TYPE_F32, reference_round(HALFBYTE_TYPE_F32, q * scale));
    memcpy(&j->back[index], &back, sizeof back);
    compared_weights++;
}

static void expected_make(job *j)
{
    for (int64_t group = 0; group < j->a.groups; group++) {
        for (int64_t row = 0; row < j->a.n; row++) {
            for (int64_t i = 0; i < j->a.k; i++) {
                const int64_t mn = row / j->rows_of_scale, kb = i / j->columns;
                const int64_t at = scale_index(j, group, mn, kb);
                if (i % j->columns == 0 && row % j->rows_of_scale == 0) {
                    code_store(j->scales, j->a.scale_type, at,
                               reference_code(j->a.scale_type, expected_scale(j, group, mn, kb)));
                    compared_scales++;
                }
                uint32_t code = 0;
                if (type_bytes(j->a.scale_type) == 4) {
                    code = ((const uint32_t *)(void *)j->scales)[at];
                } else {
                    code = ((const uint16_t *)(void *)j->scales)[at];
                }
                expected_weight(j, src_index(j, group, row, i),
                                reference_decode(j->a.scale_type, code));
            }
            if (j->a.type == HALFBYTE_TYPE_INT4 && j->a.k % 2 != 0) { /* the unused nibble */
                j->q[src_index(j, group, row, j->a.k) / 2] &= 0x0f;
            }
        }
    }
}

static void job_make(job *j, struct random *r, bool side_by_side)
{
    job_lay_out(j, side_by_side);
    const size_t bytes = j->src_count * (size_t)type_bytes(j->a.src_type);
    j->src = filled(bytes, 0xff); /* the gaps hold NaN */
    j->values = filled(j->src_count * sizeof *j->values, 0);
    j->q = filled(j->q_bytes, POISON);
    j->scales = filled(j->scale_bytes, POISON);
    j->back = filled(j->src_count * sizeof *j->back, POISON);
    for (int64_t group = 0; group < j->a.groups; group++) {
        for (int64_t row = 0; row < j->a.n; row++) {
            for (int64_t i = 0; i < j->a.k; i++) {
                const int64_t index = src_index(j, group, row, i);
                const uint32_t code = random_weight(r, j->a.src_type, row, i);
                code_store(j->src, j->a.src_type, index, code);
                j->values[index] = reference_decode(j->a.src_type, code);
            }
        }
    }
    j->a.src.data = j->src;
}

static void job_free(job *j)
{
    free(j->src);
    free(j->values);
    free(j->q);
    free(j->scales);
    free(j->back);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void job_check(const job *j)
{
    for (int caller = 0; caller < CALLERS; caller++) {
        halfbyte_weight_quantization a = j->a;
        halfbyte_device *device = caller_device(&all_callers, caller);
        uint8_t *q = filled(j->q_bytes, POISON), *scales = filled(j->scale_bytes, POISON);
        float *back = filled(j->src_count * sizeof *back, POISON);
        const halfbyte_matrix_out out = {back, j->a.src.ld, j->a.src.group_stride};
        a.dst.data = q;
        a.scale.data = scales;

        const fp_env before = fp_env_save();
        caller_environment_set(caller);
        const fp_env set = fp_env_save();
        const halfbyte_status status = halfbyte_quantize_weights(device, &a);
        a.src.data = NULL; /* the reverse ignores it */
        const halfbyte_status reverse = halfbyte_dequantize_weights(device, &a, &out);
        const fp_env after = fp_env_save();
        fp_env_restore(before);

        assert_int_equal(status, HALFBYTE_SUCCESS);
        assert_int_equal(reverse, HALFBYTE_SUCCESS);
        assert_true(memcmp(&set, &after, sizeof set) == 0);
        assert_memory_equal(q, j->q, j->q_bytes);
        assert_memory_equal(scales, j->scales, j->scale_bytes);
        assert_memory_equal(back, j->back, j->src_count * sizeof *back);
        compared_calls++;
        free(q);
        free(scales);
        free(back);
    }
}

typedef struct shape {
    int64_t groups, n, k;
} shape;

static halfbyte_weight_quantization arguments_make(halfbyte_type type, shape s)
{
    halfbyte_weight_quantization a = halfbyte_weight_quantization_init();
    a.type = type;
    a.groups = s.groups;
    a.n = s.n;
    a.k = s.k;
    return a;
}

static const halfbyte_type float_types[] = {HALFBYTE_TYPE_F32, HALFBYTE_TYPE_BF16,
                                            HALFBYTE_TYPE_F16};

/* Runs one job in both arrangements of its groups. */
static void arguments_check(halfbyte_weight_quantization a, struct random *r)
{
    for (int side_by_side = 0; side_by_side < (a.groups > 1 && a.n > 1 ? 2 : 1); side_by_side++) {
        job j = {.a = a};
        job_make(&j, r, side_by_side != 0);
        expected_make(&j);
        job_check(&j);
        job_free(&j);
    }
}

static void test_int4(void **state)
{
    static const shape shapes[] = {{1, 1, 1}, {1, 2, 31}, {3, 3, 129}, {2, 5, 192}, {1, 4, 300}};
    static const int64_t sizes[] = {32, 64, 128, 0};
    struct random r = {.state = 1};
    (void)state;

    compared_weights = compared_scales = compared_calls = 0;
    for (int s = 0; s < 5; s++) {
        for (int size = 0; size < 4; size++) {
            for (int types = 0; types < 9; types++) {
                for (int other = 0; other < 4; other++) {
                    halfbyte_weight_quantization a = arguments_make(HALFBYTE_TYPE_INT4, shapes[s]);
                    a.weight_group_size = sizes[size];
                    a.src_type = float_types[types / 3];
                    a.scale_type = float_types[types % 3];
                    a.layout = other % 2 == 0 ? HALFBYTE_SCALE_MN_MAJOR : HALFBYTE_SCALE_K_MAJOR;
                    a.flags = other / 2 == 0 ? 0 : HALFBYTE_QUANTIZE_POWER_OF_TWO;
                    arguments_check(a, &r);
                }
            }
        }
    }
    assert_int_equal(compared_calls, (3 + 2 * 2) * 4 * 9 * 4 * CALLERS);
    assert_int_equal(compared_weights,
                     (1 + 62 + 2 * 3 * 3 * 129 + 2 * 2 * 5 * 192 + 4 * 300) * 4 * 9 * 4);
    assert_true(compared_scales > 10000);
}

static void test_e4m3(void **state)
{
    static const shape shapes[] = {{1, 1, 1}, {2, 3, 129}, {1, 128, 128}, {2, 130, 260}};
    struct random r = {.state = 2};
    (void)state;

    compared_weights = compared_scales = compared_calls = 0;
    for (int s = 0; s < 4; s++) {
        for (int type = 0; type < 3; type++) {
            for (int other = 0; other < 4; other++) {
                halfbyte_weight_quantization a = arguments_make(HALFBYTE_TYPE_E4M3, shapes[s]);
                a.src_type = float_types[type];
                a.scale_type = HALFBYTE_TYPE_F32;
                a.layout = other % 2 == 0 ? HALFBYTE_SCALE_MN_MAJOR : HALFBYTE_SCALE_K_MAJOR;
                a.flags = other / 2 == 0 ? 0 : HALFBYTE_QUANTIZE_POWER_OF_TWO;
                arguments_check(a, &r);
            }
        }
    }
    assert_int_equal(compared_calls, (2 + 2 * 2) * 3 * 4 * CALLERS);
    assert_int_equal(compared_scales, (1 + 2 * 2 * 2 + 1 + 2 * 2 * 6) * 3 * 4);
    assert_int_equal(compared_weights,
                     (1 + 2 * 2 * 3 * 129 + 128 * 128 + 2 * 2 * 130 * 260) * 3 * 4);
}

/* Largest finite weights need no scale beyond the largest fp32. */
static void test_largest(void **state)
{
    const float src[2] = {3.4028234663852886e38f, -3.4028234663852886e38f};
    uint8_t q[2] = {0};
    float scale = 0;
    (void)state;

    for (int flags = 0; flags <= 2; flags += 2) {
        halfbyte_weight_quantization a = arguments_make(HALFBYTE_TYPE_INT4, (shape){0, 1, 2});
        a.src_type = HALFBYTE_TYPE_F32;
        a.flags = (uint32_t)flags;
        a.src.data = src;
        a.dst.data = q;
        a.scale.data = &scale;
        assert_int_equal(halfbyte_quantize_weights(NULL, &a), HALFBYTE_SUCCESS);
        assert_int_equal(q[0], flags == 0 ? 0x97 : 0xc4);
        assert_true(isfinite(scale));
        a.type = HALFBYTE_TYPE_E4M3;
        assert_int_equal(halfbyte_quantize_weights(NULL, &a), HALFBYTE_SUCCESS);
        assert_int_equal(q[0] | 0x80, q[1]);
        assert_true(isfinite(scale));
    }
}

static void test_empty(void **state)
{
    (void)state;
    for (int type = HALFBYTE_TYPE_E4M3; type <= HALFBYTE_TYPE_INT4; type += 3) {
        for (int zero = 0; zero < 2; zero++) {
            halfbyte_weight_quantization a = arguments_make(
                (halfbyte_type)type, (shape){2, zero == 0 ? 0 : 3, zero == 0 ? 3 : 0});
            const halfbyte_matrix_out out = {NULL, 0, 0};
            a.src_type = HALFBYTE_TYPE_F32;
            assert_int_equal(halfbyte_quantize_weights(NULL, &a), HALFBYTE_SUCCESS);
            assert_int_equal(halfbyte_dequantize_weights(NULL, &a, &out), HALFBYTE_SUCCESS);
        }
    }
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
        cmocka_unit_test(test_int4),
        cmocka_unit_test(test_e4m3),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, everything_open, everything_close);
}
