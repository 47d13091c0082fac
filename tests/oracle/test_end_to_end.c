/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantise, multiply, compare with the product of the unquantised matrices in fp64. The error must
 * stay within what rounding to the formats can do, derived element by element, plus the bound of
 * docs/numerics.md section 9:
 *
 *   x = q s + dx       e4m3: |dx| <= max(2^-4 |x|, 2^-10 s), half a unit in the last place of x / s
 *                      int4: |dw| <= s / 2, half a step
 *                      and a relative 2^-20 for the rounding of the division and of the scale
 *   |x.w - q.v|        <= sum of |x| dw + |w| dx + dx dw
 */
#include "oracle/bound.h"
#include "oracle/gemm_case.h"
#include "oracle/operand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define M 12
#define N 200
#define K 640
#define SLACK 0x1p-20

static halfbyte_device *device;

/* A layer: activations, weights, their quantised forms and scales. */
struct layer {
    float x[M * K], w[N * K];
    uint8_t xq[M * K], wq[N * K];
    float x_scale[M * K / 32];
    float w_scale[N * K / 32]; /* also holds bf16 and f16 ones */
    float d[M * N];
};

struct scheme {
    const char *name;
    halfbyte_family family;
    halfbyte_scale_mode a_mode;
    halfbyte_scale_layout a_layout;
    halfbyte_type w_scale_type;
    halfbyte_scale_layout w_layout;
    int64_t group;
    halfbyte_type d_type;
    unsigned flags;
    double most_rms; /* of the error, relative to the product */
};

#define W4 HALFBYTE_FAMILY_W4A8
#define FP8 HALFBYTE_FAMILY_FP8
#define F32 HALFBYTE_TYPE_F32
#define BF16 HALFBYTE_TYPE_BF16
#define MN HALFBYTE_SCALE_MN_MAJOR
#define KM HALFBYTE_SCALE_K_MAJOR
#define POW2 HALFBYTE_QUANTIZE_POWER_OF_TWO

static const struct scheme schemes[] = {
    {"w4a8 token, 128 bf16", W4, HALFBYTE_SCALE_OUTER, MN, BF16, KM, 128, F32, 0, 0.13},
    {"w4a8 tensor, 32 f16", W4, HALFBYTE_SCALE_TENSOR, MN, HALFBYTE_TYPE_F16, MN, 32, F32, 0, 0.11},
    {"w4a8 1x128, 64 f32", W4, HALFBYTE_SCALE_1X128, MN, F32, KM, 64, BF16, 0, 0.12},
    {"w4a8 1x128 pow2, all k", W4, HALFBYTE_SCALE_1X128, KM, F32, MN, 0, F32, POW2, 0.25},
    {"fp8 1x128 x 128x128", FP8, HALFBYTE_SCALE_1X128, MN, F32, KM, 0, F32, 0, 0.05},
    {"fp8 1x128 x 128x128, bf16", FP8, HALFBYTE_SCALE_1X128, KM, F32, MN, 0, BF16, 0, 0.05},
    {"fp8 token x 128x128 pow2", FP8, HALFBYTE_SCALE_OUTER, MN, F32, KM, 0, F32, POW2, 0.05},
};

/* About normal: the sum of twelve uniform numbers. Some activations are made ten times as large. */
static float bell(struct random *r)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += ldexp((double)(random_bits(r) >> 11), -53);
    return (float)sum;
}

static void draw(struct layer *l, struct random *r)
{
    for (int i = 0; i < M * K; i++)
        l->x[i] = bell(r) * (random_percent(r, 1) ? 10.0f : 1.0f);
    for (int i = 0; i < N * K; i++)
        l->w[i] = bell(r) * 0.03f;
}

static void quantise(struct layer *l, const struct scheme *s, halfbyte_problem *p,
                     halfbyte_operands *o)
{
    halfbyte_activation_quantization a = halfbyte_activation_quantization_init();
    a.mode = s->a_mode;
    a.layout = s->a_layout;
    a.src_type = F32;
    a.flags = s->flags;
    a.m = M;
    a.k = K;
    a.src = (halfbyte_matrix_in){l->x, K, 0};
    a.dst = (halfbyte_matrix_out){l->xq, K, 0};
    a.scale = (halfbyte_scale_out){l->x_scale, s->a_layout == MN ? 1 : K / 128,
                                   s->a_layout == MN ? M : 1, 0};
    assert_int_equal(halfbyte_quantize_activations(device, &a, NULL), HALFBYTE_SUCCESS);

    halfbyte_weight_quantization w = halfbyte_weight_quantization_init();
    bool int4 = s->family == W4;
    int64_t mn = int4 ? N : (N + 127) / 128, kb = int4 && !s->group ? 1 : K / 128;
    if (int4 && s->group)
        kb = K / s->group;
    w.type = int4 ? HALFBYTE_TYPE_INT4 : HALFBYTE_TYPE_E4M3;
    w.src_type = F32;
    w.scale_type = s->w_scale_type;
    w.layout = s->w_layout;
    w.flags = s->flags;
    w.n = N;
    w.k = K;
    w.weight_group_size = s->group;
    w.src = (halfbyte_matrix_in){l->w, K, 0};
    w.dst = (halfbyte_matrix_out){l->wq, K, 0};
    w.scale =
        (halfbyte_scale_out){l->w_scale, s->w_layout == MN ? 1 : kb, s->w_layout == MN ? mn : 1, 0};
    assert_int_equal(halfbyte_quantize_weights(device, &w), HALFBYTE_SUCCESS);

    *p = halfbyte_problem_init();
    p->family = s->family;
    p->m_max = M;
    p->n = N;
    p->k = K;
    p->d_type = s->d_type;
    p->a_scale = (halfbyte_scale_spec){s->a_mode, F32, s->a_layout};
    p->b_scale = (halfbyte_scale_spec){int4 ? HALFBYTE_SCALE_K_GROUP : HALFBYTE_SCALE_128X128,
                                       s->w_scale_type, s->w_layout};
    p->weight_group_size = s->group;
    *o = halfbyte_operands_init();
    o->m = M;
    o->a = (halfbyte_matrix_in){l->xq, K, 0};
    o->b = (halfbyte_matrix_in){l->wq, K, 0};
    o->d = (halfbyte_matrix_out){l->d, N, 0};
    o->a_scale = (halfbyte_scale_in){l->x_scale, a.scale.stride_mn, a.scale.stride_k, 0};
    o->b_scale = (halfbyte_scale_in){l->w_scale, w.scale.stride_mn, w.scale.stride_k, 0};
}

static void multiply(const halfbyte_problem *p, const halfbyte_operands *o)
{
    struct gemm_case c = {.memories = 0};
    c.problem = *p;
    c.operands = *o;
    case_run(&c, device);
}

/* ---- what quantisation may cost -------------------------------------------------------------- */

static double fp32_value(uint32_t bits)
{
    return bound_code_value(F32, bits);
}

static double x_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t row, int64_t k)
{
    if (p->a_scale.mode == HALFBYTE_SCALE_1X128)
        return fp32_value(oracle_a_block_scale(p, o, 0, row, k / oracle_blocks(p).length));
    return fp32_value(oracle_a_outer_scale(p, o, 0, row));
}

static double e4m3_loss(double x, double scale)
{
    return fmax(0x1p-4 * fabs(x), 0x1p-10 * scale) + SLACK * fabs(x);
}

struct tally {
    long elements, held, operands, operands_held;
    double error2, product2, nearest;
};

/* The weights and activations that the quantisers made, one by one, against their own bound. */
static void check_operand(struct tally *t, double real, double quantised, double loss)
{
    t->operands++;
    t->operands_held += fabs(real - quantised) <= loss;
}

static void check_element(const struct layer *l, const halfbyte_problem *p,
                          const halfbyte_operands *o, int64_t row, int64_t column, struct tally *t)
{
    double real = 0, loss = 0;
    bool int4 = p->family == W4;
    for (int64_t k = 0; k < K; k++) {
        double x = l->x[row * K + k], w = l->w[column * K + k];
        double xs = x_scale(p, o, row, k);
        double ws = fp32_value(oracle_b_block_scale(p, o, 0, column, k / oracle_blocks(p).length));
        double dx = e4m3_loss(x, xs);
        double dw = int4 ? ws / 2 + SLACK * fabs(w) : e4m3_loss(w, ws);
        if (column == 0)
            check_operand(t, x,
                          xs * bound_code_value(HALFBYTE_TYPE_E4M3, oracle_a(p, o, 0, row, k)), dx);
        if (row == 0)
            check_operand(
                t, w,
                ws * (int4 ? oracle_int4(p, o, 0, column, k)
                           : bound_code_value(HALFBYTE_TYPE_E4M3, oracle_b(p, o, 0, column, k))),
                dw);
        real += x * w;
        loss += fabs(x) * dw + fabs(w) * dx + dx * dw;
    }
    struct bounded b = bound_element(p, o, 0, row, column);
    double got = bound_code_value(p->d_type, oracle_load(l->d, p->d_type, row * N + column));
    double error = fabs(got - real), bound = loss * (1 + SLACK) + b.bound;
    assert_true(b.applies);
    t->elements++;
    t->held += error <= bound;
    t->nearest = fmax(t->nearest, error / bound);
    t->error2 += error * error;
    t->product2 += real * real;
}

static void within_the_bound(void **state)
{
    (void)state;
    struct random r = {91};
    struct layer *l = malloc(sizeof *l);
    assert_non_null(l);
    int tried = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        const struct scheme *s = &schemes[i];
        halfbyte_problem p;
        halfbyte_operands o;
        struct tally t = {0};
        memset(l, 0, sizeof *l);
        draw(l, &r);
        quantise(l, s, &p, &o);
        multiply(&p, &o);
        for (int64_t e = 0; e < M * N; e++)
            check_element(l, &p, &o, e / N, e % N, &t);
        double rms = sqrt(t.error2 / t.product2);
        print_message("%-26s error: rms %.4f of the product, at most %.3f of the bound\n", s->name,
                      rms, t.nearest);
        assert_int_equal(t.elements, M * N);
        assert_int_equal(t.held, t.elements);
        assert_int_equal(t.operands, M * K + N * K);
        assert_int_equal(t.operands_held, t.operands);
        assert_true(rms > 0.01 && rms < s->most_rms);
        tried++;
    }
    assert_int_equal(tried, 7);
    free(l);
}

static int open_device(void **state)
{
    (void)state;
    device = case_device(HALFBYTE_PROFILE_SM90, 2, HALFBYTE_ISA_AUTO);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    halfbyte_device_close(device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_the_bound),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
