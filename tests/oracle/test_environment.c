/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's floating-point environment: whatever mode the caller is in, the bits are the same, and
 * the caller finds its mode as it left it. x86 only: elsewhere there is nothing portable to set
 * flush-to-zero with.
 */
#include "oracle/gemm_case.h"
#include "oracle/operand.h"

#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

#define FLUSH_TO_ZERO 0x8000u
#define DENORMALS_ARE_ZERO 0x0040u
#define MASKS 0x1f80u /* all exceptions masked */

struct mode {
    unsigned mxcsr;
    int rounding; /* of the x87 unit as well */
};

/* The third would end the program if the library computed with exceptions unmasked. */
static const struct mode modes[] = {
    {MASKS | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO, FE_TONEAREST},
    {MASKS, FE_TOWARDZERO},
    {0, FE_TONEAREST},
    {MASKS | DENORMALS_ARE_ZERO, FE_UPWARD},
    {MASKS | FLUSH_TO_ZERO | 0x3f, FE_DOWNWARD}, /* and every exception flag raised already */
};

#define MODES ((int)(sizeof modes / sizeof modes[0]))

static unsigned enter(int i)
{
    fesetround(modes[i].rounding);
    unsigned rounding = _mm_getcsr() & 0x6000u;
    _mm_setcsr(modes[i].mxcsr | rounding);
    return modes[i].mxcsr | rounding;
}

/* Back to the default; returns whether the mode was still what enter() set. */
static bool leave(int i, unsigned expected)
{
    bool kept = _mm_getcsr() == expected && fegetround() == modes[i].rounding;
    fesetround(FE_TONEAREST);
    _mm_setcsr(MASKS);
    return kept;
}

struct tally {
    long calls, kept, equal;
};

static void check_tally(const struct tally *t, long calls)
{
    assert_int_equal(t->calls, calls);
    assert_int_equal(t->kept, calls);
    assert_int_equal(t->equal, calls);
}

static void products(void **state)
{
    (void)state;
    enum { PROBLEMS = 150 };
    struct random r = {81};
    struct tally t = {0, 0, 0};
    halfbyte_device *plain = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_PORTABLE);
    for (int mode = 0; mode < MODES; mode++) {
        /* Worker threads begin in the mode of the thread that starts them. */
        unsigned expected = enter(mode);
        halfbyte_device *here[3] = {case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AUTO),
                                    case_device(HALFBYTE_PROFILE_ANY, 7, HALFBYTE_ISA_AUTO),
                                    case_device(HALFBYTE_PROFILE_ANY, 2, HALFBYTE_ISA_PORTABLE)};
        assert_true(leave(mode, expected));
        for (int i = 0; i < PROBLEMS; i++) {
            halfbyte_family family = i % 2 ? HALFBYTE_FAMILY_FP8 : HALFBYTE_FAMILY_W4A8;
            struct case_kind kind =
                case_kind_at(family, (int)random_below(&r, case_kind_count(family)),
                             (enum group_form)random_below(&r, FORM_COUNT));
            struct case_options options = {.aligned = false};
            struct gemm_case c;
            case_make(&c, &r, &kind, &options);
            case_run(&c, plain);
            uint8_t *normal = case_memory(&c, c.d_bytes, 0);
            memcpy(normal, c.d_base, c.d_bytes);
            memcpy(c.d_base, c.d_before, c.d_bytes);

            expected = enter(mode);
            halfbyte_status status = case_run_status(&c, here[i % 3]);
            t.kept += leave(mode, expected);
            assert_int_equal(status, HALFBYTE_SUCCESS);
            t.calls++;
            t.equal += memcmp(normal, c.d_base, c.d_bytes) == 0;
            case_free(&c);
        }
        for (int i = 0; i < 3; i++)
            halfbyte_device_close(here[i]);
    }
    halfbyte_device_close(plain);
    check_tally(&t, MODES * PROBLEMS);
}

/* A subnormal beta is not zero, whatever the host makes of subnormals: C is read, so it must be
 * there. */
static void subnormal_beta(void **state)
{
    (void)state;
    struct random r = {83};
    struct case_kind kind = case_kind_at(HALFBYTE_FAMILY_FP8, 0, FORM_DENSE);
    struct case_options options = {.aligned = false};
    const uint32_t smallest[2] = {0x00000001u, 0x807fffffu};
    struct tally t = {0, 0, 0};
    halfbyte_device *device = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AUTO);
    for (int mode = 0; mode < MODES; mode++) {
        for (int i = 0; i < 2; i++) {
            struct gemm_case c;
            case_make(&c, &r, &kind, &options);
            c.problem.c_type = HALFBYTE_TYPE_F32;
            c.operands.c = (halfbyte_matrix_in){NULL, c.problem.n, 0};
            memcpy(&c.operands.beta, &smallest[i], sizeof smallest[i]);
            unsigned expected = enter(mode);
            halfbyte_status status = case_run_status(&c, device);
            t.kept += leave(mode, expected);
            t.calls++;
            t.equal += status == HALFBYTE_ERR_INVALID_ARGUMENT;
            case_free(&c);
        }
    }
    halfbyte_device_close(device);
    check_tally(&t, 2 * MODES);
}

/* ---- everything else that computes ----------------------------------------------------------- */

#define ROWS 130
#define COLUMNS 260

struct outputs {
    uint8_t q[ROWS * COLUMNS], w8[ROWS * COLUMNS], w4[ROWS * COLUMNS / 2];
    float scale[3][ROWS * 9], back[ROWS * COLUMNS];
    uint8_t narrow[4][2 * ROWS * COLUMNS];
    uint32_t dot;
};

static void quantise(const float *x, halfbyte_device *device, struct outputs *out,
                     struct tally *statuses)
{
    halfbyte_activation_quantization a = halfbyte_activation_quantization_init();
    a.mode = HALFBYTE_SCALE_1X128;
    a.src_type = HALFBYTE_TYPE_F32;
    a.m = ROWS;
    a.k = COLUMNS;
    a.epsilon = 0x1p-130f;
    a.src = (halfbyte_matrix_in){x, COLUMNS, 0};
    a.dst = (halfbyte_matrix_out){out->q, COLUMNS, 0};
    a.scale = (halfbyte_scale_out){out->scale[0], 1, ROWS, 0};
    statuses->equal += halfbyte_quantize_activations(device, &a, NULL) == HALFBYTE_SUCCESS;

    halfbyte_weight_quantization w = halfbyte_weight_quantization_init();
    w.type = HALFBYTE_TYPE_INT4;
    w.src_type = HALFBYTE_TYPE_F32;
    w.n = ROWS;
    w.k = COLUMNS;
    w.weight_group_size = 32;
    w.src = a.src;
    w.dst = (halfbyte_matrix_out){out->w4, COLUMNS, 0};
    w.scale = (halfbyte_scale_out){out->scale[1], 1, ROWS, 0};
    statuses->equal += halfbyte_quantize_weights(device, &w) == HALFBYTE_SUCCESS;
    halfbyte_matrix_out back = {out->back, COLUMNS, 0};
    statuses->equal += halfbyte_dequantize_weights(device, &w, &back) == HALFBYTE_SUCCESS;

    w.type = HALFBYTE_TYPE_E4M3;
    w.weight_group_size = 0;
    w.dst.data = out->w8;
    w.scale.data = out->scale[2];
    statuses->equal += halfbyte_quantize_weights(device, &w) == HALFBYTE_SUCCESS;
    statuses->calls += 4;
}

static void convert(const float *x, struct outputs *out, struct tally *statuses)
{
    static const halfbyte_type types[4] = {HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16,
                                           HALFBYTE_TYPE_E4M3, HALFBYTE_TYPE_E5M2};
    uint8_t a[32], b[32];
    for (int i = 0; i < 4; i++)
        statuses->equal += halfbyte_convert(out->narrow[i], types[i], x, HALFBYTE_TYPE_F32,
                                            ROWS * COLUMNS) == HALFBYTE_SUCCESS;
    memset(a, 0x02, sizeof a);
    memset(b, 0x81, sizeof b);
    statuses->equal += halfbyte_tensor_core_dot(HALFBYTE_TYPE_BF16, a, b, 0x00000003u, &out->dot) ==
                       HALFBYTE_SUCCESS;
    statuses->calls += 5;
}

/* Numbers over many binades, so that scales and quotients come out subnormal too. */
static void fill_wide(struct random *r, float *x)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        uint32_t low = i / COLUMNS % 3 == 0 ? 1 : i / COLUMNS % 3 == 1 ? 8 : 100;
        uint32_t bits =
            (uint32_t)(random_bits(r) & 0x807fffff) | (low + (uint32_t)random_below(r, 20)) << 23;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static void other_functions(void **state)
{
    (void)state;
    struct random r = {82};
    struct tally t = {0, 0, 0}, statuses = {0, 0, 0};
    float *x = malloc(ROWS * COLUMNS * sizeof *x);
    struct outputs *normal = calloc(1, sizeof *normal), *here = calloc(1, sizeof *here);
    assert_true(x && normal && here);
    fill_wide(&r, x);
    halfbyte_device *threads = case_device(HALFBYTE_PROFILE_ANY, 3, HALFBYTE_ISA_AUTO);
    quantise(x, NULL, normal, &statuses);
    convert(x, normal, &statuses);
    for (int mode = 0; mode < MODES; mode++) {
        for (int i = 0; i < 2; i++) {
            memset(here, 0, sizeof *here);
            unsigned expected = enter(mode);
            quantise(x, i ? threads : NULL, here, &statuses);
            t.kept += leave(mode, expected);
            expected = enter(mode);
            convert(x, here, &statuses);
            t.kept += leave(mode, expected);
            t.calls += 2;
            t.equal += 2 * (memcmp(normal, here, sizeof *here) == 0);
        }
    }
    halfbyte_device_close(threads);
    free(x);
    free(normal);
    free(here);
    assert_int_equal(statuses.equal, statuses.calls);
    check_tally(&t, 4 * MODES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(subnormal_beta),
        cmocka_unit_test(other_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("no MXCSR on this processor");
    return 77;
}

#endif
