/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensor-core model against what the device returned, and proof that this comparison would
 * notice a model that is almost right.  Optional argument: the file of golden vectors.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/bits.h"
#include "format/fp8.h"
#include "golden_vectors.h"
#include "model/tensor_core.h"

#ifndef HALFBYTE_SOURCE_DIR
#define HALFBYTE_SOURCE_DIR "."
#endif

static struct golden_vector *vectors;
static size_t vector_count;

static void test_golden_vectors(void **state)
{
    size_t seen[GOLDEN_TYPES] = {0}, equal[GOLDEN_TYPES] = {0};
    (void)state;

    for (size_t i = 0; i < vector_count; i++) {
        const struct golden_vector *v = &vectors[i];
        uint16_t a[TENSOR_CORE_MAX_K], b[TENSOR_CORE_MAX_K];
        seen[v->type]++;
        if (v->type > TENSOR_CORE_FP16)
            continue;
        golden_operands(v, a, b);
        const uint32_t d = tensor_core_block((tensor_core_type)v->type, a, b, v->c);
        equal[v->type] += d == v->d;
        if (d != v->d && seen[v->type] - equal[v->type] <= 5)
            print_error("record %zu, %s, tag %u: %08x, device %08x\n", i, golden_type_name(v->type),
                        (unsigned)v->tag, (unsigned)d, (unsigned)v->d);
    }
    for (uint32_t type = 0; type < GOLDEN_TYPES; type++) {
        if (type <= TENSOR_CORE_FP16)
            print_message("%-14s %6zu compared, %zu mismatches\n", golden_type_name(type),
                          seen[type], seen[type] - equal[type]);
        else if (golden_type_name(type))
            print_message("%-14s %6zu skipped: another instruction\n", golden_type_name(type),
                          seen[type]);
    }
    for (uint32_t type = 0; type <= TENSOR_CORE_FP16; type++) {
        assert_true(seen[type] > 0);
        assert_int_equal(equal[type], seen[type]);
    }
}

/*
 * The e4m3 instruction once more, in doubles and from its description alone, with switches that
 * break one rule each.
 */
struct rules {
    const char *name;
    int aligned_bits;
    int result_bits;
    int block_k;         /* products that are summed at once */
    bool floor_terms;    /* alignment rounds down, not toward zero */
    bool nearest_terms;  /* alignment rounds to nearest */
    bool nearest_result; /* the result does */
    bool renormalised;   /* a product in [2, 4) counts with its true exponent */
    bool normal_inputs;  /* a subnormal operand counts with its true exponent */
    bool zeros_count;    /* a zero product takes part in emax */
    bool c_after;        /* C is added to the finished sum of the products */
};

static const struct rules right_rules = {"right", 13, 13, 32, 0, 0, 0, 0, 0, 0, 0};
static const struct rules wrong_rules[] = {
    {"12 aligned bits", 12, 13, 32, 0, 0, 0, 0, 0, 0, 0},
    {"14 aligned bits", 14, 13, 32, 0, 0, 0, 0, 0, 0, 0},
    {"12 result bits", 13, 12, 32, 0, 0, 0, 0, 0, 0, 0},
    {"14 result bits", 13, 14, 32, 0, 0, 0, 0, 0, 0, 0},
    {"blocks of 16", 13, 13, 16, 0, 0, 0, 0, 0, 0, 0},
    {"floor alignment", 13, 13, 32, 1, 0, 0, 0, 0, 0, 0},
    {"nearest alignment", 13, 13, 32, 0, 1, 0, 0, 0, 0, 0},
    {"nearest result", 13, 13, 32, 0, 0, 1, 0, 0, 0, 0},
    {"renormalised products", 13, 13, 32, 0, 0, 0, 1, 0, 0, 0},
    {"normalised subnormals", 13, 13, 32, 0, 0, 0, 0, 1, 0, 0},
    {"zero products in emax", 13, 13, 32, 0, 0, 0, 0, 0, 1, 0},
    {"C added after", 13, 13, 32, 0, 0, 0, 0, 0, 0, 1},
};

static int code_exponent(const struct rules *rules, uint8_t code)
{
    const int field = code >> 3 & 15;
    const double value = fabs((double)e4m3_decode(code));
    if (rules->normal_inputs && value != 0)
        return ilogb(value);
    return (field ? field : 1) - 7;
}

/* value * 2^bits as an integer, by the rounding that the rules ask for. */
static double term_round(const struct rules *rules, double value, int bits)
{
    const double scaled = ldexp(value, bits);
    if (rules->floor_terms)
        return floor(scaled);
    return rules->nearest_terms ? nearbyint(scaled) : trunc(scaled);
}

static double result_round(const struct rules *rules, double value)
{
    if (value == 0)
        return 0.0;
    const int exponent = ilogb(value) < -126 ? -126 : ilogb(value);
    const double quanta = ldexp(value, rules->result_bits - exponent);
    const double cut = rules->nearest_result ? nearbyint(quanta) : trunc(quanta);
    return cut == 0 ? 0.0 : ldexp(cut, exponent - rules->result_bits);
}

/* One block of finite operands; C finite.  Every intermediate is exact in double. */
static double rules_block(const struct rules *rules, const uint8_t *a, const uint8_t *b, double c)
{
    int emax = -1000;
    for (int i = 0; i < rules->block_k; i++) {
        const double product = (double)e4m3_decode(a[i]) * (double)e4m3_decode(b[i]);
        int e = code_exponent(rules, a[i]) + code_exponent(rules, b[i]);
        if (rules->renormalised && product != 0)
            e = ilogb(product);
        if ((product != 0 || rules->zeros_count) && e > emax)
            emax = e;
    }
    if (c != 0) {
        const int e = ilogb(c) < -126 ? -126 : ilogb(c);
        emax = e > emax ? e : emax;
    }
    if (emax == -1000)
        return 0.0;

    double sum = term_round(rules, c, rules->aligned_bits - emax);
    for (int i = 0; i < rules->block_k; i++) {
        const double product = (double)e4m3_decode(a[i]) * (double)e4m3_decode(b[i]);
        sum += term_round(rules, product, rules->aligned_bits - emax);
    }
    return result_round(rules, ldexp(sum, emax - rules->aligned_bits));
}

static uint32_t rules_result(const struct rules *rules, const struct golden_vector *v)
{
    double d = rules->c_after ? 0.0 : (double)float_from_bits(v->c);
    for (int k = 0; k < 32; k += rules->block_k) {
        d = rules_block(rules, v->a + k, v->b + k, d);
        if (fabs(d) >= 0x1p128)
            return d < 0 ? FLOAT_BITS_NEG_INF : FLOAT_BITS_INF;
    }
    return bits_from_float(rules->c_after ? (float)d + float_from_bits(v->c) : (float)d);
}

static bool vector_is_finite(const struct golden_vector *v)
{
    bool finite = (v->c & FLOAT_BITS_INF) != FLOAT_BITS_INF;
    for (int i = 0; i < 32; i++)
        finite &= (v->a[i] & 0x7f) != 0x7f && (v->b[i] & 0x7f) != 0x7f;
    return finite;
}

static size_t rules_mismatches(const struct rules *rules, size_t *compared)
{
    size_t equal = 0;
    *compared = 0;
    for (size_t i = 0; i < vector_count; i++) {
        const struct golden_vector *v = &vectors[i];
        if (v->type != TENSOR_CORE_E4M3 || !vector_is_finite(v))
            continue;
        *compared += 1;
        equal += rules_result(rules, v) == v->d;
    }
    return *compared - equal;
}

static void test_teeth(void **state)
{
    size_t compared;
    (void)state;

    assert_int_equal(rules_mismatches(&right_rules, &compared), 0);
    assert_true(compared > 10000);
    print_message("finite e4m3 vectors: %zu, a second model differs in none\n", compared);
    for (size_t i = 0; i < sizeof wrong_rules / sizeof wrong_rules[0]; i++) {
        const size_t wrong = rules_mismatches(&wrong_rules[i], &compared);
        print_message("  %-24s %6zu differ\n", wrong_rules[i].name, wrong);
        assert_true(wrong > 0);
    }
}

static void test_k(void **state)
{
    (void)state;
    assert_int_equal(tensor_core_k(TENSOR_CORE_E4M3), 32);
    assert_int_equal(tensor_core_k(TENSOR_CORE_E5M2), 32);
    assert_int_equal(tensor_core_k(TENSOR_CORE_BF16), 16);
    assert_int_equal(tensor_core_k(TENSOR_CORE_FP16), 16);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_vectors),
        cmocka_unit_test(test_teeth),
        cmocka_unit_test(test_k),
    };
    vectors = golden_load(
        argc > 1 ? argv[1] : HALFBYTE_SOURCE_DIR "/tests/golden/hopper_vectors.bin", &vector_count);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(vectors);
    return failed;
}
