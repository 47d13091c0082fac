/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's instruction against what an H200 returned, and the library's against the oracle's.
 * Without this the oracle would be one more opinion.
 */
#include "oracle/dot.h"
#include "oracle/exact.h"
#include "oracle/splitmix.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RECORD_BYTES 80

static const halfbyte_type vector_types[4] = {HALFBYTE_TYPE_E4M3, HALFBYTE_TYPE_E5M2,
                                              HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16};

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void load_codes(uint16_t *codes, const uint8_t *bytes, int length)
{
    for (int i = 0; i < length; i++)
        codes[i] = length == 32 ? bytes[i] : (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
}

static void golden_vectors(void **state)
{
    (void)state;
    FILE *file = fopen(HALFBYTE_SOURCE_DIR "/tests/golden/hopper_vectors.bin", "rb");
    assert_non_null(file);
    uint8_t record[RECORD_BYTES];
    long compared[4] = {0}, equal[4] = {0}, other = 0;
    while (fread(record, 1, sizeof record, file) == sizeof record) {
        uint32_t kind = load32(record), c = load32(record + 72), d = load32(record + 76);
        if (kind >= 4) {
            other++;
            continue;
        }
        uint16_t a[32], b[32];
        int length = oracle_dot_length(vector_types[kind]);
        load_codes(a, record + 8, length);
        load_codes(b, record + 40, length);
        uint32_t got = oracle_dot(vector_types[kind], a, b, c);
        compared[kind]++;
        equal[kind] += got == d;
        if (got != d && compared[kind] - equal[kind] <= 5)
            print_error("%s tag %u: oracle %08x, device %08x\n",
                        halfbyte_type_name(vector_types[kind]), load32(record + 4), got, d);
    }
    assert_int_equal(fclose(file), 0);
    static const long expected[4] = {12962, 2964, 14632, 4281};
    for (int kind = 0; kind < 4; kind++) {
        assert_int_equal(compared[kind], expected[kind]);
        assert_int_equal(equal[kind], compared[kind]);
    }
    assert_int_equal(other, 497 + 521); /* mma.sync: another arithmetic */
}

/* Codes of one of six characters; the last two carry NaN and infinities. */
static uint16_t random_code(struct random *r, halfbyte_type type, int character, int i)
{
    int bits = halfbyte_type_bits(type);
    uint16_t code = (uint16_t)(random_bits(r) & ((1u << bits) - 1));
    uint16_t sign = (uint16_t)(1u << (bits - 1));
    struct number x = number_decode(type, code);
    switch (character) {
    case 0: return x.kind == NUMBER_FINITE ? code : (uint16_t)(code & sign);
    case 1: return random_percent(r, 90) || x.kind != NUMBER_FINITE ? 0 : code;
    case 2: return (uint16_t)(code & (sign | (bits == 8 ? 0xf : 0x7ff))); /* the small end */
    case 3: return (uint16_t)((code & sign) | oracle_narrow(type, 0x4f000000u) >> (i & 1));
    case 4: return random_percent(r, 97) && x.kind != NUMBER_FINITE ? sign : code;
    default: return code;
    }
}

static void library_instruction(void **state)
{
    (void)state;
    struct random r = {11};
    long compared = 0, equal = 0, finite = 0;
    for (int type = 0; type < 4; type++) {
        halfbyte_type t = vector_types[type];
        int length = oracle_dot_length(t);
        for (int trial = 0; trial < 60000; trial++) {
            int character = trial % 6;
            uint16_t a[32], b[32];
            uint8_t a_bytes[32], b_bytes[32];
            for (int i = 0; i < length; i++) {
                a[i] = random_code(&r, t, character, i);
                b[i] = random_code(&r, t, random_percent(&r, 70) ? character : 0, i);
                if (character == 0 && i >= length / 2 && random_percent(&r, 90)) {
                    a[i] = (uint16_t)(a[i - length / 2] ^ 1u << (halfbyte_type_bits(t) - 1));
                    b[i] = b[i - length / 2]; /* cancellation */
                }
            }
            memcpy(b_bytes, b, length == 16 ? 32 : 0);
            memcpy(a_bytes, a, length == 16 ? 32 : 0);
            for (int i = 0; i < length && length == 32; i++) {
                a_bytes[i] = (uint8_t)a[i];
                b_bytes[i] = (uint8_t)b[i];
            }
            uint32_t c = random_percent(&r, 40) ? 0 : (uint32_t)random_bits(&r), d = 0;
            if (character < 4 && (c & ORACLE_INF32) == ORACLE_INF32)
                c &= 0x80000000u;
            assert_int_equal(halfbyte_tensor_core_dot(t, a_bytes, b_bytes, c, &d), 0);
            uint32_t expected = oracle_dot(t, a, b, c);
            compared++;
            equal += d == expected;
            finite += (expected & ORACLE_INF32) != ORACLE_INF32;
        }
    }
    assert_int_equal(compared, 240000);
    assert_int_equal(equal, compared);
    assert_true(finite > compared / 2);
}

static void library_conversions(void **state)
{
    (void)state;
    static const halfbyte_type types[4] = {HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16,
                                           HALFBYTE_TYPE_E4M3, HALFBYTE_TYPE_E5M2};
    struct random r = {12};
    long compared = 0, equal = 0;
    for (int type = 0; type < 4; type++) {
        int bits = halfbyte_type_bits(types[type]);
        for (uint32_t code = 0; code < 1u << bits; code++) {
            uint16_t code16 = (uint16_t)code;
            uint8_t code8 = (uint8_t)code;
            uint32_t wide = 0;
            assert_int_equal(halfbyte_convert(&wide, HALFBYTE_TYPE_F32,
                                              bits == 8 ? (void *)&code8 : (void *)&code16,
                                              types[type], 1),
                             0);
            compared++;
            equal += wide == oracle_widen(types[type], code);
        }
        for (int trial = 0; trial < 200000; trial++) {
            /* Half of the inputs lie at a code's value or half-way between two, give or take one
             * bit. */
            uint32_t x = (uint32_t)random_bits(&r);
            if (trial & 1) {
                x = oracle_widen(types[type], x & ((1u << bits) - 1));
                x += (uint32_t)random_between(&r, -1, 1);
                if (trial & 2)
                    x += (types[type] == HALFBYTE_TYPE_BF16)   ? 1u << 15
                         : (types[type] == HALFBYTE_TYPE_F16)  ? 1u << 12
                         : (types[type] == HALFBYTE_TYPE_E4M3) ? 1u << 19
                                                               : 1u << 20;
            }
            uint16_t narrow16 = 0;
            uint8_t narrow8 = 0;
            assert_int_equal(halfbyte_convert(bits == 8 ? (void *)&narrow8 : (void *)&narrow16,
                                              types[type], &x, HALFBYTE_TYPE_F32, 1),
                             0);
            compared++;
            equal += (bits == 8 ? narrow8 : narrow16) == oracle_narrow(types[type], x);
        }
    }
    assert_int_equal(compared, 2 * 65536 + 2 * 256 + 4 * 200000);
    assert_int_equal(equal, compared);
}

/* The oracle's own fp32 against the host's, which both claim IEEE 754. */
static void oracle_arithmetic(void **state)
{
    (void)state;
    struct random r = {13};
    long compared = 0, equal = 0;
    for (int trial = 0; trial < 300000; trial++) {
        uint32_t bits[3], result[4];
        float x[3];
        for (int i = 0; i < 3; i++) {
            bits[i] = (uint32_t)random_bits(&r);
            if (random_percent(&r, 40)) /* near one, so that operands meet */
                bits[i] = (bits[i] & 0x807fffffu) | (uint32_t)random_between(&r, 115, 139) << 23;
            else if (random_percent(&r, 10))
                bits[i] &= 0x80000007u;
        }
        if (random_percent(&r, 10))
            bits[2] = oracle_mul(bits[0], bits[1]) ^ 0x80000000u;
        memcpy(x, bits, sizeof x);
        volatile float y[4] = {fmaf(x[0], x[1], x[2]), x[0] * x[1], x[0] + x[2], x[0] / x[1]};
        uint32_t oracle[4] = {oracle_fma(bits[0], bits[1], bits[2]), oracle_mul(bits[0], bits[1]),
                              oracle_add(bits[0], bits[2]), oracle_div(bits[0], bits[1])};
        for (int i = 0; i < 4; i++) {
            float value = y[i];
            memcpy(&result[i], &value, sizeof value);
            if ((result[i] & 0x7fffffffu) > ORACLE_INF32)
                result[i] = ORACLE_NAN32;
            compared++;
            equal += result[i] == oracle[i];
        }
    }
    assert_int_equal(compared, 1200000);
    assert_int_equal(equal, compared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(oracle_arithmetic),
        cmocka_unit_test(library_instruction),
        cmocka_unit_test(library_conversions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
