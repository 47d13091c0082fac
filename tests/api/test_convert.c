/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types: names, sizes, and conversions against arithmetic in double; the instruction's
 * entry point.  What the conversions give for every input is tested with the formats themselves.
 */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "halfbyte.h"
#include "model/host_fp.h"
#include "model/tensor_core.h"
#include "oracle/splitmix.h"

enum { COUNT = 4096, POISON = 0xa5 };

static const struct {
    halfbyte_type type;
    const char *name;
    int bits;
} types[] = {
    {HALFBYTE_TYPE_NONE, "none", 0},  {HALFBYTE_TYPE_F32, "f32", 32},
    {HALFBYTE_TYPE_BF16, "bf16", 16}, {HALFBYTE_TYPE_F16, "f16", 16},
    {HALFBYTE_TYPE_E4M3, "e4m3", 8},  {HALFBYTE_TYPE_E5M2, "e5m2", 8},
    {HALFBYTE_TYPE_E8M0, "e8m0", 8},  {HALFBYTE_TYPE_INT4, "int4", 4},
};
enum { TYPES = sizeof types / sizeof types[0] };

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        assert_string_equal(halfbyte_type_name(types[i].type), types[i].name);
        assert_int_equal(halfbyte_type_bits(types[i].type), types[i].bits);
    }
    for (int outside = -3; outside < 20; outside++) {
        if (outside < 0 || outside >= TYPES) {
            assert_string_equal(halfbyte_type_name((halfbyte_type)outside), "unknown");
            assert_int_equal(halfbyte_type_bits((halfbyte_type)outside), 0);
        }
    }
}

/* ---- the formats in double ------------------------------------------------------------------- */

/* Bits of exponent and mantissa, the largest finite value, and what lies above it. */
typedef struct number_format {
    int exponent_bits, mantissa_bits;
    double largest;
    int saturates;
} number_format;

static number_format format_of(halfbyte_type type)
{
    switch (type) {
    case HALFBYTE_TYPE_BF16: return (number_format){8, 7, 0x1.fep127, 0};
    case HALFBYTE_TYPE_F16: return (number_format){5, 10, 65504, 0};
    case HALFBYTE_TYPE_E4M3: return (number_format){4, 3, 448, 1};
    default: return (number_format){5, 2, 57344, 1};
    }
}

/* The value of a code, without regard to NaN and infinity. */
static double decode(number_format f, uint32_t code)
{
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    const int field = (int)(code >> f.mantissa_bits);
    const double mantissa = (double)(code & ((1u << f.mantissa_bits) - 1));
    return field == 0 ? ldexp(mantissa, 1 - bias - f.mantissa_bits)
                      : ldexp(mantissa + (1 << f.mantissa_bits), field - bias - f.mantissa_bits);
}

/* Largest code whose value is not above magnitude, by bisection over codes, which are ordered. */
static uint32_t code_below(number_format f, double magnitude)
{
    uint32_t low = 0, high = 1u << (f.exponent_bits + f.mantissa_bits);
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (decode(f, middle) <= magnitude) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t encode(halfbyte_type type, float value)
{
    const number_format f = format_of(type);
    const uint32_t sign = signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
    const double magnitude = fabs((double)value);
    const uint32_t largest = code_below(f, f.largest);

    if (isnan(value)) {
        return type == HALFBYTE_TYPE_E4M3 || type == HALFBYTE_TYPE_E5M2 ? 0x7f : 0x7fff;
    }
    uint32_t code = code_below(f, magnitude);
    if (isinf(value) || code > largest) {
        code = f.saturates ? largest : largest + 1;
    } else {
        const double down = magnitude - decode(f, code), up = decode(f, code + 1) - magnitude;
        code += up < down || (up == down && code % 2 != 0);
        code = f.saturates && code > largest ? largest : code;
    }
    return sign | code;
}

/* Random patterns of every exponent, with ties of every format among them. */
static void fill(float *values, uint64_t seed)
{
    struct random r = {.state = seed};
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = (uint32_t)random_bits(&r);
        if (i % 3 == 1) { /* within the narrow formats' range */
            bits = (bits & 0x87ffffffu) + 0x38000000u;
        }
        if (i % 2 == 1) { /* few mantissa bits: values and ties of narrow formats */
            bits &= 0xffffffffu << random_between(&r, 12, 23);
        }
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static uint32_t code_at(const void *codes, halfbyte_type type, int64_t i)
{
    switch (halfbyte_type_bits(type)) {
    case 32: return ((const uint32_t *)codes)[i];
    case 16: return ((const uint16_t *)codes)[i];
    default: return ((const uint8_t *)codes)[i];
    }
}

static void test_from_f32(void **state)
{
    static float values[COUNT];
    static uint32_t codes[COUNT];
    int compared = 0;
    (void)state;

    for (int type = HALFBYTE_TYPE_BF16; type <= HALFBYTE_TYPE_E5M2; type++) {
        for (int hostile = 0; hostile < 2; hostile++) {
            fill(values, (uint64_t)type);
            const fp_env before = fp_env_save();
            if (hostile != 0) {
                host_fp_set_hostile();
            }
            const halfbyte_status status =
                halfbyte_convert(codes, (halfbyte_type)type, values, HALFBYTE_TYPE_F32, COUNT);
            fp_env_restore(before);
            assert_int_equal(status, HALFBYTE_SUCCESS);
            for (int i = 0; i < COUNT; i++) {
                assert_int_equal(code_at(codes, (halfbyte_type)type, i),
                                 encode((halfbyte_type)type, values[i]));
                compared++;
            }
        }
    }
    assert_int_equal(compared, 4 * 2 * COUNT);
}

static void test_f32_to_e8m0(void **state)
{
    static const struct {
        uint32_t bits;
        uint8_t code;
    } rows[] = {{0x00000000, 0x00}, {0x80000000, 0x00}, {0x00000001, 0x00}, {0x00400000, 0x00},
                {0x00400001, 0x01}, {0x00800000, 0x01}, {0x00800001, 0x02}, {0x3f800000, 0x7f},
                {0x3f800001, 0x80}, {0x3fffffff, 0x80}, {0x7f000000, 0xfe}, {0x7f000001, 0xfe},
                {0x7f800000, 0xfe}, {0x7fc00000, 0xff}, {0xffffffff, 0xff}, {0x80000001, 0xff},
                {0xbf800000, 0xff}, {0xff800000, 0xff}};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t code = POISON;
        assert_int_equal(
            halfbyte_convert(&code, HALFBYTE_TYPE_E8M0, &rows[i].bits, HALFBYTE_TYPE_F32, 1),
            HALFBYTE_SUCCESS);
        assert_int_equal(code, rows[i].code);
    }
}

/* Every code of every type to f32, and back where that returns the code. */
static void test_to_f32(void **state)
{
    static uint16_t wide[0x10000];
    static uint8_t narrow[0x100];
    static float values[0x10000];
    static uint32_t back[0x10000];
    int numbers = 0, specials = 0;
    (void)state;

    for (int i = 0; i < 0x10000; i++) {
        wide[i] = (uint16_t)i;
        narrow[i % 0x100] = (uint8_t)i;
    }
    for (int t = HALFBYTE_TYPE_BF16; t <= HALFBYTE_TYPE_E5M2; t++) {
        const halfbyte_type type = (halfbyte_type)t;
        const int count = halfbyte_type_bits(type) == 16 ? 0x10000 : 0x100;
        const void *codes = count == 0x10000 ? (const void *)wide : narrow;
        const number_format f = format_of(type);
        const uint32_t largest = code_below(f, f.largest);

        assert_int_equal(halfbyte_convert(values, HALFBYTE_TYPE_F32, codes, type, count), 0);
        assert_int_equal(halfbyte_convert(back, type, values, HALFBYTE_TYPE_F32, count), 0);
        for (int i = 0; i < count; i++) {
            const uint32_t magnitude = (uint32_t)i & (uint32_t)(count / 2 - 1);
            uint32_t bits;
            memcpy(&bits, &values[i], sizeof bits);
            if (magnitude <= largest) {
                assert_true((double)fabsf(values[i]) == decode(f, magnitude));
                assert_int_equal(signbit(values[i]) != 0, i >= count / 2);
                assert_int_equal(code_at(back, type, i), i);
                numbers++;
            } else if (magnitude == largest + 1 && type != HALFBYTE_TYPE_E4M3) {
                assert_int_equal(bits, i >= count / 2 ? 0xff800000u : 0x7f800000u);
                specials++;
            } else {
                assert_int_equal(bits, 0x7fffffff);
                specials++;
            }
        }
    }
    assert_int_equal(numbers + specials, 2 * 0x10000 + 2 * 0x100);
    assert_int_equal(specials, 2 * (0x80 + 0x400 + 1 + 4));

    assert_int_equal(halfbyte_convert(values, HALFBYTE_TYPE_F32, narrow, HALFBYTE_TYPE_E8M0, 256),
                     HALFBYTE_SUCCESS);
    for (int i = 0; i < 255; i++) {
        assert_true((double)values[i] == ldexp(1, i - 127));
    }
    assert_true(isnan(values[255]));
}

/* To itself: the bits as they are, NaN payloads too; in place as well. */
static void test_copies(void **state)
{
    static uint32_t from[64], to[64];
    (void)state;

    for (int t = HALFBYTE_TYPE_F32; t <= HALFBYTE_TYPE_E8M0; t++) {
        const halfbyte_type type = (halfbyte_type)t;
        const size_t bytes = 50 * (size_t)halfbyte_type_bits(type) / 8;
        memset(from, 0xfd, sizeof from);
        memset(to, POISON, sizeof to);
        assert_int_equal(halfbyte_convert(to, type, from, type, 50), HALFBYTE_SUCCESS);
        assert_memory_equal(to, from, bytes);
        assert_int_equal(((uint8_t *)to)[bytes], POISON);
        assert_int_equal(halfbyte_convert(to, type, to, type, 50), HALFBYTE_SUCCESS);
        assert_memory_equal(to, from, bytes);
    }
}

static void test_refusals(void **state)
{
    static uint32_t buffer[16], other[16];
    uint8_t *const bytes = (uint8_t *)buffer;
    const halfbyte_type f32 = HALFBYTE_TYPE_F32, bf16 = HALFBYTE_TYPE_BF16;
    const struct {
        void *dst;
        halfbyte_type dst_type;
        const void *src;
        halfbyte_type src_type;
        int64_t count;
        halfbyte_status status;
        const char *message;
    } rows[] = {
        {NULL, bf16, other, f32, 4, HALFBYTE_ERR_INVALID_ARGUMENT, "dst = NULL"},
        {bytes, bf16, NULL, f32, 4, HALFBYTE_ERR_INVALID_ARGUMENT, "src = NULL"},
        {bytes, bf16, other, f32, -1, HALFBYTE_ERR_INVALID_ARGUMENT, "count = -1"},
        {bytes, bf16, other, f32, INT64_MAX, HALFBYTE_ERR_INVALID_ARGUMENT, "address space"},
        {bytes, bf16, other, f32, INT64_MAX / 2, HALFBYTE_ERR_INVALID_ARGUMENT, "src would not"},
        {bytes + 1, bf16, other, f32, 4, HALFBYTE_ERR_MISALIGNED, "aligned to 2 bytes (bf16)"},
        {bytes, bf16, (char *)other + 2, f32, 4, HALFBYTE_ERR_MISALIGNED, "aligned to 4 bytes"},
        {bytes, bf16, bytes, f32, 4, HALFBYTE_ERR_INVALID_ARGUMENT, "overlaps"},
        {bytes + 4, f32, bytes, f32, 4, HALFBYTE_ERR_INVALID_ARGUMENT, "overlaps"},
        {bytes, f32, bytes + 14, bf16, 4, HALFBYTE_ERR_INVALID_ARGUMENT, "overlaps"},
        {bytes + 6, bf16, bytes, f32, 4, HALFBYTE_ERR_INVALID_ARGUMENT, "overlaps"},
        {bytes, HALFBYTE_TYPE_INT4, other, f32, 4, HALFBYTE_ERR_UNSUPPORTED, "dst_type = int4"},
        {bytes, f32, other, HALFBYTE_TYPE_INT4, 4, HALFBYTE_ERR_UNSUPPORTED, "src_type = int4"},
        {bytes, HALFBYTE_TYPE_INT4, other, HALFBYTE_TYPE_INT4, 4, HALFBYTE_ERR_UNSUPPORTED, "int4"},
        {bytes, bf16, other, HALFBYTE_TYPE_F16, 4, HALFBYTE_ERR_UNSUPPORTED, "src_type = f16 (3)"},
        {bytes, HALFBYTE_TYPE_NONE, other, f32, 4, HALFBYTE_ERR_UNSUPPORTED, "dst_type = none"},
        {bytes, (halfbyte_type)8, other, f32, 4, HALFBYTE_ERR_UNSUPPORTED, "unknown (8)"},
        {bytes, f32, other, (halfbyte_type)-1, 4, HALFBYTE_ERR_UNSUPPORTED, "unknown (-1)"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(buffer, POISON, sizeof buffer);
        assert_int_equal(halfbyte_convert(rows[i].dst, rows[i].dst_type, rows[i].src,
                                          rows[i].src_type, rows[i].count),
                         rows[i].status);
        assert_non_null(strstr(halfbyte_last_error(), rows[i].message));
        for (size_t j = 0; j < sizeof buffer; j++) {
            assert_int_equal(bytes[j], POISON);
        }
    }
    assert_int_equal(halfbyte_convert(NULL, bf16, NULL, f32, 0), HALFBYTE_SUCCESS);
    assert_int_equal(halfbyte_convert(bytes + 16, bf16, bytes, f32, 4), HALFBYTE_SUCCESS);
}

/* ---- the instruction ------------------------------------------------------------------------- */

static void test_tensor_core_dot(void **state)
{
    static const struct {
        halfbyte_type type;
        tensor_core_type instruction;
    } rows[] = {{HALFBYTE_TYPE_E4M3, TENSOR_CORE_E4M3},
                {HALFBYTE_TYPE_E5M2, TENSOR_CORE_E5M2},
                {HALFBYTE_TYPE_BF16, TENSOR_CORE_BF16},
                {HALFBYTE_TYPE_F16, TENSOR_CORE_FP16}};
    struct random r = {.state = 5};
    int compared = 0, different = 0;
    (void)state;

    for (int row = 0; row < 4; row++) {
        for (int i = 0; i < 1000; i++) {
            uint8_t memory[2][33]; /* at an odd address: any alignment is served */
            uint16_t codes[2][TENSOR_CORE_MAX_K] = {{0}};
            const int bytes = row < 2 ? 1 : 2;
            for (int operand = 0; operand < 2; operand++) {
                for (int k = 0; k < 32 / bytes; k++) {
                    codes[operand][k] = (uint16_t)(random_bits(&r) & (row < 2 ? 0xb7u : 0xbfffu));
                    memcpy(&memory[operand][1 + k * bytes], &codes[operand][k], (size_t)bytes);
                }
            }
            const uint32_t c = (uint32_t)random_bits(&r) & 0xbfffffffu;
            uint32_t d = 0;
            assert_int_equal(
                halfbyte_tensor_core_dot(rows[row].type, memory[0] + 1, memory[1] + 1, c, &d),
                HALFBYTE_SUCCESS);
            const uint32_t expected =
                tensor_core_block(rows[row].instruction, codes[0], codes[1], c);
            assert_int_equal(d, expected);
            different += d != c;
            compared++;
        }
    }
    assert_int_equal(compared, 4000);
    assert_true(different > 3000);

    /* 32 times 1 * 1, plus 2 */
    uint8_t ones[32];
    uint32_t d = 0;
    memset(ones, 0x38, sizeof ones);
    assert_int_equal(halfbyte_tensor_core_dot(HALFBYTE_TYPE_E4M3, ones, ones, 0x40000000, &d), 0);
    assert_int_equal(d, 0x42080000); /* 34 */
}

static void test_tensor_core_dot_refusals(void **state)
{
    const uint8_t zeros[32] = {0};
    uint32_t d = 0xa5a5a5a5u;
    (void)state;

    for (int type = -1; type <= 8; type++) {
        if (type < HALFBYTE_TYPE_BF16 || type > HALFBYTE_TYPE_E5M2) {
            assert_int_equal(halfbyte_tensor_core_dot((halfbyte_type)type, zeros, zeros, 0, &d),
                             HALFBYTE_ERR_UNSUPPORTED);
            assert_non_null(strstr(halfbyte_last_error(), "type = "));
        }
    }
    assert_int_equal(halfbyte_tensor_core_dot(HALFBYTE_TYPE_E4M3, NULL, zeros, 0, &d),
                     HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), "a = NULL"));
    assert_int_equal(halfbyte_tensor_core_dot(HALFBYTE_TYPE_BF16, zeros, NULL, 0, &d),
                     HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), "b = NULL"));
    assert_int_equal(halfbyte_tensor_core_dot(HALFBYTE_TYPE_F16, zeros, zeros, 0, NULL),
                     HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), "d = NULL"));
    assert_int_equal(d, 0xa5a5a5a5u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),           cmocka_unit_test(test_from_f32),
        cmocka_unit_test(test_f32_to_e8m0),     cmocka_unit_test(test_to_f32),
        cmocka_unit_test(test_copies),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_tensor_core_dot), cmocka_unit_test(test_tensor_core_dot_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
