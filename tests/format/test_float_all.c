/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of all 2^32 fp32 patterns. Magnitudes are walked upwards in runs that share a code; a
 * run ends at the midpoint to the next code, which belongs to the even one of the two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/fp8.h"
#include "format/half.h"
#include "reference.h"

static uint64_t compared, mismatches;

#define COMPARE_RUN(name)                                                                          \
    static void name##_compare_run(uint32_t first, uint32_t end, uint32_t positive,                \
                                   uint32_t negative)                                              \
    {                                                                                              \
        uint64_t wrong = 0;                                                                        \
        for (uint32_t bits = first; bits < end; bits++) {                                          \
            wrong += name##_encode_bits(bits) != positive;                                         \
            wrong += name##_encode_bits(bits | 0x80000000u) != negative;                           \
        }                                                                                          \
        compared += 2 * (uint64_t)(end - first);                                                   \
        mismatches += wrong;                                                                       \
    }

COMPARE_RUN(e4m3)
COMPARE_RUN(e5m2)
COMPARE_RUN(bf16)
COMPARE_RUN(fp16)

/* The first fp32 pattern >= value > 0. */
static uint32_t bits_at_or_above(double value)
{
    const uint32_t bits = ref_bits(value);
    return (double)ref_float(bits) < value ? bits + 1 : bits;
}

static void check_all(const struct ref_format *ref,
                      void (*compare_run)(uint32_t, uint32_t, uint32_t, uint32_t))
{
    const uint32_t sign = ref_sign_bit(ref), max_code = ref_max_code(ref);
    const uint32_t last = ref->saturates ? max_code : max_code + 1;
    uint32_t first = 0;

    compared = mismatches = 0;
    for (uint32_t code = 0; code <= last; code++) {
        uint32_t end = 0x7f800001u; /* the last code takes the rest, infinity included */
        if (code < last) {
            const double here = ref_plain_value(ref, code), next = ref_plain_value(ref, code + 1);
            const double middle = here + (next - here) / 2;
            end = bits_at_or_above(middle);
            if (code % 2 == 0 && (double)ref_float(end) == middle)
                end++;
        }
        assert_true(end > first);
        compare_run(first, end, code, code | sign);
        first = end;
    }
    compare_run(first, 0x80000000u, ref->nan_code, ref->nan_code);
    print_message("%s: %llu compared, %llu mismatches\n", ref->name, (unsigned long long)compared,
                  (unsigned long long)mismatches);
    assert_true(compared == UINT64_C(1) << 32);
    assert_true(mismatches == 0);
}

static void e4m3_all(void **state)
{
    (void)state;
    check_all(&ref_e4m3, e4m3_compare_run);
}

static void e5m2_all(void **state)
{
    (void)state;
    check_all(&ref_e5m2, e5m2_compare_run);
}

static void bf16_all(void **state)
{
    (void)state;
    check_all(&ref_bf16, bf16_compare_run);
}

static void fp16_all(void **state)
{
    (void)state;
    check_all(&ref_fp16, fp16_compare_run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e4m3_all),
        cmocka_unit_test(e5m2_all),
        cmocka_unit_test(bf16_all),
        cmocka_unit_test(fp16_all),
    };
    return cmocka_run_group_tests_name("format_float_all", tests, NULL, NULL);
}
