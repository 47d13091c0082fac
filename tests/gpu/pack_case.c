/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/pack_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, ATOM = 4096 };

static void *image_allocate(size_t bytes)
{
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (memory == NULL) {
        fputs("pack_case: no memory\n", stderr);
        exit(2);
    }
    memset(memory, PACK_POISON, bytes);
    return memory;
}

static uint8_t *image_copy(const pack_image *image)
{
    uint8_t *copy = image_allocate(image->size);
    memcpy(copy, image->bytes, image->size);
    return copy;
}

/* offset: from the alignment of 256, in bytes. */
static pack_image image_make(size_t offset, size_t data_size)
{
    pack_image image = {NULL, 2 * GUARD + offset + data_size, GUARD + offset, data_size};
    image.bytes = image_allocate(image.size);
    return image;
}

static void check(halfbyte_status status)
{
    if (status != HALFBYTE_SUCCESS) {
        fprintf(stderr, "pack_case: %s\n", halfbyte_last_error());
        exit(2);
    }
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Weight i of a tensor; the machine is little-endian, so all layouts have the same order. */
static void value_store(pack_case *c, int64_t i, int value)
{
    const int stored = c->desc.layout == HALFBYTE_INT4_INT32_OFFSET ? value + 8 : value;
    const unsigned shift = (unsigned)(i % 2) * 4;
    uint8_t *at = c->plain.bytes + c->plain.data_at + i / 2;
    *at = (uint8_t)((*at & ~(15u << shift)) | ((unsigned)stored & 15u) << shift);
}

static int64_t index_of(const pack_case *c, int64_t row, int64_t k)
{
    return row / c->desc.n * c->desc.group_stride + row % c->desc.n * c->desc.ld + k;
}

static void weights_draw(pack_case *c, struct random *r, pack_minus8 minus8)
{
    const halfbyte_int4_desc *d = &c->desc;
    const int64_t rows = d->groups * d->n;
    memset(c->plain.bytes + c->plain.data_at, d->layout == HALFBYTE_INT4_INT32_OFFSET ? 0x00 : 0x88,
           c->plain.data_size);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t k = 0; k < d->k; k++) {
            const bool lowest = minus8 == PACK_MINUS8_MANY && random_percent(r, 10);
            value_store(c, index_of(c, row, k), lowest ? -8 : (int)random_between(r, -7, 7));
        }
    }
    if (rows == 0 || d->k == 0) {
        return;
    }
    if (minus8 == PACK_MINUS8_ONE) {
        value_store(c, index_of(c, random_below(r, rows), random_below(r, d->k)), -8);
    } else if (minus8 == PACK_MINUS8_FIRST) {
        value_store(c, random_below(r, d->k < 8 ? d->k : 8), -8);
    }
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void desc_make(pack_case *c, struct random *r, halfbyte_int4_layout layout, pack_shape shape)
{
    const int64_t unit = layout == HALFBYTE_INT4_INT8_LOW_FIRST ? 2 : 8;
    halfbyte_int4_desc d = halfbyte_int4_desc_init();
    d.layout = layout;
    d.groups = shape.groups;
    d.n = shape.n;
    d.k = shape.k;
    d.ld = (shape.k + unit - 1) / unit * unit;
    d.ld += shape.is_plain ? 0 : random_below(r, 20) * unit;
    d.group_stride = shape.n * d.ld + (shape.is_plain ? 0 : random_below(r, 20) * unit);
    d.group_k_offset = shape.group_k_offset;
    d.weight_group_size = 128;
    d.scale_type = HALFBYTE_TYPE_F32;
    d.flags = shape.gate_up ? HALFBYTE_PACKED_GATE_UP_ROWS : 0;
    c->desc = d;
    c->in_place = shape.in_place;
}

static void images_make(pack_case *c, struct random *r, bool is_plain)
{
    const halfbyte_int4_desc *d = &c->desc;
    const int64_t unit = d->layout == HALFBYTE_INT4_INT8_LOW_FIRST ? 2 : 8;
    const int64_t row = (d->k + unit - 1) / unit * unit;
    const int64_t weights =
        d->n == 0 ? 0 : (d->groups - 1) * d->group_stride + (d->n - 1) * d->ld + row;
    const size_t offset = is_plain ? 0 : (size_t)(random_below(r, 8) * (unit == 2 ? 1 : 4));
    size_t bytes = 0;
    c->plain = image_make(offset, (size_t)weights / 2);
    check(halfbyte_packed_weights_bytes(d, &bytes));
    c->packed = image_make(is_plain ? 0 : (size_t)random_below(r, 8) * 16, bytes);
}

static void expected_make(pack_case *c)
{
    const halfbyte_int4_desc *d = &c->desc;
    const pack_image *target = c->in_place ? &c->plain : &c->packed;
    c->packed_expected = image_copy(target);
    c->plain_expected = image_allocate(c->plain.size);
    uint8_t *packed = c->packed_expected + target->data_at;
    uint8_t *plain = c->plain_expected + c->plain.data_at;
    check(halfbyte_pack_weights(NULL, d, c->in_place ? packed : c->plain.bytes + c->plain.data_at,
                                packed, target->data_size, &c->header, NULL));
    if (c->in_place) {
        memcpy(c->plain_expected, c->packed_expected, c->plain.size);
        packed = plain;
    }
    check(halfbyte_unpack_weights(NULL, &c->header, packed, target->data_size, d, plain, NULL));
}

void pack_case_make(pack_case *c, struct random *r, halfbyte_int4_layout layout, pack_minus8 minus8,
                    pack_shape shape)
{
    memset(c, 0, sizeof *c);
    desc_make(c, r, layout, shape);
    images_make(c, r, shape.is_plain);
    weights_draw(c, r, minus8);
    expected_make(c);
}

void pack_case_free(pack_case *c)
{
    free(c->plain.bytes);
    free(c->packed.bytes);
    free(c->packed_expected);
    free(c->plain_expected);
}

static int64_t rounded_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

pack_shape pack_shape_draw(struct random *r, int64_t most_n, int64_t most_k)
{
    pack_shape shape = {random_between(r, 1, 3),
                        random_between(r, 1, most_n),
                        random_between(r, 1, most_k),
                        0,
                        false,
                        random_percent(r, 40),
                        false};
    if (random_percent(r, 50)) {
        shape.k = rounded_up(shape.k, 32);
    }
    if (random_percent(r, 30)) {
        shape.group_k_offset = random_below(r, 4) * 32;
    }
    if (random_percent(r, 20)) {
        shape.n = rounded_up(shape.n, 16);
        shape.gate_up = true;
    } else if (random_percent(r, 30)) {
        shape.n = rounded_up(shape.n, 64);
        shape.k = rounded_up(shape.k, 128);
        shape.group_k_offset = 0;
        shape.is_plain = shape.in_place = true;
    }
    return shape;
}
