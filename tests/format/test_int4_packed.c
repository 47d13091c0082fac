/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed int4 tensors. Where each weight must be is derived here from the side of the consumer: the
 * test plays a warpgroup, loads 16 bytes a thread, decodes the words, and looks each register byte
 * up in the fragment layout of wgmma.m64nNk32.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/int4_packed.h"
#include "reference.h"

#define POISON 0xa5

/* -8..7, or -7..7 without -8. */
static int random_value(uint64_t *seed, bool minus8)
{
    const uint64_t random = ref_random(seed);
    return minus8 ? (int)(random % 16) - 8 : (int)(random % 15) - 7;
}

/* groups x n x k values one byte each; the caller frees. */
static int8_t *make_values(const struct int4_packed_shape *shape, uint64_t *seed)
{
    const size_t count = (size_t)(shape->groups * shape->n * shape->k);
    int8_t *values = malloc(count + 1);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (int8_t)random_value(seed, (shape->flags & INT4_PACKED_HOLDS_MINUS8) != 0);
    return values;
}

/* As rows of a form, with row and group strides; memory between is poison. The caller frees. */
struct tensor {
    uint8_t *bytes;
    size_t size;
    enum int4_form form;
    int64_t row_stride, group_stride;
};

static struct tensor make_tensor(const struct int4_packed_shape *shape, enum int4_form form,
                                 int64_t gap, const int8_t *values)
{
    struct tensor t = {NULL, 0, form, int4_row_bytes(form, shape->k) + gap, 0};
    t.group_stride = shape->n * t.row_stride + gap;
    t.size = (size_t)(shape->groups * t.group_stride + 16);
    t.bytes = malloc(t.size);
    assert_non_null(t.bytes);
    memset(t.bytes, POISON, t.size);
    for (int64_t row = 0; values != NULL && row < shape->groups * shape->n; row++) {
        uint8_t raw[512];
        int4_row_from_int8(raw, values + row * shape->k, shape->k);
        assert_true(int4_convert_rows(t.bytes + row / shape->n * t.group_stride +
                                          row % shape->n * t.row_stride,
                                      form, 0, raw, INT4_RAW, 0, 1, shape->k));
    }
    return t;
}

/* The row and position in the atom of byte b of a register, for a thread of the warpgroup. */
static void fragment_place(int thread, int k32_step, int reg, int b, int64_t *row,
                           int64_t *position)
{
    const int warp = thread / 32, lane = thread % 32;
    *row = 16 * warp + lane / 4 + (reg == 1 || reg == 3 ? 8 : 0);
    *position = 32 * k32_step + (reg >= 2 ? 16 : 0) + 4 * (lane % 4) + b;
}

/* What belongs at a packed row and position of a group: zero where the tensor has no value. */
static int expected_value(const struct int4_packed_shape *shape, const int8_t *group,
                          int64_t packed_row, int64_t position)
{
    const int64_t k = position - shape->group_k_offset;
    int64_t n = packed_row;

    if ((shape->flags & INT4_PACKED_GATE_UP) != 0) {
        const int64_t pair = packed_row / 16 * 8 + packed_row % 8;
        if (pair >= shape->n / 2)
            return 0;
        n = packed_row % 16 < 8 ? pair : shape->n / 2 + pair;
    }
    return n < shape->n && k >= 0 && k < shape->k ? group[n * shape->k + k] : 0;
}

/* Every byte of every atom as the tensor core would get it. Returns how many were compared. */
static int64_t check_fragments(const struct int4_packed_shape *shape, const uint8_t *packed,
                               const int8_t *values)
{
    const int64_t panels = (shape->n + 63) / 64;
    const int64_t atoms = (shape->k + shape->group_k_offset + 127) / 128;
    int64_t compared = 0;

    for (int64_t a = 0; a < shape->groups * panels * atoms; a++) {
        const int8_t *group = values + a / (panels * atoms) * shape->n * shape->k;
        const int64_t panel = a / atoms % panels, atom = a % atoms;
        for (int load = 0; load < 2; load++)
            for (int thread = 0; thread < 128; thread++)
                for (int word = 0; word < 4; word++) {
                    const uint8_t *p = packed + a * 4096 + load * 2048 + thread * 16 + word * 4;
                    const uint32_t bits = (uint32_t)p[0] + ((uint32_t)p[1] << 8) +
                                          ((uint32_t)p[2] << 16) + ((uint32_t)p[3] << 24);
                    uint32_t reg[2];
                    if ((shape->flags & INT4_PACKED_HOLDS_MINUS8) != 0)
                        f3_decode(bits, reg);
                    else
                        sm7_decode(bits, reg);
                    for (int i = 0; i < 8; i++, compared++) {
                        int64_t row, position;
                        fragment_place(thread, 2 * load + word / 2, word % 2 * 2 + i / 4, i % 4,
                                       &row, &position);
                        const int want =
                            expected_value(shape, group, panel * 64 + row, atom * 128 + position);
                        const uint8_t byte = (uint8_t)(reg[i / 4] >> (8 * (i % 4)) & 255);
                        assert_int_equal(byte, want < 0 ? 128 - want : want);
                    }
                }
    }
    return compared;
}

static void check_shape(const struct int4_packed_shape *shape, enum int4_form form, int64_t gap,
                        uint64_t *seed)
{
    int8_t *values = make_values(shape, seed);
    struct tensor src = make_tensor(shape, form, gap, values);
    struct tensor back = make_tensor(shape, form, gap, NULL);
    const int64_t bytes = int4_packed_bytes(shape);
    assert_int_equal(bytes, shape->groups * ((shape->n + 63) / 64) *
                                ((shape->k + shape->group_k_offset + 127) / 128) * 4096);

    uint8_t *packed = malloc((size_t)bytes + 64);
    assert_non_null(packed);
    memset(packed, POISON, (size_t)bytes + 64);
    assert_true(
        int4_packed_pack(packed + 32, shape, src.bytes, form, src.row_stride, src.group_stride));
    for (int64_t i = 0; i < 32; i++)
        assert_true(packed[i] == POISON && packed[32 + bytes + i] == POISON);
    assert_int_equal(check_fragments(shape, packed + 32, values), 2 * bytes);

    for (int64_t i = 0; i < shape->groups * shape->n * shape->k; i++)
        assert_int_equal(int4_packed_get(packed + 32, shape, i / shape->k / shape->n,
                                         i / shape->k % shape->n, i % shape->k),
                         values[i]);

    /* the gaps of both are poison, and so compared too */
    assert_true(int4_packed_unpack(back.bytes, form, back.row_stride, back.group_stride,
                                   packed + 32, shape));
    assert_memory_equal(back.bytes, src.bytes, src.size);
    free(packed);
    free(back.bytes);
    free(src.bytes);
    free(values);
}

static void packs_ragged_shapes(void **state)
{
    (void)state;
    static const int64_t ns[] = {0, 1, 7, 8, 16, 63, 64, 66, 130};
    static const int64_t ks[] = {0, 1, 2, 7, 31, 64, 127, 128, 130, 261};
    static const int64_t offsets[] = {0, 1, 5, 32, 64, 127};
    static const enum int4_form forms[3] = {INT4_RAW, INT4_SIGNED32, INT4_OFFSET32};
    uint64_t seed = 9, shapes = 0;
    for (size_t n = 0; n < sizeof ns / sizeof ns[0]; n++)
        for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++)
            for (size_t o = 0; o < sizeof offsets / sizeof offsets[0]; o++)
                for (unsigned flags = 0; flags < 4; flags++) {
                    struct int4_packed_shape shape = {1, ns[n], ks[k], offsets[o], flags};
                    if ((flags & INT4_PACKED_GATE_UP) != 0 && shape.n % 2 != 0)
                        continue;
                    check_shape(&shape, forms[shapes % 3], (int64_t)(shapes % 2) * 3, &seed);
                    shapes++;
                }
    assert_int_equal(shapes, (9 * 2 + 6 * 2) * 10 * 6);
}

static void packs_groups(void **state)
{
    (void)state;
    uint64_t seed = 10;
    for (unsigned flags = 0; flags < 4; flags++) {
        struct int4_packed_shape shape = {3, 70, 150, 64, flags};
        check_shape(&shape, INT4_RAW, 0, &seed);
        shape.groups = 0;
        check_shape(&shape, INT4_RAW, 0, &seed);
    }
}

/* One value, everywhere in an atom in turn: exactly one word differs from zero, at its address. */
static void every_place_of_an_atom(void **state)
{
    (void)state;
    static uint8_t rows[4096], atom[4096], back[4096];
    static uint8_t codes[64 * 130];
    const struct int4_packed_shape shape = {1, 64, 128, 0, INT4_PACKED_HOLDS_MINUS8};
    for (int64_t row = 0; row < 64; row++)
        for (int64_t k = 0; k < 128; k++) {
            memset(rows, 0, sizeof rows);
            int4_set(rows + 64 * row, k, -1);
            int4_packed_atom_pack(atom, rows, INT4_PACKED_HOLDS_MINUS8);
            unsigned shift;
            const int64_t offset = int4_packed_address(&shape, 0, row, k, &shift);
            assert_true(offset % 4 == 0 && offset >= 0 && offset < 4096 && shift < 32);
            for (int64_t word = 0; word < 4096; word += 4) {
                const uint32_t bits = bits_load_le32(atom + word);
                /* -1 in F3 form: magnitude 0 and the sign */
                assert_int_equal(bits, word == offset ? 1u << (7 + shift) % 32 : 0);
            }
            int4_packed_atom_unpack(back, atom, INT4_PACKED_HOLDS_MINUS8);
            assert_memory_equal(back, rows, sizeof rows);
        }

    uint64_t seed = 11;
    for (unsigned flags = 0; flags < 2; flags++) {
        for (int64_t i = 0; i < 8192; i++)
            int4_set(rows, i, random_value(&seed, flags != 0));
        int4_packed_atom_pack(atom, rows, flags);
        memset(codes, POISON, sizeof codes);
        int4_packed_atom_to_e4m3(codes, 130, atom, flags);
        for (int64_t i = 0; i < 64 * 130; i++)
            assert_int_equal(codes[i], i % 130 >= 128
                                           ? POISON
                                           : int4_to_e4m3(int4_get(rows + i / 130 * 64, i % 130)));
    }
}

/* The example of docs/formats.md. */
static void known_address(void **state)
{
    (void)state;
    const struct int4_packed_shape shape = {2, 100, 300, 32, 0};
    unsigned shift;
    assert_int_equal(int4_packed_bytes(&shape), 49152);
    assert_int_equal(int4_packed_address(&shape, 1, 77, 200, &shift), 43368);
    assert_int_equal(shift, 4);
}

/* Gate row i and up row i meet in registers 0 and 1 of one thread. */
static void interleaves_gate_and_up(void **state)
{
    (void)state;
    for (int64_t half = 1; half <= 100; half++) {
        const struct int4_packed_shape shape = {1, 2 * half, 128, 0, INT4_PACKED_GATE_UP};
        int64_t seen = 0;
        for (int64_t i = 0; i < half; i++) {
            const int64_t gate = int4_packed_row(&shape, i);
            const int64_t up = int4_packed_row(&shape, half + i);
            assert_int_equal(up, gate + 8);
            assert_int_equal(gate, i / 8 * 16 + i % 8);
            assert_true(up < 64 * int4_packed_panels(&shape));
        }
        for (int64_t row = 0; row < 64 * int4_packed_panels(&shape); row++) {
            const int64_t n = int4_packed_source_row(&shape, row);
            assert_true(n == -1 || int4_packed_row(&shape, n) == row);
            seen += n >= 0;
        }
        assert_int_equal(seen, 2 * half);
    }
}

static void refuses_bad_shapes(void **state)
{
    (void)state;
    static const struct int4_packed_shape bad[] = {
        {-1, 64, 128, 0, 0},
        {1, -64, 128, 0, 0},
        {1, 64, -128, 0, 0},
        {1, 64, 128, -1, 0},
        {1, 64, 128, 128, 0},
        {1, 64, 128, 0, 4},
        {1, 63, 128, 0, INT4_PACKED_GATE_UP},
        {INT64_C(1) << 40, INT64_C(1) << 20, 1 << 20, 0, 0},
        {1, INT64_MAX, INT64_MAX, 0, 0},
        {INT64_MAX, 1, 1, 127, 0},
        {1, 1, INT64_MAX, 127, 0},
    };
    uint8_t src[64] = {0}, packed[8192], want[8192];
    memset(packed, POISON, sizeof packed);
    memset(want, POISON, sizeof want);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(int4_packed_bytes(&bad[i]), -1);
        assert_false(int4_packed_pack(packed, &bad[i], src, INT4_RAW, INT64_MAX, 0));
        assert_false(int4_packed_unpack(packed, INT4_RAW, INT64_MAX, 0, src, &bad[i]));
    }
    struct int4_packed_shape shape = {1, 2, 16, 0, 0};
    assert_false(int4_packed_pack(packed, &shape, src, INT4_RAW, 7, 0));
    assert_false(int4_packed_pack(packed, &shape, src, INT4_RAW, -8, 0));
    assert_false(int4_packed_pack(packed, &shape, src, (enum int4_form)3, 8, 0));
    assert_false(int4_packed_unpack(packed, INT4_RAW, 7, 0, src, &shape));
    assert_false(int4_packed_unpack(packed, (enum int4_form)3, 8, 0, src, &shape));
    int4_set(src + 8, 15, -8);
    assert_false(int4_packed_pack(packed, &shape, src, INT4_RAW, 8, 0));
    assert_memory_equal(packed, want, sizeof packed);
    shape.flags = INT4_PACKED_HOLDS_MINUS8;
    assert_true(int4_packed_pack(packed, &shape, src, INT4_RAW, 8, 0));
    assert_int_equal(int4_packed_get(packed, &shape, 0, 1, 15), -8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_address),           cmocka_unit_test(every_place_of_an_atom),
        cmocka_unit_test(packs_ragged_shapes),     cmocka_unit_test(packs_groups),
        cmocka_unit_test(interleaves_gate_and_up), cmocka_unit_test(refuses_bad_shapes),
    };
    return cmocka_run_group_tests_name("format_int4_packed", tests, NULL, NULL);
}
