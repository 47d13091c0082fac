/* SPDX-License-Identifier: Apache-2.0 */
/* arith.h and fp_env.h: rounding, subnormals, the one NaN, and a host that has set other modes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host_fp.h"
#include "model/arith.h"
#include "model/fp_env.h"
#include "random_chains.h"

enum { RANDOM_PAIRS = 300000 };

static const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001,
                                0xffc00000, 0xffffffff, 0x7fabcdef};
static const uint32_t others[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000,
                                  0x00000001, 0x7f7fffff, 0x7f800000, 0xff800000};
enum {
    NANS = sizeof nans / sizeof nans[0],
    OTHERS = sizeof others / sizeof others[0],
};

static void assert_nan(float value)
{
    assert_int_equal(bits_from_float(value), 0x7fffffff);
}

static void test_nan_operands(void **state)
{
    int compared = 0;
    (void)state;
    for (int i = 0; i < NANS; i++) {
        for (int j = 0; j < OTHERS + NANS; j++) {
            const float nan = float_from_bits(nans[i]);
            const float x = float_from_bits(j < OTHERS ? others[j] : nans[j - OTHERS]);
            assert_nan(mul_rn(nan, x));
            assert_nan(mul_rn(x, nan));
            assert_nan(add_rn(nan, x));
            assert_nan(add_rn(x, nan));
            assert_nan(div_rn(nan, x));
            assert_nan(div_rn(x, nan));
            assert_nan(max_nan(nan, x));
            assert_nan(max_nan(x, nan));
            assert_nan(fma_rn(nan, x, 1.0f));
            assert_nan(fma_rn(x, nan, x));
            assert_nan(fma_rn(x, x, nan));
            compared++;
        }
        assert_int_equal(cvt_bf16(float_from_bits(nans[i])), 0x7fff);
        assert_int_equal(cvt_f16(float_from_bits(nans[i])), 0x7fff);
        assert_int_equal(cvt_e4m3(float_from_bits(nans[i])), 0x7f);
    }
    assert_int_equal(compared, NANS * (NANS + OTHERS));
}

static void test_invalid_operations(void **state)
{
    (void)state;
    assert_nan(mul_rn(INFINITY, 0.0f));
    assert_nan(mul_rn(-0.0f, -INFINITY));
    assert_nan(add_rn(INFINITY, -INFINITY));
    assert_nan(div_rn(0.0f, -0.0f));
    assert_nan(div_rn(INFINITY, INFINITY));
    assert_nan(fma_rn(INFINITY, 0.0f, 1.0f));
    assert_nan(fma_rn(INFINITY, 1.0f, -INFINITY));
}

static void assert_bits(float value, uint32_t bits)
{
    assert_int_equal(bits_from_float(value), bits);
}

static void test_max(void **state)
{
    (void)state;
    assert_bits(max_nan(0.0f, -0.0f), 0x00000000);
    assert_bits(max_nan(-0.0f, 0.0f), 0x00000000);
    assert_bits(max_nan(-0.0f, -0.0f), 0x80000000);
    assert_bits(max_nan(-1.0f, -1.0f), 0xbf800000);
    assert_bits(max_nan(-INFINITY, INFINITY), 0x7f800000);
    assert_bits(max_nan(-3.0f, -2.0f), 0xc0000000);
    assert_bits(max_nan(float_from_bits(1), 0.0f), 0x00000001);
}

/* What tells one rounding from two, subnormals from none, and overflow. */
static void test_rounding(void **state)
{
    (void)state;
    /* (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24, lost if the product is rounded */
    assert_bits(fma_rn(0x1.001p0f, 0x1.001p0f, -0x1.002p0f), bits_from_float(0x1p-24f));
    assert_bits(add_rn(mul_rn(0x1.001p0f, 0x1.001p0f), -0x1.002p0f), 0x00000000);
    /* a tie of the exact product that a tiny c breaks either way; double rounding misses it */
    assert_bits(fma_rn(0x1.000002p0f, 0x1.8p0f, 0x1p-100f), 0x3fc00002);
    assert_bits(fma_rn(0x1.000002p0f, 0x1.8p0f, -0x1p-100f), 0x3fc00001);
    assert_bits(fma_rn(0x1.000002p0f, 0x1.8p0f, 0.0f), 0x3fc00002);
    /* subnormal results and operands */
    assert_bits(mul_rn(0x1p-126f, 0.5f), 0x00400000);
    assert_bits(mul_rn(0x1p-149f, 0.5f), 0x00000000);
    assert_bits(mul_rn(0x1.8p-149f, 1.0f), 0x00000002);
    assert_bits(add_rn(float_from_bits(1), float_from_bits(1)), 0x00000002);
    assert_bits(div_rn(float_from_bits(3), 2.0f), 0x00000002);
    assert_bits(div_rn(1.0f, 3.0f), 0x3eaaaaab);
    /* overflow, ties to even, signs of zero */
    assert_bits(mul_rn(0x1p127f, 2.0f), 0x7f800000);
    assert_bits(add_rn(0x1.fffffep127f, 0x1p102f), 0x7f7fffff);
    assert_bits(add_rn(0x1.fffffep127f, 0x1p103f), 0x7f800000);
    assert_bits(add_rn(1.0f, 0x1p-24f), 0x3f800000);
    assert_bits(add_rn(0x1.000002p0f, 0x1p-24f), 0x3f800002);
    assert_bits(add_rn(-0.0f, 0.0f), 0x00000000);
    assert_bits(add_rn(-0.0f, -0.0f), 0x80000000);
    assert_bits(div_rn(-1.0f, 0.0f), 0xff800000);
    assert_int_equal(cvt_bf16(0x1.01p0f), 0x3f80);
    assert_int_equal(cvt_f16(0x1p16f), 0x7c00);
    assert_int_equal(cvt_e4m3(-INFINITY), 0xfe);
}

/*
 * Random bits against double: it holds a product of two floats exactly, and for normal results
 * its 53 bits are more than twice 24 plus 2, so that rounding a sum or quotient twice is harmless.
 */
static void test_random(void **state)
{
    struct random_source source = {2024};
    long compared = 0, equal = 0;
    (void)state;

    for (int i = 0; i < RANDOM_PAIRS; i++) {
        const float a = float_from_bits((uint32_t)random_bits(&source));
        const float b = float_from_bits((uint32_t)random_bits(&source));
        const float product = (float)((double)a * (double)b);
        const float sum = (float)((double)a + (double)b);
        const float quotient = (float)((double)a / (double)b);
        equal += bits_from_float(mul_rn(a, b)) == bits_from_float(nan_canonical(product));
        equal += bits_from_float(add_rn(a, b)) == bits_from_float(nan_canonical(sum));
        compared += 2;
        if (fpclassify(quotient) != FP_SUBNORMAL) {
            equal += bits_from_float(div_rn(a, b)) == bits_from_float(nan_canonical(quotient));
            compared++;
        }
    }
    assert_true(compared > 2 * RANDOM_PAIRS);
    assert_int_equal(equal, compared);
}

static void test_hostile_host(void **state)
{
    (void)state;
    const fp_env before = fp_env_save();
    assert_true(host_fp_is_exact());

    host_fp_set_hostile();
    assert_false(host_fp_is_exact());
    const fp_env host = fp_env_save();
    fp_env_set();
    const bool exact_inside = host_fp_is_exact();
    test_rounding(NULL);
    fp_env_restore(host);
    const bool exact_after = host_fp_is_exact();
    const int rounding_after = fegetround();

    fp_env_restore(before);
    assert_true(exact_inside);
    assert_false(exact_after);
    assert_int_equal(rounding_after, FE_TOWARDZERO);
    assert_true(host_fp_is_exact());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nan_operands), cmocka_unit_test(test_invalid_operations),
        cmocka_unit_test(test_max),          cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_random),       cmocka_unit_test(test_hostile_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
