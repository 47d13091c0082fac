/* SPDX-License-Identifier: Apache-2.0 */
/* The branch-free forms against the plain ones: e4m3 over fp32, powers of two, int4, maxima. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/quantize_piece.h"
#include "model/quantize_reference.h"

static uint64_t step = 251; /* 1 for every fp32 input, with the argument "all" */

static void test_e4m3_equals_format(void **state)
{
    uint64_t compared = 0, wrong = 0;
    (void)state;

    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += step) {
        const float value = float_from_bits((uint32_t)bits);
        wrong += !(e4m3_encode_flat(value) == e4m3_encode(value));
        compared++;
    }
    for (uint64_t top = 0; top < 0x1000; top++) { /* codes and ties end at bit 19 or above */
        for (int near = -2; near <= 2; near++) {
            for (uint32_t half = 0; half < 2; half++) {
                const uint32_t bits = (uint32_t)(top << 20 | half << 19) + (uint32_t)near;
                const float value = float_from_bits(bits);
                wrong += !(e4m3_encode_flat(value) == e4m3_encode(value));
                compared++;
            }
        }
    }
    assert_int_equal(wrong, 0);
    assert_true(compared >= 17000000);
}

static void test_e4m3_equals_reference(void **state)
{
    int compared = 0;
    (void)state;

    for (uint32_t top = 0; top < 0x1000; top++) {
        for (int near = -1; near <= 1; near++) {
            for (uint32_t eighth = 0; eighth < 8; eighth++) {
                const uint32_t bits = (top << 20 | eighth << 17) + (uint32_t)near;
                assert_int_equal(e4m3_encode_flat(float_from_bits(bits)),
                                 reference_e4m3(reference_decode(HALFBYTE_TYPE_F32, bits)));
                compared++;
            }
        }
    }
    assert_int_equal(compared, 0x1000 * 3 * 8);
}

static void test_power_of_two(void **state)
{
    int compared = 0;
    (void)state;

    for (uint32_t exponent = 0; exponent < 254; exponent++) {
        for (uint32_t bit = 0; bit < 24; bit++) {
            for (int near = -1; near <= 1; near++) {
                const uint32_t bits =
                    (exponent << 23 | (bit < 23 ? 1u << bit : 0)) + (uint32_t)near;
                if (bits == 0 || bits > 0x7f000000u) {
                    continue;
                }
                const double value = reference_decode(HALFBYTE_TYPE_F32, bits);
                const double power = reference_power_of_two(value);
                assert_int_equal(bits_from_float(scale_power_of_two(float_from_bits(bits))),
                                 reference_code(HALFBYTE_TYPE_F32, power));
                compared++;
            }
        }
    }
    assert_true(compared > 254 * 24 * 3 - 8);
    assert_int_equal(bits_from_float(scale_power_of_two(0.0f)), 0);
}

static void test_int4(void **state)
{
    static const float scales[] = {1.0f, 0.5f, 3.0f, 0x1p-149f, 0x1p-126f, 0x1.2p100f, 0.1f};
    int compared = 0;
    (void)state;

    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        for (int quarter = -36; quarter <= 36; quarter++) { /* quotients -9..9 and their ties */
            float x[PIECE];
            uint8_t q[PIECE / 2];
            for (int i = 0; i < PIECE; i++) {
                const float value = scales[s] * ((float)quarter * 0.25f);
                x[i] = i % 3 == 0   ? value
                       : i % 3 == 1 ? nextafterf(value, 1e38f)
                                    : nextafterf(value, -1e38f);
            }
            piece_to_int4(q, x, scales[s]);
            for (int i = 0; i < PIECE; i++) {
                const int nibble = q[i / 2] >> (i % 2 * 4) & 15;
                const int expected = reference_int4(reference_divide(x[i], scales[s]));
                assert_int_equal(nibble >= 8 ? nibble - 16 : nibble, expected);
                compared++;
            }
        }
    }
    assert_int_equal(compared, 7 * 73 * PIECE);
}

static void test_maxima(void **state)
{
    float x[PIECE];
    (void)state;

    for (int at = 0; at < PIECE; at++) {
        for (int i = 0; i < PIECE; i++) {
            x[i] = (float)i * 0x1p-149f;
        }
        x[at] = -3.0f;
        assert_int_equal(piece_amax(x), 0x40400000);
        assert_int_equal(piece_amax_finite(x), 0x40400000);
        x[(at + 1) % PIECE] = float_from_bits(0xff800000u);
        assert_int_equal(piece_amax(x), 0x7f800000);
        assert_int_equal(piece_amax_finite(x), 0x40400000);
        x[(at + 2) % PIECE] = float_from_bits(0xffffffffu);
        assert_int_equal(piece_amax(x), 0x7fffffff);
        assert_int_equal(piece_amax_finite(x), 0x40400000);
        x[(at + 3) % PIECE] = float_from_bits(0x7f7fffffu);
        assert_int_equal(piece_amax_finite(x), 0x7f7fffff);
    }
    for (int i = 0; i < PIECE; i++) {
        x[i] = float_from_bits(i % 2 == 0 ? 0x7f800000u : 0x7fc00000u);
    }
    assert_int_equal(piece_amax_finite(x), 0);
}

static void test_load(void **state)
{
    uint16_t codes[PIECE_CHUNK];
    float x[PIECE_CHUNK];
    int compared = 0;
    (void)state;

    for (int type = HALFBYTE_TYPE_BF16; type <= HALFBYTE_TYPE_F16; type++) {
        for (uint32_t first = 0; first < 0x10000; first += 61) {
            const int count = (int)(first % PIECE_CHUNK) + 1;
            for (int i = 0; i < PIECE_CHUNK; i++) {
                codes[i] = (uint16_t)(first + (uint32_t)i * 512u);
                x[i] = -1.0f;
            }
            chunk_load(x, codes, (halfbyte_type)type, count);
            for (int i = 0; i < PIECE_CHUNK; i++) {
                const double expected =
                    i < count ? reference_decode((halfbyte_type)type, codes[i]) : 0.0;
                assert_true(isnan(expected) ? isnan(x[i])
                                            : bits_from_float(x[i]) ==
                                                  reference_code(HALFBYTE_TYPE_F32, expected));
                compared++;
            }
        }
    }
    assert_int_equal(compared, 2 * 1075 * PIECE_CHUNK);
}

int main(int argc, char **argv)
{
    step = argc > 1 && strcmp(argv[1], "all") == 0 ? 1 : step;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_e4m3_equals_format),
        cmocka_unit_test(test_e4m3_equals_reference),
        cmocka_unit_test(test_power_of_two),
        cmocka_unit_test(test_int4),
        cmocka_unit_test(test_maxima),
        cmocka_unit_test(test_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
