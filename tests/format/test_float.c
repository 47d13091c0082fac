/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp8.h and half.h: every code decoded, and encoding on every high half of fp32 with 56 low halves,
 * on every midpoint between codes and its neighbours, against reference.h.
 */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/fp8.h"
#include "format/half.h"
#include "reference.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* The four formats under one signature. */
struct float_format {
    const struct ref_format *ref;
    uint32_t num_codes;
    uint32_t (*decode)(uint32_t code); /* -> fp32 bits */
    uint32_t (*encode)(uint32_t bits);
};

#define FLOAT_FORMAT_WRAPPERS(name, type)                                                          \
    static uint32_t name##_decode_wide(uint32_t code)                                              \
    {                                                                                              \
        return name##_decode_bits((type)code);                                                     \
    }                                                                                              \
    static uint32_t name##_encode_wide(uint32_t bits)                                              \
    {                                                                                              \
        return name##_encode_bits(bits);                                                           \
    }

FLOAT_FORMAT_WRAPPERS(e4m3, uint8_t)
FLOAT_FORMAT_WRAPPERS(e5m2, uint8_t)
FLOAT_FORMAT_WRAPPERS(bf16, uint16_t)
FLOAT_FORMAT_WRAPPERS(fp16, uint16_t)

static const struct float_format float_formats[] = {
    {&ref_e4m3, 0x100, e4m3_decode_wide, e4m3_encode_wide},
    {&ref_e5m2, 0x100, e5m2_decode_wide, e5m2_encode_wide},
    {&ref_bf16, 0x10000, bf16_decode_wide, bf16_encode_wide},
    {&ref_fp16, 0x10000, fp16_decode_wide, fp16_encode_wide},
};
#define NUM_FLOAT_FORMATS (sizeof float_formats / sizeof float_formats[0])

static void decodes_every_code(void **state)
{
    (void)state;
    uint32_t compared = 0;
    for (size_t f = 0; f < NUM_FLOAT_FORMATS; f++) {
        const struct float_format *format = &float_formats[f];
        for (uint32_t code = 0; code < format->num_codes; code++, compared++) {
            const double want = ref_decode(format->ref, code);
            const uint32_t want_bits = isnan(want) ? 0x7fffffffu : ref_bits(want);
            const uint32_t got = format->decode(code);
            if (got != want_bits || (!isnan(want) && (double)ref_float(got) != want))
                fail_msg("%s code %#x: %#x, not %#x", format->ref->name, code, got, want_bits);
        }
    }
    assert_int_equal(compared, 2 * 0x100 + 2 * 0x10000);
}

static void encodes_back_every_code(void **state)
{
    (void)state;
    for (size_t f = 0; f < NUM_FLOAT_FORMATS; f++) {
        const struct float_format *format = &float_formats[f];
        const uint32_t max_code = ref_max_code(format->ref), sign = ref_sign_bit(format->ref);
        for (uint32_t code = 0; code < format->num_codes; code++) {
            const uint32_t magnitude = code & (sign - 1);
            uint32_t want = code;
            if (format->ref->has_infinity && magnitude == max_code + 1)
                want = format->ref->saturates ? (code & sign) | max_code : code;
            else if (magnitude > max_code)
                want = format->ref->nan_code;
            assert_int_equal(format->encode(format->decode(code)), want);
        }
    }
}

static uint64_t mismatches;

static void compare_encode(const struct float_format *format, uint32_t bits)
{
    const uint32_t got = format->encode(bits), want = ref_encode(format->ref, ref_float(bits));
    if (got != want && mismatches++ < 10)
        print_error("%s of %#010x: %#x, not %#x\n", format->ref->name, bits, got, want);
}

static void encodes_every_high_half(void **state)
{
    (void)state;
    uint32_t low[56] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    uint64_t seed = 1, compared = 0;
    for (size_t i = 6; i < 56; i++)
        low[i] = (uint32_t)(ref_random(&seed) & 0xffff);

    mismatches = 0;
    for (size_t f = 0; f < NUM_FLOAT_FORMATS; f++)
        for (uint32_t high = 0; high < 0x10000; high++)
            for (size_t i = 0; i < 56; i++, compared++)
                compare_encode(&float_formats[f], high << 16 | low[i]);
    assert_int_equal(mismatches, 0);
    assert_int_equal(compared, NUM_FLOAT_FORMATS * 0x10000 * 56);
}

/* Around every code and every midpoint of neighbouring codes, both signs, 3 ulp to each side. */
static void encodes_midpoints(void **state)
{
    (void)state;
    uint64_t compared = 0;
    mismatches = 0;
    for (size_t f = 0; f < NUM_FLOAT_FORMATS; f++) {
        const struct ref_format *ref = float_formats[f].ref;
        for (uint32_t code = 0; code <= ref_max_code(ref); code++) {
            const double here = ref_plain_value(ref, code), next = ref_plain_value(ref, code + 1);
            const double middle = here + (next - here) / 2;
            const uint32_t around[2] = {ref_bits(here), ref_bits(middle)};
            assert_true((double)ref_float(around[1]) == middle || middle < ldexp(1, -149));
            for (int i = 0; i < 2; i++)
                for (uint32_t ulp = 0; ulp < 7; ulp++)
                    for (uint32_t sign = 0; sign < 2; sign++, compared++)
                        compare_encode(&float_formats[f], (around[i] + ulp - 3) ^ sign << 31);
        }
    }
    assert_int_equal(mismatches, 0);
    assert_true(compared > 28 * (0x7f00 + 0x7b00));
}

struct known_code {
    uint32_t bits, e4m3, e5m2, bf16, fp16;
};

/* Written down by hand, so that a mistake common to code and reference would show. */
static void encodes_known_values(void **state)
{
    (void)state;
    static const struct known_code known[] = {
        {0x00000000, 0x00, 0x00, 0x0000, 0x0000}, /* +0 */
        {0x80000000, 0x80, 0x80, 0x8000, 0x8000}, /* -0 */
        {0x3f800000, 0x38, 0x3c, 0x3f80, 0x3c00}, /* 1 */
        {0x7f800000, 0x7e, 0x7b, 0x7f80, 0x7c00}, /* infinity */
        {0xff800000, 0xfe, 0xfb, 0xff80, 0xfc00},
        {0x7f800001, 0x7f, 0x7f, 0x7fff, 0x7fff}, /* signalling NaN */
        {0xffc00000, 0x7f, 0x7f, 0x7fff, 0x7fff}, /* NaN with a sign */
        {0xffffffff, 0x7f, 0x7f, 0x7fff, 0x7fff},
        {0x43e00000, 0x7e, 0x5f, 0x43e0, 0x5f00}, /* 448 */
        {0x43e80000, 0x7e, 0x5f, 0x43e8, 0x5f40}, /* 464 */
        {0xc7600000, 0xfe, 0xfb, 0xc760, 0xfb00}, /* -57344 */
        {0x477fefff, 0x7e, 0x7b, 0x4780, 0x7bff}, /* just below 65520 */
        {0x477ff000, 0x7e, 0x7b, 0x4780, 0x7c00}, /* 65520 */
        {0x7f7fffff, 0x7e, 0x7b, 0x7f80, 0x7c00}, /* the largest fp32 */
        {0x7f7f7fff, 0x7e, 0x7b, 0x7f7f, 0x7c00},
        {0x3b000000, 0x01, 0x18, 0x3b00, 0x1800}, /* 2^-9 */
        {0x3a800000, 0x00, 0x14, 0x3a80, 0x1400}, /* 2^-10 */
        {0x3a800001, 0x01, 0x14, 0x3a80, 0x1400},
        {0xba800001, 0x81, 0x94, 0xba80, 0x9400},
        {0x33000000, 0x00, 0x00, 0x3300, 0x0000}, /* 2^-25 */
        {0x33000001, 0x00, 0x00, 0x3300, 0x0001},
        {0x00000001, 0x00, 0x00, 0x0000, 0x0000}, /* the smallest subnormal */
        {0x007f8000, 0x00, 0x00, 0x0080, 0x0000}, /* bf16: tie between subnormal and normal */
        {0x00018000, 0x00, 0x00, 0x0002, 0x0000}, /* bf16: tie between subnormals */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(e4m3_encode_bits(known[i].bits), known[i].e4m3);
        assert_int_equal(e5m2_encode_bits(known[i].bits), known[i].e5m2);
        assert_int_equal(bf16_encode_bits(known[i].bits), known[i].bf16);
        assert_int_equal(fp16_encode_bits(known[i].bits), known[i].fp16);
    }
}

static void decodes_e8m0(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 255; code++)
        assert_true((double)e8m0_decode((uint8_t)code) == ldexp(1.0, (int)code - 127));
    assert_int_equal(e8m0_decode_bits(255), 0x7fffffffu);
}

/* Every power of two and its neighbours, specials, and random bits. */
static void encodes_e8m0(void **state)
{
    (void)state;
    uint64_t seed = 2, exact = 0, compared = 0;
    for (uint32_t i = 0; i < 3 * 512 + 100000; i++, compared++) {
        uint32_t bits = (uint32_t)ref_random(&seed);
        if (i < 3 * 512)
            bits = ((i / 3) << 23) + i % 3 - 1;
        else if (i % 64 == 0)
            bits = 0x00400000u + (bits & 2) - 1;
        const float input = ref_float(bits);
        const double value = input;
        uint32_t want = 0xff;
        if (value <= 0) {
            want = value == 0 ? 0 : 0xff;
        } else if (value > 0) {
            want = 0;
            while (want < 0xfe && ldexp(1.0, (int)want - 127) < value)
                want++;
        }
        assert_int_equal(e8m0_encode_ceil(input), want);

        uint8_t code = 0x5a;
        const bool is_power = value > 0 && want != 0xff && ldexp(1.0, (int)want - 127) == value;
        assert_int_equal(e8m0_encode_exact(input, &code), is_power);
        assert_int_equal(code, is_power ? want : 0x5a);
        exact += is_power;
    }
    uint8_t code = 0x5a;
    assert_true(e8m0_encode_exact(ref_float(0x00400000u), &code));
    assert_int_equal(code, 0);
    assert_int_equal(e8m0_encode_ceil(ref_float(0x00400001u)), 1);
    assert_int_equal(e8m0_encode_ceil(ref_float(0x00400000u)), 0);
    assert_true(exact >= 254);
    assert_int_equal(compared, 3 * 512 + 100000);
}

#define COUNT 1031

static void arrays_equal_scalars(void **state)
{
    (void)state;
    static float in[COUNT], out[COUNT + 1];
    static uint8_t codes8[COUNT + 1];
    static uint16_t codes16[COUNT + 1];
    uint64_t seed = 3;
    for (size_t i = 0; i < COUNT; i++)
        in[i] = ref_float((uint32_t)ref_random(&seed));

#define CHECK_ARRAY(name, codes, poison, type)                                                     \
    do {                                                                                           \
        codes[COUNT] = poison;                                                                     \
        name##_encode_n(codes, in, COUNT);                                                         \
        assert_int_equal(codes[COUNT], poison);                                                    \
        for (size_t i = 0; i < COUNT; i++)                                                         \
            assert_int_equal(codes[i], name##_encode(in[i]));                                      \
        for (size_t i = 0; i < COUNT; i++)                                                         \
            codes[i] = (type)ref_random(&seed);                                                    \
        out[COUNT] = -77.0f;                                                                       \
        name##_decode_n(out, codes, COUNT);                                                        \
        assert_true(out[COUNT] == -77.0f);                                                         \
        for (size_t i = 0; i < COUNT; i++)                                                         \
            assert_int_equal(bits_from_float(out[i]), name##_decode_bits(codes[i]));               \
    } while (0)

    CHECK_ARRAY(e4m3, codes8, 0xc3, uint8_t);
    CHECK_ARRAY(e5m2, codes8, 0xc3, uint8_t);
    CHECK_ARRAY(bf16, codes16, 0xc3c3, uint16_t);
    CHECK_ARRAY(fp16, codes16, 0xc3c3, uint16_t);
    e8m0_decode_n(out, codes8, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(bits_from_float(out[i]), e8m0_decode_bits(codes8[i]));
}

/* A checksum of conversions through float arguments and results. */
static uint64_t sweep(void)
{
    uint64_t seed = 4, sum = 0;
    for (int i = 0; i < 200000; i++) {
        const uint64_t random = ref_random(&seed);
        /* every other input is an fp32 subnormal */
        const uint32_t bits = (uint32_t)random & (i % 2 == 0 ? 0xffffffffu : 0x807fffffu);
        const float value = ref_float(bits);
        uint8_t exact = 0;
        sum = sum * 31 + e4m3_encode(value);
        sum = sum * 31 + e5m2_encode(value);
        sum = sum * 31 + bf16_encode(value);
        sum = sum * 31 + fp16_encode(value);
        sum = sum * 31 + e8m0_encode_ceil(value);
        sum = sum * 31 + e8m0_encode_exact(value, &exact);
        sum = sum * 31 + bits_from_float(bf16_decode((uint16_t)(bits >> 16)));
        sum = sum * 31 + bits_from_float(fp16_decode((uint16_t)(bits >> 16)));
        sum = sum * 31 + bits_from_float(e4m3_decode((uint8_t)(bits >> 16)));
        sum = sum * 31 + bits_from_float(e8m0_decode((uint8_t)(bits >> 22)));
    }
    return sum;
}

static void ignores_the_floating_point_environment(void **state)
{
    (void)state;
    static const int modes[] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    const uint64_t want = sweep();
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        const uint64_t got = sweep();
        fesetround(FE_TONEAREST);
        assert_true(got == want);
    }
#if defined(__SSE2__)
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040u); /* flush to zero, denormals are zero */
    const uint64_t got = sweep();
    _mm_setcsr(saved);
    assert_true(got == want);
#endif
}

static void helpers_do_what_they_say(void **state)
{
    (void)state;
    assert_int_equal(bits_rotr32(0x12345678u, 0), 0x12345678u);
    assert_int_equal(bits_rotr32(0x12345678u, 4), 0x81234567u);
    assert_int_equal(bits_rotr32(0x12345678u, 28), 0x23456781u);
    assert_int_equal(bits_rotr32(0x12345678u, 36), 0x81234567u);
    for (uint32_t value = 0; value < 64; value++) {
        const double quarter = value / 8.0;
        assert_int_equal(bits_shift_right_rne(value, 3), (uint32_t)nearbyint(quarter));
    }
    uint8_t bytes[6] = {1, 2, 3, 4, 5, 6};
    assert_int_equal(bits_load_le16(bytes + 1), 0x0302);
    assert_int_equal(bits_load_le32(bytes + 1), 0x05040302);
    bits_store_le32(bytes + 1, 0xa1b2c3d4u);
    const uint8_t want[6] = {1, 0xd4, 0xc3, 0xb2, 0xa1, 6};
    assert_memory_equal(bytes, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helpers_do_what_they_say),
        cmocka_unit_test(decodes_every_code),
        cmocka_unit_test(encodes_back_every_code),
        cmocka_unit_test(encodes_known_values),
        cmocka_unit_test(encodes_every_high_half),
        cmocka_unit_test(encodes_midpoints),
        cmocka_unit_test(decodes_e8m0),
        cmocka_unit_test(encodes_e8m0),
        cmocka_unit_test(arrays_equal_scalars),
        cmocka_unit_test(ignores_the_floating_point_environment),
    };
    return cmocka_run_group_tests_name("format_float", tests, NULL, NULL);
}
