/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs/zero-points.md: weights u - z with a zero point z for each group of k, by what the library
 * serves.  u - 8 is multiplied as int4, and what the zero points take away, a product along k /
 * 128, comes as C.
 */
#include "oracle/bound.h"
#include "oracle/gemm_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 12, N = 64, GROUP = 128, GROUPS = 16, K = GROUP * GROUPS };

/* As quantisers make them: u in 0 .. 15, z about its middle; scales of one size. */
static uint8_t a[M][K], b[N][K / 2], zero[N][GROUPS];
static float a_scale[M], b_scale[N][GROUPS], correction[M][N], d[M][N];

static int u_of(int64_t row, int64_t k)
{
    int nibble = b[row][k / 2] >> (k % 2 * 4) & 15;
    return (nibble ^ 8) & 15; /* stored as u - 8 */
}

static double a_of(int64_t row, int64_t k)
{
    return bound_code_value(HALFBYTE_TYPE_E4M3, a[row][k]);
}

/* mean: of activations, in standard deviations. */
static void fill(struct random *r, float mean)
{
    float values[K];
    for (int64_t row = 0; row < M; row++) {
        for (int64_t k = 0; k < K; k++) {
            int64_t sum = 0;
            for (int i = 0; i < 12; i++)
                sum += random_below(r, 1001);
            values[k] = 40 * ((float)(sum - 6000) / 1000 + mean);
        }
        assert_int_equal(halfbyte_convert(a[row], HALFBYTE_TYPE_E4M3, values, HALFBYTE_TYPE_F32, K),
                         HALFBYTE_SUCCESS);
        a_scale[row] = (float)random_between(r, 100, 200) / 4096;
    }
    for (int64_t row = 0; row < N; row++) {
        for (int64_t i = 0; i < K / 2; i++)
            b[row][i] = (uint8_t)random_bits(r);
        for (int64_t g = 0; g < GROUPS; g++) {
            zero[row][g] = (uint8_t)random_between(r, 5, 11);
            b_scale[row][g] = (float)random_between(r, 100, 200) / 16384;
        }
    }
}

/* What is subtracted: - a_scale * sum over groups of (sum of a) * (z - 8) * scale. */
static void correction_make(void)
{
    for (int64_t row = 0; row < M; row++) {
        for (int64_t column = 0; column < N; column++) {
            double sum = 0;
            for (int64_t g = 0; g < GROUPS; g++) {
                double of_group = 0;
                for (int64_t k = g * GROUP; k < (g + 1) * GROUP; k++)
                    of_group += a_of(row, k);
                sum += of_group * (zero[column][g] - 8) * b_scale[column][g];
            }
            correction[row][column] = (float)(-sum * a_scale[row]);
        }
    }
}

static double wanted_of(int64_t row, int64_t column)
{
    double sum = 0;
    for (int64_t k = 0; k < K; k++) {
        int64_t g = k / GROUP;
        sum += a_of(row, k) * (u_of(column, k) - zero[column][g]) * b_scale[column][g];
    }
    return sum * a_scale[row];
}

static halfbyte_problem problem_make(void)
{
    halfbyte_problem p = halfbyte_problem_init();
    p.family = HALFBYTE_FAMILY_W4A8;
    p.m_max = M;
    p.n = N;
    p.k = K;
    p.a_scale.mode = HALFBYTE_SCALE_OUTER;
    p.b_scale.mode = HALFBYTE_SCALE_K_GROUP;
    p.b_scale.layout = HALFBYTE_SCALE_K_MAJOR;
    p.weight_group_size = GROUP;
    p.c_type = HALFBYTE_TYPE_F32;
    p.d_type = HALFBYTE_TYPE_F32;
    return p;
}

/* Relative rms error of D; all outputs within the bound of the product with C, and what rounding C
 * to fp32 adds. */
static double run(float mean)
{
    halfbyte_device *device = case_device(HALFBYTE_PROFILE_SM90, 1, HALFBYTE_ISA_AUTO);
    struct random r = {17};
    struct gemm_case c = {.problem = problem_make(), .operands = halfbyte_operands_init()};
    double squares = 0, errors = 0;
    fill(&r, mean);
    correction_make();
    c.operands.m = M;
    c.operands.a = (halfbyte_matrix_in){a, K, 0};
    c.operands.b = (halfbyte_matrix_in){b, K, 0};
    c.operands.c = (halfbyte_matrix_in){correction, N, 0};
    c.operands.d = (halfbyte_matrix_out){d, N, 0};
    c.operands.a_scale = (halfbyte_scale_in){a_scale, 1, 0, 0};
    c.operands.b_scale = (halfbyte_scale_in){b_scale, GROUPS, 1, 0};
    c.operands.beta = 1;
    case_run(&c, device);
    for (int64_t row = 0; row < M; row++) {
        for (int64_t column = 0; column < N; column++) {
            const struct bounded bound = bound_element(&c.problem, &c.operands, 0, row, column);
            const double wanted = wanted_of(row, column), off = fabs(d[row][column] - wanted);
            assert_true(bound.applies);
            assert_true(off <= bound.bound + 0x1p-24 * fabs((double)correction[row][column]));
            squares += wanted * wanted;
            errors += off * off;
        }
    }
    halfbyte_device_close(device);
    return sqrt(errors / squares);
}

static void as_c(void **state)
{
    (void)state;
    const double centred = run(0), shifted = run(1);
    print_message("relative rms error: activations about 0 %.2e, one standard deviation off %.2e\n",
                  centred, shifted);
    assert_true(centred > 0 && centred < 1e-3);
    assert_true(shifted > 0 && shifted < 1e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_c)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
