/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 32-bit words of packed int4: SM7 and F3, every pair of values at every pair of places,
 * against bits set one by one from the definition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/int4_packed.h"
#include "reference.h"

static uint64_t compared;

/* value[0..3] are the bytes of the first register, value[4..7] those of the second. */
static uint32_t ref_word(const int value[8], bool f3)
{
    uint32_t word = 0;
    for (int i = 0; i < 8; i++) {
        const int byte = i % 4, v = value[i];
        const uint32_t magnitude = (uint32_t)(v >= 0 ? v : f3 ? -v - 1 : -v);
        word |= magnitude << (8 * byte + (i < 4 ? 0 : 4));
        if (v < 0)
            word |= 1u << ((8 * byte + (i < 4 ? 7 : 11)) % 32);
    }
    return word;
}

static void check_registers(const uint32_t reg[2], const int value[8])
{
    for (int i = 0; i < 8; i++, compared++) {
        const uint32_t byte = reg[i / 4] >> (8 * (i % 4)) & 255;
        const int v = value[i];
        assert_int_equal(byte, v < 0 ? 128 + -v : v);
        assert_true(ref_decode(&ref_e4m3, byte) == v / 512.0);
    }
}

static void check_word(const int value[8])
{
    uint32_t nibbles = 0, reg[2];
    bool minus8 = false;
    for (int i = 0; i < 8; i++) {
        nibbles |= ((uint32_t)value[i] & 15u) << (4 * i);
        minus8 |= value[i] == -8;
    }
    if (!minus8) {
        assert_int_equal(sm7_encode(nibbles), ref_word(value, false));
        sm7_decode(ref_word(value, false), reg);
        check_registers(reg, value);
    }
    assert_int_equal(f3_encode(nibbles), ref_word(value, true));
    f3_decode(ref_word(value, true), reg);
    check_registers(reg, value);
    f1_decode(ref_word(value, true), reg);
    check_registers(reg, value);
}

/* All 256 pairs at all 64 pairs of places, the other places held at each of three fillers. */
static void every_pair_at_every_place(void **state)
{
    (void)state;
    static const int fillers[3] = {0, -8, 7};
    compared = 0;
    for (int f = 0; f < 3; f++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++)
                for (int pair = 0; pair < 256; pair++) {
                    int value[8];
                    for (int p = 0; p < 8; p++)
                        value[p] = fillers[f];
                    value[i] = pair % 16 - 8;
                    value[j] = pair / 16 - 8;
                    check_word(value);
                }
    assert_true(compared > 3 * 64 * 256 * 16);
}

/* The same with fillers that SM7 can express: each value at each place with all others at -7. */
static void every_pair_without_minus8(void **state)
{
    (void)state;
    compared = 0;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            for (int pair = 0; pair < 225; pair++) {
                int value[8] = {-7, -7, -7, -7, -7, -7, -7, -7};
                value[i] = pair % 15 - 7;
                value[j] = pair / 15 - 7;
                check_word(value);
            }
    assert_int_equal(compared, 64 * 225 * 24);
}

static void random_words(void **state)
{
    (void)state;
    uint64_t seed = 8;
    for (int n = 0; n < 200000; n++) {
        uint64_t random = ref_random(&seed);
        int value[8];
        for (int i = 0; i < 8; i++, random >>= 4)
            value[i] = (int)(random & 15) - 8;
        check_word(value);
    }
}

static void known_words(void **state)
{
    (void)state;
    uint32_t reg[2];
    /* the sign of the last weight wraps round to bit 3 */
    sm7_decode(0x10000008u, reg);
    assert_true(reg[0] == 0 && reg[1] == 0x81000000u);
    assert_int_equal(sm7_encode(0xf0000000u), 0x10000008u);
    /* eight times -8: all magnitudes 7, all signs set */
    assert_int_equal(f3_encode(0x88888888u), 0xffffffffu);
    f3_decode(0xffffffffu, reg);
    assert_true(reg[0] == 0x88888888u && reg[1] == 0x88888888u);
    f1_decode(0xffffffffu, reg);
    assert_true(reg[0] == 0x88888888u && reg[1] == 0x88888888u);
    /* the example of docs/formats.md: 1 2 3 -4 and -1 0 7 -7 */
    assert_int_equal(sm7_encode(0x970fc321u), 0xf4730a19u);
    assert_int_equal(f3_encode(0x970fc321u), 0xe3730a09u);
    sm7_decode(0xf4730a19u, reg);
    assert_true(reg[0] == 0x84030201u && reg[1] == 0x87070081u);
    f3_decode(0xe3730a09u, reg);
    assert_true(reg[0] == 0x84030201u && reg[1] == 0x87070081u);
    assert_int_equal(sm7_encode(0), 0);
    assert_int_equal(f3_encode(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_words),
        cmocka_unit_test(every_pair_at_every_place),
        cmocka_unit_test(every_pair_without_minus8),
        cmocka_unit_test(random_words),
    };
    return cmocka_run_group_tests_name("format_int4_word", tests, NULL, NULL);
}
