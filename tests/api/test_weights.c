/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing and unpacking: every bit against docs/formats.md built up weight by weight; round trips
 * of the three layouts with ragged sizes, offsets, groups, gate and up rows; in place; any threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "halfbyte.h"
#include "model/callers.h"
#include "oracle/splitmix.h"

enum { POISON = 0xa5, ATOM_BYTES = 4096 };

static callers all_callers;

/* Weights in a checkpoint's layout, and as integers. */
typedef struct checkpoint {
    halfbyte_int4_desc desc;
    size_t bytes;
    uint8_t *data;
    int8_t *values; /* [groups][n][k] */
} checkpoint;

static void *filled(size_t bytes, int with)
{
    /* malloc aligns to 16 bytes, as packed weights ask for */
    void *memory = malloc(bytes + 1);
    assert_non_null(memory);
    memset(memory, with, bytes);
    return memory;
}

static int unit_of(halfbyte_int4_layout layout)
{
    return layout == HALFBYTE_INT4_INT8_LOW_FIRST ? 2 : 8;
}

/* Sets weight i of a row-major tensor in units of bytes or host-order int32. */
static void value_store(uint8_t *data, halfbyte_int4_layout layout, int64_t i, int value)
{
    const unsigned nibble =
        (unsigned)(layout == HALFBYTE_INT4_INT32_OFFSET ? value + 8 : value) & 15u;

    if (layout == HALFBYTE_INT4_INT8_LOW_FIRST) {
        const unsigned shift = i % 2 * 4;
        data[i / 2] = (uint8_t)((data[i / 2] & ~(15u << shift)) | nibble << shift);
    } else {
        const unsigned shift = (unsigned)(i % 8) * 4;
        uint32_t word;
        memcpy(&word, data + i / 8 * 4, sizeof word);
        word = (word & ~(15u << shift)) | nibble << shift;
        memcpy(data + i / 8 * 4, &word, sizeof word);
    }
}

/* pad: further units at the end of each row.  minus8: one weight in ten is -8. */
static checkpoint checkpoint_make(halfbyte_int4_desc desc, int pad, bool minus8, uint64_t seed)
{
    const int unit = unit_of(desc.layout);
    struct random r = {.state = seed};
    checkpoint c = {.desc = desc};

    c.desc.ld = (desc.k + unit - 1) / unit * unit + pad * unit;
    c.desc.group_stride = desc.n * c.desc.ld + pad * unit;
    c.bytes = (size_t)((desc.groups - 1) * c.desc.group_stride + desc.n * c.desc.ld) / 2;
    c.data = filled(c.bytes, minus8 ? 0x88 : 0x11); /* the gaps must not count as weights */
    c.values = filled((size_t)(desc.groups * desc.n * desc.k), 0);
    for (int64_t row = 0; row < desc.groups * desc.n; row++) {
        for (int64_t k = 0; k < desc.k; k++) {
            const int low = minus8 && random_percent(&r, 10) ? -8 : -7;
            const int value = low == -8 ? -8 : (int)random_between(&r, low, 7);
            c.values[row * desc.k + k] = (int8_t)value;
            value_store(c.data, desc.layout,
                        row / desc.n * c.desc.group_stride + row % desc.n * c.desc.ld + k, value);
        }
    }
    return c;
}

static void checkpoint_free(checkpoint *c)
{
    free(c->data);
    free(c->values);
}

/* ---- the packed form, from its description --------------------------------------------------- */

static uint32_t rotate_left(uint32_t word, int by)
{
    return by == 0 ? word : word << by | word >> (32 - by);
}

static void packed_or(uint8_t *atoms, int64_t atoms_per_row, int64_t row, int64_t position,
                      int value, bool holds_minus8)
{
    const int64_t panel = row / 64, atom = position / 128;
    const int64_t warp = row % 64 / 16, lane_row = row % 8, odd = row / 8 % 2;
    const int64_t step = position % 128 / 32, half = position % 32 / 16;
    const int64_t lane_column = position % 16 / 4, byte = position % 4;
    const int64_t thread = warp * 32 + lane_row * 4 + lane_column;
    uint8_t *at = atoms + (panel * atoms_per_row + atom) * ATOM_BYTES + step / 2 * 2048 +
                  thread * 16 + (step % 2 * 2 + half) * 4;
    const int magnitude = value >= 0 ? value : holds_minus8 ? -value - 1 : -value;
    const uint32_t code = (value < 0 ? 0x80u : 0) | (uint32_t)magnitude;
    const uint32_t bits = rotate_left(code, (int)(byte * 8 + odd * 4));

    for (int i = 0; i < 4; i++) { /* little-endian words */
        at[i] |= (uint8_t)(bits >> (8 * i));
    }
}

static size_t packed_size(const halfbyte_int4_desc *d)
{
    return (size_t)(d->groups * ((d->n + 63) / 64) * ((d->k + d->group_k_offset + 127) / 128)) *
           ATOM_BYTES;
}

static uint8_t *packed_make(const checkpoint *c, bool holds_minus8)
{
    const halfbyte_int4_desc *d = &c->desc;
    const int64_t atoms = (d->k + d->group_k_offset + 127) / 128, panels = (d->n + 63) / 64;
    uint8_t *packed = filled(packed_size(d), 0);

    for (int64_t group = 0; group < d->groups; group++) {
        for (int64_t n = 0; n < d->n; n++) {
            int64_t row = n;
            if ((d->flags & HALFBYTE_PACKED_GATE_UP_ROWS) != 0) {
                const int64_t i = n % (d->n / 2); /* of gate or up: 8 of one, 8 of the other */
                row = i / 8 * 16 + i % 8 + (n < d->n / 2 ? 0 : 8);
            }
            for (int64_t k = 0; k < d->k; k++) {
                packed_or(packed + group * panels * atoms * ATOM_BYTES, atoms, row,
                          k + d->group_k_offset, c->values[(group * d->n + n) * d->k + k],
                          holds_minus8);
            }
        }
    }
    return packed;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void header_check(const halfbyte_packed_header *h, const halfbyte_int4_desc *d, bool minus8)
{
    assert_int_equal(h->version, 1);
    assert_int_equal(h->flags, d->flags | (minus8 ? HALFBYTE_PACKED_HOLDS_MINUS8 : 0));
    assert_int_equal(h->n, d->n);
    assert_int_equal(h->k, d->k);
    assert_int_equal(h->groups, d->groups);
    assert_int_equal(h->group_k_offset, d->group_k_offset);
    assert_int_equal(h->weight_group_size, d->weight_group_size);
    assert_int_equal(h->scale_type, d->scale_type);
    assert_int_equal(h->reserved, 0);
}

static int64_t compared_bytes;

/* Unpacks to a layout; gaps must stay as they are. */
static void unpack_check(const checkpoint *c, const halfbyte_packed_header *h,
                         const uint8_t *packed, halfbyte_int4_layout layout,
                         halfbyte_device *device)
{
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    desc.layout = layout;
    desc.n = c->desc.n;
    desc.k = c->desc.k;
    desc.groups = c->desc.groups;
    desc.group_k_offset = c->desc.group_k_offset;
    checkpoint expected = checkpoint_make(desc, 1, false, 0);
    uint8_t *out = filled(expected.bytes, POISON);
    const int unit = unit_of(layout);

    assert_int_equal(halfbyte_unpack_weights(device, h, packed, packed_size(&c->desc),
                                             &expected.desc, out, NULL),
                     HALFBYTE_SUCCESS);
    memset(expected.data, POISON, expected.bytes);
    for (int64_t row = 0; row < desc.groups * desc.n; row++) {
        const int64_t begin =
            row / desc.n * expected.desc.group_stride + row % desc.n * expected.desc.ld;
        memset(expected.data + begin / 2, 0,
               (size_t)((desc.k + unit - 1) / unit * unit / 2)); /* the last unit's rest is zero */
        for (int64_t k = 0; k < desc.k; k++) {
            value_store(expected.data, layout, begin + k, c->values[row * desc.k + k]);
        }
    }
    assert_memory_equal(out, expected.data, expected.bytes);
    compared_bytes += (int64_t)expected.bytes;
    free(out);
    checkpoint_free(&expected);
}

static void case_check(halfbyte_int4_desc desc, int pad, bool minus8)
{
    checkpoint c = checkpoint_make(desc, pad, minus8, (uint64_t)(desc.n * 1000 + desc.k));
    bool holds = false;
    for (int64_t i = 0; i < desc.groups * desc.n * desc.k; i++) {
        holds |= c.values[i] == -8;
    }
    uint8_t *expected = packed_make(&c, holds);
    size_t bytes = 0;

    assert_int_equal(halfbyte_packed_weights_bytes(&desc, &bytes), HALFBYTE_SUCCESS);
    assert_int_equal(bytes, packed_size(&desc));
    for (int device = 0; device < CALLER_DEVICES; device++) {
        halfbyte_packed_header header;
        uint8_t *packed = filled(bytes, POISON);
        memset(&header, POISON, sizeof header);
        assert_int_equal(halfbyte_pack_weights(all_callers.devices[device], &c.desc, c.data, packed,
                                               bytes, &header, NULL),
                         HALFBYTE_SUCCESS);
        header_check(&header, &desc, holds);
        assert_memory_equal(packed, expected, bytes);
        compared_bytes += (int64_t)bytes;
        for (int layout = 0; layout < 3; layout++) {
            unpack_check(&c, &header, packed, (halfbyte_int4_layout)layout,
                         all_callers.devices[device]);
        }
        free(packed);
    }
    free(expected);
    checkpoint_free(&c);
}

static halfbyte_int4_desc desc_make(halfbyte_int4_layout layout, int64_t groups, int64_t n,
                                    int64_t k)
{
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    desc.layout = layout;
    desc.groups = groups;
    desc.n = n;
    desc.k = k;
    desc.ld = k;
    desc.group_stride = n * k;
    desc.weight_group_size = 128;
    desc.scale_type = HALFBYTE_TYPE_BF16;
    return desc;
}

static void test_ragged(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1},   {1, 64, 128}, {2, 65, 129},
                                        {3, 7, 250}, {1, 128, 32}, {2, 150, 96}};
    (void)state;

    compared_bytes = 0;
    for (int layout = 0; layout < 3; layout++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            for (int minus8 = 0; minus8 < 2; minus8++) {
                case_check(desc_make((halfbyte_int4_layout)layout, shapes[i][0], shapes[i][1],
                                     shapes[i][2]),
                           (int)i % 3, minus8 != 0);
            }
        }
    }
    assert_true(compared_bytes > 3 * 2 * CALLER_DEVICES * 26 * ATOM_BYTES);
}

static void test_offsets(void **state)
{
    (void)state;
    compared_bytes = 0;
    for (int layout = 0; layout < 3; layout++) {
        for (int64_t size = 64; size <= 128; size *= 2) {
            for (int64_t offset = 0; offset < size; offset += 32) {
                for (int64_t k = 30; k < 400; k += 101) {
                    halfbyte_int4_desc desc = desc_make((halfbyte_int4_layout)layout, 2, 66, k);
                    desc.group_k_offset = offset;
                    desc.weight_group_size = size;
                    case_check(desc, 1, offset == 32);
                }
            }
        }
    }
    assert_true(compared_bytes > 0);
}

static void test_gate_up(void **state)
{
    static const int64_t rows[] = {16, 64, 80, 192};
    (void)state;

    compared_bytes = 0;
    for (int layout = 0; layout < 3; layout++) {
        for (int i = 0; i < 4; i++) {
            halfbyte_int4_desc desc = desc_make((halfbyte_int4_layout)layout, 3, rows[i], 160);
            desc.flags = HALFBYTE_PACKED_GATE_UP_ROWS;
            desc.group_k_offset = i % 2 == 0 ? 0 : 96;
            case_check(desc, i % 2, i == 3);
        }
    }
    assert_true(compared_bytes > 0);
}

/* Every layout, several groups, more panels than threads and fewer. */
static void test_in_place(void **state)
{
    int compared = 0;
    (void)state;

    for (int layout = 0; layout < 3; layout++) {
        for (int64_t groups = 1; groups <= 3; groups++) {
            for (int minus8 = 0; minus8 < 2; minus8++) {
                checkpoint c = checkpoint_make(
                    desc_make((halfbyte_int4_layout)layout, groups, 192, 256), 0, minus8 != 0, 9);
                uint8_t *expected = packed_make(&c, minus8 != 0);
                for (int device = 0; device < CALLER_DEVICES; device++) {
                    halfbyte_packed_header header;
                    uint8_t *data = filled(c.bytes, 0);
                    memcpy(data, c.data, c.bytes);
                    assert_int_equal(halfbyte_pack_weights(all_callers.devices[device], &c.desc,
                                                           data, data, c.bytes, &header, NULL),
                                     HALFBYTE_SUCCESS);
                    header_check(&header, &c.desc, minus8 != 0);
                    assert_memory_equal(data, expected, c.bytes);
                    assert_int_equal(halfbyte_unpack_weights(all_callers.devices[device], &header,
                                                             data, c.bytes, &c.desc, data, NULL),
                                     HALFBYTE_SUCCESS);
                    assert_memory_equal(data, c.data, c.bytes);
                    free(data);
                    compared++;
                }
                free(expected);
                checkpoint_free(&c);
            }
        }
    }
    assert_int_equal(compared, 3 * 3 * 2 * CALLER_DEVICES);
}

/* groups 0 is 1; nothing to pack is fine with NULL pointers. */
static void test_empty(void **state)
{
    halfbyte_packed_header header;
    size_t bytes = 1;
    (void)state;

    for (int zero = 0; zero < 2; zero++) {
        halfbyte_int4_desc desc =
            desc_make(HALFBYTE_INT4_INT8_LOW_FIRST, 0, zero == 0 ? 0 : 64, zero == 0 ? 128 : 0);
        assert_int_equal(halfbyte_packed_weights_bytes(&desc, &bytes), HALFBYTE_SUCCESS);
        assert_int_equal(bytes, 0);
        assert_int_equal(halfbyte_pack_weights(NULL, &desc, NULL, NULL, 0, &header, NULL),
                         HALFBYTE_SUCCESS);
        assert_int_equal(header.groups, 1);
        assert_int_equal(halfbyte_unpack_weights(NULL, &header, NULL, 0, &desc, NULL, NULL),
                         HALFBYTE_SUCCESS);
    }
}

/* No weights, but an offset: the packed form has atoms, all zero. */
static void test_offset_alone(void **state)
{
    halfbyte_int4_desc desc = desc_make(HALFBYTE_INT4_INT8_LOW_FIRST, 2, 64, 0);
    halfbyte_packed_header header;
    size_t bytes = 0;
    (void)state;

    desc.group_k_offset = 32;
    assert_int_equal(halfbyte_packed_weights_bytes(&desc, &bytes), HALFBYTE_SUCCESS);
    assert_int_equal(bytes, 2 * ATOM_BYTES);
    uint8_t *packed = filled(bytes, POISON), *zeros = filled(bytes, 0);
    assert_int_equal(halfbyte_pack_weights(NULL, &desc, NULL, packed, bytes, &header, NULL),
                     HALFBYTE_SUCCESS);
    assert_memory_equal(packed, zeros, bytes);
    assert_int_equal(halfbyte_unpack_weights(NULL, &header, packed, bytes, &desc, NULL, NULL),
                     HALFBYTE_SUCCESS);
    free(packed);
    free(zeros);
}

static void test_sizes(void **state)
{
    size_t bytes = 0;
    (void)state;

    halfbyte_int4_desc desc = desc_make(HALFBYTE_INT4_INT8_LOW_FIRST, 256, 7168, 2048);
    assert_int_equal(halfbyte_packed_weights_bytes(&desc, &bytes), HALFBYTE_SUCCESS);
    assert_int_equal(bytes, 256ull * 112 * 16 * 4096);
    desc.group_k_offset = 64;
    assert_int_equal(halfbyte_packed_weights_bytes(&desc, &bytes), HALFBYTE_SUCCESS);
    assert_int_equal(bytes, 256ull * 112 * 17 * 4096);
    desc.n = 7169;
    assert_int_equal(halfbyte_packed_weights_bytes(&desc, &bytes), HALFBYTE_SUCCESS);
    assert_int_equal(bytes, 256ull * 113 * 17 * 4096);
}

static int everything_open(void **state)
{
    (void)state;
    return callers_open(&all_callers) ? 0 : -1;
}

static int everything_close(void **state)
{
    (void)state;
    callers_close(&all_callers);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ragged),       cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_gate_up),      cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_offset_alone),
    };
    return cmocka_run_group_tests(tests, everything_open, everything_close);
}
