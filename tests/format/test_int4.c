/* SPDX-License-Identifier: Apache-2.0 */
/* int4.h: every nibble and byte, and conversions among all forms on ragged shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/bits.h"
#include "format/int4.h"
#include "reference.h"

#define POISON 0xa5

static const enum int4_form forms[3] = {INT4_RAW, INT4_SIGNED32, INT4_OFFSET32};

static int64_t ref_row_bytes(enum int4_form form, int64_t k)
{
    return form == INT4_RAW ? (k + 1) / 2 : (k + 7) / 8 * 4;
}

/* Value i of a row, straight from the definition of the forms. */
static int ref_get(const uint8_t *row, enum int4_form form, int64_t i)
{
    if (form == INT4_RAW) {
        const int nibble = i % 2 == 0 ? row[i / 2] % 16 : row[i / 2] / 16;
        return nibble < 8 ? nibble : nibble - 16;
    }
    uint32_t word;
    memcpy(&word, row + i / 8 * 4, 4);
    const int nibble = (int)(word / (uint32_t)pow(16, (double)(i % 8)) % 16);
    if (form == INT4_OFFSET32)
        return nibble - 8;
    return nibble < 8 ? nibble : nibble - 16;
}

static void ref_set(uint8_t *row, enum int4_form form, int64_t i, int value)
{
    const uint32_t nibble = (uint32_t)(form == INT4_OFFSET32 ? value + 8 : (value + 16) % 16);
    if (form == INT4_RAW) {
        const int other = i % 2 == 0 ? row[i / 2] / 16 * 16 : row[i / 2] % 16;
        row[i / 2] = (uint8_t)((uint32_t)other + (i % 2 == 0 ? nibble : 16 * nibble));
    } else {
        uint32_t word;
        memcpy(&word, row + i / 8 * 4, 4);
        word &= ~(15u << (4 * (i % 8)));
        word |= nibble << (4 * (i % 8));
        memcpy(row + i / 8 * 4, &word, 4);
    }
}

static void randomize(uint8_t *bytes, size_t count, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)ref_random(seed);
}

static void maps_values_to_e4m3(void **state)
{
    (void)state;
    for (int value = -8; value < 8; value++) {
        const uint8_t code = int4_to_e4m3(value);
        int back = 99;
        assert_true(ref_decode(&ref_e4m3, code) == value / 512.0);
        assert_false(code == 0x80);
        assert_true(int4_from_e4m3(code, &back));
        assert_int_equal(back, value);
        assert_int_equal(int4_from_nibble(int4_to_nibble(value)), value);
        assert_int_equal(int4_from_nibble(int4_to_nibble(value) | 0xf0), value);
        assert_in_range(int4_to_nibble(value), 0, 15);
    }
    int accepted = 0;
    for (int code = 0; code < 256; code++) {
        int value = 99;
        const bool ok = int4_from_e4m3((uint8_t)code, &value);
        assert_true(ok ? int4_to_e4m3(value) == code : value == 99);
        accepted += ok;
    }
    assert_int_equal(accepted, 16);
}

static void gets_and_sets_every_byte(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        const uint8_t row[3] = {POISON, (uint8_t)byte, POISON};
        for (int64_t k = 2; k < 4; k++) {
            assert_int_equal(int4_get(row, k), ref_get(row, INT4_RAW, k));
            for (int value = -8; value < 8; value++) {
                uint8_t copy[3] = {POISON, (uint8_t)byte, POISON};
                int4_set(copy, k, value);
                assert_int_equal(ref_get(copy, INT4_RAW, k), value);
                assert_int_equal(ref_get(copy, INT4_RAW, k ^ 1), ref_get(row, INT4_RAW, k ^ 1));
                assert_true(copy[0] == POISON && copy[2] == POISON);
            }
        }
    }
}

/* All pairs of nibbles at all pairs of places in a word, and back. */
static void spreads_words(void **state)
{
    (void)state;
    uint64_t compared = 0;
    for (unsigned i = 0; i < 8; i++)
        for (unsigned j = 0; j < 8; j++)
            for (uint32_t pair = 0; pair < 256; pair++, compared++) {
                uint32_t word = 0x5c3e9701u;
                word = (word & ~(15u << 4 * i)) | (pair % 16) << 4 * i;
                word = (word & ~(15u << 4 * j)) | (pair / 16) << 4 * j;
                const uint64_t plain = int4_spread(word), codes = int4_spread_e4m3(word);
                for (unsigned b = 0; b < 8; b++) {
                    const int nibble = (int)(word >> 4 * b) & 15;
                    const int value = nibble < 8 ? nibble : nibble - 16;
                    assert_int_equal(plain >> 8 * b & 255, nibble);
                    assert_int_equal(codes >> 8 * b & 255, int4_to_e4m3(value));
                }
                assert_int_equal(int4_gather_e4m3(codes), word);
            }
    assert_int_equal(compared, 64 * 256);
}

static void counts_row_bytes(void **state)
{
    (void)state;
    for (int f = 0; f < 3; f++) {
        for (int64_t k = 0; k < 40; k++)
            assert_int_equal(int4_row_bytes(forms[f], k), ref_row_bytes(forms[f], k));
        assert_int_equal(int4_row_bytes(forms[f], -1), -1);
        assert_true(int4_row_bytes(forms[f], INT64_MAX) > INT64_MAX / 2 - 8);
    }
    assert_int_equal(int4_row_bytes((enum int4_form)7, 8), -1);
}

#define MAX_N 3
#define MAX_BYTES 256

/* The source is random throughout, so bits beyond k are set, which reading must ignore. */
static void check_conversion(enum int4_form to, enum int4_form from, int64_t n, int64_t k,
                             int64_t gap, uint64_t *seed)
{
    uint8_t src[MAX_BYTES], dst[MAX_BYTES], want[MAX_BYTES], back[MAX_BYTES];
    const int64_t from_stride = ref_row_bytes(from, k) + gap;
    const int64_t to_stride = ref_row_bytes(to, k) + 2 * gap;

    randomize(src, sizeof src, seed);
    memset(dst, POISON, sizeof dst);
    memset(want, POISON, sizeof want);
    for (int64_t row = 0; row < n; row++) {
        memset(want + 1 + row * to_stride, 0, (size_t)ref_row_bytes(to, k));
        for (int64_t i = 0; i < k; i++)
            ref_set(want + 1 + row * to_stride, to, i, ref_get(src + row * from_stride, from, i));
    }
    assert_true(int4_convert_rows(dst + 1, to, to_stride, src, from, from_stride, n, k));
    assert_memory_equal(dst, want, sizeof dst);

    /* back again, and into place */
    memset(back, POISON, sizeof back);
    assert_true(int4_convert_rows(back, from, from_stride, dst + 1, to, to_stride, n, k));
    for (int64_t row = 0; row < n; row++)
        for (int64_t i = 0; i < k; i++)
            assert_int_equal(ref_get(back + row * from_stride, from, i),
                             ref_get(src + row * from_stride, from, i));
    const int64_t stride = from_stride > to_stride ? from_stride : to_stride;
    memset(back, POISON, sizeof back);
    for (int64_t row = 0; row < n; row++)
        memcpy(back + row * stride, src + row * from_stride, (size_t)ref_row_bytes(from, k));
    assert_true(int4_convert_rows(back, to, stride, back, from, stride, n, k));
    for (int64_t row = 0; row < n; row++)
        assert_memory_equal(back + row * stride, want + 1 + row * to_stride,
                            (size_t)ref_row_bytes(to, k));
}

static void converts_among_all_forms(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int to = 0; to < 3; to++)
        for (int from = 0; from < 3; from++)
            for (int64_t n = 0; n <= MAX_N; n++)
                for (int64_t k = 0; k <= 70; k++)
                    for (int64_t gap = 0; gap < 4; gap += 3)
                        check_conversion(forms[to], forms[from], n, k, gap, &seed);
}

static void converts_known_words(void **state)
{
    (void)state;
    /* -8 -7 -1 0 1 2 6 7 */
    const uint8_t raw[4] = {0x98, 0x0f, 0x21, 0x76};
    uint32_t word = 0;
    uint8_t back[4] = {0};
    assert_true(int4_convert_rows(&word, INT4_SIGNED32, 4, raw, INT4_RAW, 4, 1, 8));
    assert_int_equal(word, 0x76210f98u);
    assert_true(int4_convert_rows(&word, INT4_OFFSET32, 4, raw, INT4_RAW, 4, 1, 8));
    assert_int_equal(word, 0xfea98710u);
    assert_true(int4_convert_rows(back, INT4_RAW, 4, &word, INT4_OFFSET32, 4, 1, 8));
    assert_memory_equal(back, raw, 4);
    /* rows upside down through a negative stride */
    const uint8_t two[2] = {0x21, 0x43};
    assert_true(int4_convert_rows(back + 1, INT4_RAW, -1, two, INT4_RAW, 1, 2, 2));
    assert_true(back[0] == 0x43 && back[1] == 0x21);
}

static void refuses_bad_conversions(void **state)
{
    (void)state;
    uint8_t src[64] = {0}, dst[64], want[64];
    memset(dst, POISON, sizeof dst);
    memset(want, POISON, sizeof want);
    const enum int4_form bad = (enum int4_form)3;
    bool holds = true;
    assert_false(int4_convert_rows(dst, INT4_RAW, 8, src, INT4_RAW, 8, -1, 8));
    assert_false(int4_convert_rows(dst, INT4_RAW, 8, src, INT4_RAW, 8, 2, -8));
    assert_false(int4_convert_rows(dst, bad, 8, src, INT4_RAW, 8, 2, 8));
    assert_false(int4_convert_rows(dst, INT4_RAW, 8, src, bad, 8, 2, 8));
    assert_false(int4_convert_rows(dst, INT4_RAW, 3, src, INT4_RAW, 8, 2, 8));
    assert_false(int4_convert_rows(dst, INT4_RAW, 8, src, INT4_OFFSET32, 7, 2, 9));
    assert_false(int4_convert_rows(dst, INT4_RAW, -3, src, INT4_RAW, 8, 2, 8));
    assert_memory_equal(dst, want, sizeof dst);
    assert_true(
        int4_convert_rows(dst, INT4_RAW, 0, src, INT4_RAW, 0, 1, 8)); /* one row: no stride */
    assert_false(int4_rows_hold_minus8(src, bad, 8, 2, 8, &holds));
    assert_false(int4_rows_hold_minus8(src, INT4_RAW, 3, 2, 8, &holds));
    assert_false(int4_rows_hold_minus8(src, INT4_RAW, 8, -2, 8, &holds));
    assert_true(holds);
}

/* One -8 at each place among each other value; and none, with -8 only beyond k and in the gaps. */
static void finds_minus8(void **state)
{
    (void)state;
    for (int f = 0; f < 3; f++)
        for (int64_t k = 1; k <= 20; k++)
            for (int filler = -7; filler < 8; filler++) {
                uint8_t rows[MAX_BYTES];
                const int64_t stride = ref_row_bytes(forms[f], k) + 1;
                for (int64_t place = -1; place < 2 * k; place++) {
                    memset(rows, forms[f] == INT4_OFFSET32 ? 0 : 0x88, sizeof rows);
                    for (int64_t i = 0; i < 2 * k; i++)
                        ref_set(rows + i / k * stride, forms[f], i % k, i == place ? -8 : filler);
                    bool holds = place < 0;
                    assert_true(int4_rows_hold_minus8(rows, forms[f], stride, 2, k, &holds));
                    assert_int_equal(holds, place >= 0);
                }
            }
}

static void reads_and_writes_parts_of_rows(void **state)
{
    (void)state;
    uint64_t seed = 6, compared = 0;
    for (int f = 0; f < 3; f++)
        for (int64_t begin = 0; begin < 18; begin++)
            for (int64_t count = 0; count < 36; count++) {
                const int64_t k = begin + count + (int64_t)(ref_random(&seed) % 12);
                uint8_t row[64], part[64], copy[64];
                randomize(row, sizeof row, &seed);
                memset(part, POISON, sizeof part);
                int4_row_read(part, row, forms[f], begin, count);
                for (int64_t i = 0; i < count; i++, compared++)
                    assert_int_equal(ref_get(part, INT4_RAW, i), ref_get(row, forms[f], begin + i));
                assert_true(count % 2 == 0 || part[count / 2] < 16);
                assert_int_equal(part[(count + 1) / 2], POISON);

                memcpy(copy, row, sizeof copy);
                randomize(part, sizeof part, &seed);
                int4_row_write(copy, forms[f], k, begin, count, part);
                for (int64_t i = 0; i < begin + count; i++, compared++)
                    assert_int_equal(ref_get(copy, forms[f], i),
                                     i < begin ? ref_get(row, forms[f], i)
                                               : ref_get(part, INT4_RAW, i - begin));
                const int64_t end = ref_row_bytes(forms[f], count > 0 ? begin + count : 0);
                assert_memory_equal(copy + end, row + end, sizeof copy - (size_t)end);
            }
    assert_true(compared > 50000);
}

static void decodes_rows(void **state)
{
    (void)state;
    uint8_t row[40], codes[96];
    int8_t values[96];
    uint64_t seed = 7;
    randomize(row, sizeof row, &seed);
    for (int64_t begin = 0; begin < 10; begin++)
        for (int64_t count = 0; count < 60; count++) {
            memset(codes, POISON, sizeof codes);
            memset(values, POISON, sizeof values);
            int4_row_to_e4m3(codes, row, begin, count);
            int4_row_to_int8(values, row, begin, count);
            for (int64_t i = 0; i < count; i++) {
                assert_int_equal(values[i], ref_get(row, INT4_RAW, begin + i));
                assert_int_equal(codes[i], int4_to_e4m3(values[i]));
            }
            assert_int_equal(codes[count], POISON);
            assert_int_equal((uint8_t)values[count], POISON);
            uint8_t again[40];
            memset(again, POISON, sizeof again);
            int4_row_from_int8(again, values, count);
            for (int64_t i = 0; i < count; i++)
                assert_int_equal(ref_get(again, INT4_RAW, i), values[i]);
            assert_true(count % 2 == 0 || again[count / 2] < 16);
            assert_int_equal(again[(count + 1) / 2], POISON);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_values_to_e4m3),
        cmocka_unit_test(gets_and_sets_every_byte),
        cmocka_unit_test(spreads_words),
        cmocka_unit_test(counts_row_bytes),
        cmocka_unit_test(converts_among_all_forms),
        cmocka_unit_test(converts_known_words),
        cmocka_unit_test(refuses_bad_conversions),
        cmocka_unit_test(finds_minus8),
        cmocka_unit_test(reads_and_writes_parts_of_rows),
        cmocka_unit_test(decodes_rows),
    };
    return cmocka_run_group_tests_name("format_int4", tests, NULL, NULL);
}
