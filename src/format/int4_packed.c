/* SPDX-License-Identifier: Apache-2.0 */
#include "format/int4_packed.h"

#define ATOM_ROW_BYTES (INT4_PACKED_ATOM_K / 2) /* of one row of an atom in INT4_RAW form */
#define KNOWN_FLAGS (INT4_PACKED_HOLDS_MINUS8 | INT4_PACKED_GATE_UP)

/* ---- address --------------------------------------------------------------------------------- */

int64_t int4_packed_row(const struct int4_packed_shape *shape, int64_t n)
{
    if ((shape->flags & INT4_PACKED_GATE_UP) == 0)
        return n;
    const int64_t half = shape->n / 2, i = n < half ? n : n - half;
    return 16 * (i / 8) + i % 8 + (n < half ? 0 : 8);
}

int64_t int4_packed_source_row(const struct int4_packed_shape *shape, int64_t packed_row)
{
    if ((shape->flags & INT4_PACKED_GATE_UP) == 0)
        return packed_row < shape->n ? packed_row : -1;
    const int64_t half = shape->n / 2, i = 8 * (packed_row / 16) + packed_row % 8;
    if (i >= half)
        return -1;
    return packed_row / 8 % 2 == 0 ? i : half + i;
}

int64_t int4_packed_panels(const struct int4_packed_shape *shape)
{
    return shape->n / INT4_PACKED_ATOM_ROWS + (shape->n % INT4_PACKED_ATOM_ROWS != 0);
}

int64_t int4_packed_atoms(const struct int4_packed_shape *shape)
{
    /* k and the offset apart, since their sum may overflow */
    const int64_t rest = shape->k % INT4_PACKED_ATOM_K + shape->group_k_offset;
    return shape->k / INT4_PACKED_ATOM_K + (rest + INT4_PACKED_ATOM_K - 1) / INT4_PACKED_ATOM_K;
}

/* Multiplies *product by factor >= 0; false if the result is beyond INT64_MAX. */
static bool multiply(int64_t *product, int64_t factor)
{
    if (factor != 0 && *product > INT64_MAX / factor)
        return false;
    *product *= factor;
    return true;
}

int64_t int4_packed_bytes(const struct int4_packed_shape *shape)
{
    if (shape->groups < 0 || shape->n < 0 || shape->k < 0)
        return -1;
    if (shape->group_k_offset < 0 || shape->group_k_offset >= INT4_PACKED_ATOM_K)
        return -1;
    if ((shape->flags & ~KNOWN_FLAGS) != 0)
        return -1;
    if ((shape->flags & INT4_PACKED_GATE_UP) != 0 && shape->n % 2 != 0)
        return -1;

    int64_t bytes = INT4_PACKED_ATOM_BYTES;
    if (shape->groups == 0 || shape->n == 0)
        return 0;
    if (!multiply(&bytes, int4_packed_atoms(shape)) ||
        !multiply(&bytes, int4_packed_panels(shape)) || !multiply(&bytes, shape->groups))
        return -1;
    return bytes;
}

/* Byte offset of an atom in the packed tensor. */
static int64_t atom_offset(const struct int4_packed_shape *shape, int64_t group, int64_t panel,
                           int64_t atom)
{
    const int64_t panels = int4_packed_panels(shape), atoms = int4_packed_atoms(shape);
    return ((group * panels + panel) * atoms + atom) * INT4_PACKED_ATOM_BYTES;
}

int64_t int4_packed_address(const struct int4_packed_shape *shape, int64_t group, int64_t n,
                            int64_t k, unsigned *shift)
{
    const int64_t packed_row = int4_packed_row(shape, n), position = k + shape->group_k_offset;
    const unsigned row = (unsigned)(packed_row % INT4_PACKED_ATOM_ROWS);
    const unsigned column = (unsigned)(position % INT4_PACKED_ATOM_K);

    *shift = int4_packed_shift(row, column);
    return atom_offset(shape, group, packed_row / INT4_PACKED_ATOM_ROWS,
                       position / INT4_PACKED_ATOM_K) +
           int4_packed_atom_word(row, column);
}

int int4_packed_get(const void *packed, const struct int4_packed_shape *shape, int64_t group,
                    int64_t n, int64_t k)
{
    unsigned shift;
    const int64_t offset = int4_packed_address(shape, group, n, k, &shift);
    const uint32_t code = bits_rotr32(bits_load_le32((const uint8_t *)packed + offset), shift);
    const int magnitude = (int)(code & 7u);

    if ((code & 0x80u) == 0)
        return magnitude;
    return (shape->flags & INT4_PACKED_HOLDS_MINUS8) != 0 ? -magnitude - 1 : -magnitude;
}

/* ---- atoms ----------------------------------------------------------------------------------- */

/*
 * All three visit the words of an atom: the first rows of the row pairs (r, r + 8), four positions
 * at a time. Four values along k are 16 bits of a raw row.
 */
#define FOR_EACH_WORD(row, position)                                                               \
    for (unsigned row = 0; row < INT4_PACKED_ATOM_ROWS; row += row % 8 == 7 ? 9 : 1)               \
        for (unsigned position = 0; position < INT4_PACKED_ATOM_K; position += 4)

void int4_packed_atom_pack(uint8_t *atom, const uint8_t *rows, unsigned flags)
{
    FOR_EACH_WORD (row, position) {
        const uint8_t *first = rows + row * ATOM_ROW_BYTES + position / 2;
        const uint8_t *second = first + 8 * ATOM_ROW_BYTES;
        const uint32_t nibbles = bits_load_le16(first) | bits_load_le16(second) << 16;
        const bool f3 = (flags & INT4_PACKED_HOLDS_MINUS8) != 0;

        bits_store_le32(atom + int4_packed_atom_word(row, position),
                        f3 ? f3_encode(nibbles) : sm7_encode(nibbles));
    }
}

static void word_decode(uint32_t word, unsigned flags, uint32_t reg[2])
{
    if ((flags & INT4_PACKED_HOLDS_MINUS8) != 0)
        f3_decode(word, reg);
    else
        sm7_decode(word, reg);
}

void int4_packed_atom_unpack(uint8_t *rows, const uint8_t *atom, unsigned flags)
{
    FOR_EACH_WORD (row, position) {
        uint8_t *first = rows + row * ATOM_ROW_BYTES + position / 2;
        uint32_t reg[2];

        word_decode(bits_load_le32(atom + int4_packed_atom_word(row, position)), flags, reg);
        const uint32_t nibbles = int4_gather_e4m3(reg[0] | (uint64_t)reg[1] << 32);
        bits_store_le16(first, nibbles);
        bits_store_le16(first + 8 * ATOM_ROW_BYTES, nibbles >> 16);
    }
}

void int4_packed_atom_to_e4m3(uint8_t *dst, int64_t row_stride_bytes, const uint8_t *atom,
                              unsigned flags)
{
    FOR_EACH_WORD (row, position) {
        uint8_t *first = dst + row * row_stride_bytes + position;
        uint32_t reg[2];

        word_decode(bits_load_le32(atom + int4_packed_atom_word(row, position)), flags, reg);
        bits_store_le32(first, reg[0]);
        bits_store_le32(first + 8 * row_stride_bytes, reg[1]);
    }
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* The values of a row that one atom holds: count of them from k_begin on, from position on. */
struct atom_span {
    int64_t k_begin, position, count;
};

static struct atom_span atom_span_of(const struct int4_packed_shape *shape, int64_t atom)
{
    const int64_t offset = shape->group_k_offset;
    struct atom_span span;

    span.k_begin = atom == 0 ? 0 : atom * INT4_PACKED_ATOM_K - offset;
    span.position = atom == 0 ? offset : 0;
    span.count = INT4_PACKED_ATOM_K - span.position;
    if (span.count > shape->k - span.k_begin)
        span.count = shape->k - span.k_begin;
    return span;
}

/* Packs one group whose rows stand in src. */
static void group_pack(uint8_t *packed, const struct int4_packed_shape *shape, const uint8_t *src,
                       enum int4_form form, int64_t row_stride_bytes)
{
    const int64_t panels = int4_packed_panels(shape), atoms = int4_packed_atoms(shape);
    uint8_t rows[INT4_PACKED_ATOM_BYTES], shifted[ATOM_ROW_BYTES];

    for (int64_t panel = 0; panel < panels; panel++) {
        const int64_t first_row = panel * INT4_PACKED_ATOM_ROWS;
        for (int64_t atom = 0; atom < atoms; atom++) {
            const struct atom_span span = atom_span_of(shape, atom);

            memset(rows, 0, sizeof rows);
            for (int64_t row = 0; row < INT4_PACKED_ATOM_ROWS; row++) {
                const int64_t n = int4_packed_source_row(shape, first_row + row);
                uint8_t *to = rows + row * ATOM_ROW_BYTES;
                if (n < 0)
                    continue;
                const uint8_t *from = src + n * row_stride_bytes;
                if (span.position == 0) {
                    int4_row_read(to, from, form, span.k_begin, span.count);
                } else {
                    int4_row_read(shifted, from, form, span.k_begin, span.count);
                    int4_row_write(to, INT4_RAW, INT4_PACKED_ATOM_K, span.position, span.count,
                                   shifted);
                }
            }
            int4_packed_atom_pack(packed + atom_offset(shape, 0, panel, atom), rows, shape->flags);
        }
    }
}

static void group_unpack(uint8_t *dst, enum int4_form form, int64_t row_stride_bytes,
                         const uint8_t *packed, const struct int4_packed_shape *shape)
{
    const int64_t panels = int4_packed_panels(shape), atoms = int4_packed_atoms(shape);
    uint8_t rows[INT4_PACKED_ATOM_BYTES], shifted[ATOM_ROW_BYTES];

    for (int64_t panel = 0; panel < panels; panel++) {
        const int64_t first_row = panel * INT4_PACKED_ATOM_ROWS;
        for (int64_t atom = 0; atom < atoms; atom++) {
            const struct atom_span span = atom_span_of(shape, atom);

            int4_packed_atom_unpack(rows, packed + atom_offset(shape, 0, panel, atom),
                                    shape->flags);
            for (int64_t row = 0; row < INT4_PACKED_ATOM_ROWS; row++) {
                const int64_t n = int4_packed_source_row(shape, first_row + row);
                const uint8_t *from = rows + row * ATOM_ROW_BYTES;
                if (n < 0)
                    continue;
                if (span.position != 0) {
                    int4_row_read(shifted, from, INT4_RAW, span.position, span.count);
                    from = shifted;
                }
                int4_row_write(dst + n * row_stride_bytes, form, shape->k, span.k_begin, span.count,
                               from);
            }
        }
    }
}

static bool tensor_is_valid(const struct int4_packed_shape *shape, enum int4_form form,
                            int64_t row_stride_bytes)
{
    if (int4_packed_bytes(shape) < 0)
        return false;
    const int64_t row_bytes = int4_row_bytes(form, shape->k);
    return row_bytes >= 0 && (shape->n <= 1 || row_stride_bytes >= row_bytes);
}

/* False if the tensor holds a -8 that its word form cannot express. */
static bool words_suffice(const struct int4_packed_shape *shape, const void *src,
                          enum int4_form form, int64_t row_stride_bytes, int64_t group_stride_bytes)
{
    bool holds_minus8 = false;

    if ((shape->flags & INT4_PACKED_HOLDS_MINUS8) != 0)
        return true;
    for (int64_t group = 0; group < shape->groups && !holds_minus8; group++) {
        const uint8_t *rows = (const uint8_t *)src + group * group_stride_bytes;
        if (!int4_rows_hold_minus8(rows, form, row_stride_bytes, shape->n, shape->k, &holds_minus8))
            return false;
    }
    return !holds_minus8;
}

bool int4_packed_pack(void *packed, const struct int4_packed_shape *shape, const void *src,
                      enum int4_form form, int64_t row_stride_bytes, int64_t group_stride_bytes)
{
    if (!tensor_is_valid(shape, form, row_stride_bytes) ||
        !words_suffice(shape, src, form, row_stride_bytes, group_stride_bytes))
        return false;
    for (int64_t group = 0; group < shape->groups; group++)
        group_pack((uint8_t *)packed + atom_offset(shape, group, 0, 0), shape,
                   (const uint8_t *)src + group * group_stride_bytes, form, row_stride_bytes);
    return true;
}

bool int4_packed_unpack(void *dst, enum int4_form form, int64_t row_stride_bytes,
                        int64_t group_stride_bytes, const void *packed,
                        const struct int4_packed_shape *shape)
{
    if (!tensor_is_valid(shape, form, row_stride_bytes))
        return false;
    for (int64_t group = 0; group < shape->groups; group++)
        group_unpack((uint8_t *)dst + group * group_stride_bytes, form, row_stride_bytes,
                     (const uint8_t *)packed + atom_offset(shape, group, 0, 0), shape);
    return true;
}
