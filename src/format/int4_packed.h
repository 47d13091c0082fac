/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed int4 weights, version 1: the order in which a Hopper warpgroup consumes them.
 *
 * A packed tensor is [groups][panels][atoms] with panels = ceil(n / 64) and
 * atoms = ceil((k + group_k_offset) / 128). One atom is 64 rows x 128 k in 4,096 bytes. Value k of
 * a row stands at position k + group_k_offset, so that atoms end where weight groups end; positions
 * and rows without a value hold zero. Scales are kept apart.
 *
 * ATOM. wgmma.m64nNk32 with A in registers wants, for the 64 x 32 bytes of one k32 step, from
 * thread t (warp w = t / 32, g = t % 32 / 4, c = t % 4) four registers of four bytes along k:
 *
 *   register 0: row 16w + g,     k 4c .. 4c + 3      register 2: row 16w + g,     k 16 + 4c ..
 *   register 1: row 16w + g + 8, k 4c .. 4c + 3      register 3: row 16w + g + 8, k 16 + 4c ..
 *
 * An atom is [2 loads][128 threads][4 words] of 32-bit little-endian words, 16 bytes a thread and
 * load: the 32 lanes of a warp read 512 contiguous bytes, without a bank conflict.
 *
 *                word 0           word 1           word 2           word 3
 *   k32 step     2j               2j               2j + 1           2j + 1            (of load j)
 *   registers    0 and 1          2 and 3          0 and 1          2 and 3
 *
 * WORD. Eight weights, two registers. Each weight is an 8-bit code, sign in bit 7 and a magnitude
 * in bits 2..0; the other four bits are free, and the second register's codes lie in those gaps:
 *
 *   byte b of the first (even) register:   its code, rotated left in the word by 8b
 *   byte b of the second (odd) register:   its code, rotated left in the word by 8b + 4
 *                                          (so its sign is bit 3 of the next byte, wrapping round)
 *
 *   SM7 (tensor without -8)   magnitude |v|                  decoded by sm7_decode: 3 operations
 *   F3 (any tensor)           magnitude v >= 0 ? v : -v-1    decoded by f3_decode: 6 operations
 *
 * Both decode to the same bytes, sign << 7 | |v|. The flag INT4_PACKED_HOLDS_MINUS8 chooses F3.
 *
 * GATE/UP. With INT4_PACKED_GATE_UP the n = 2I rows are two halves, gate row i = row i and up row
 * i = row I + i, and are permuted so that packed rows 16q + g and 16q + g + 8 (g < 8) are the gate
 * and the up row 8q + g: one thread then holds both in registers 0 and 1, and its accumulators hold
 * both products. This never takes more panels.
 *
 * Addresses: int4_packed_row, int4_packed_atom_word and int4_packed_shift below are the only
 * statement of the above in code; packing, unpacking and single reads all go through them.
 * Memory may have any alignment here (the GPU wants 128 bytes).
 */
#ifndef HALFBYTE_FORMAT_INT4_PACKED_H
#define HALFBYTE_FORMAT_INT4_PACKED_H

#include "format/bits.h"
#include "format/int4.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INT4_PACKED_VERSION 1
#define INT4_PACKED_ATOM_ROWS 64
#define INT4_PACKED_ATOM_K 128
#define INT4_PACKED_ATOM_BYTES 4096

#define INT4_PACKED_HOLDS_MINUS8 1u /* words in form F3; without: SM7, and -8 is refused */
#define INT4_PACKED_GATE_UP 2u      /* rows interleaved; n must be even */

/* A packed tensor, apart from its bytes. Valid: see int4_packed_bytes. */
struct int4_packed_shape {
    int64_t groups;         /* experts; 1 for a dense matrix */
    int64_t n, k;           /* rows, and values a row, of each group */
    int64_t group_k_offset; /* 0..127: position of k = 0 in its block of 128 */
    unsigned flags;         /* INT4_PACKED_* */
};

/* ---- word ------------------------------------------------------------------------------------ */

/* An SM7 word -> the e4m3 bytes of its two registers, reg[0] the first. */
static inline void sm7_decode(uint32_t word, uint32_t reg[2])
{
    reg[0] = word & 0x87878787u;
    reg[1] = bits_rotr32(word, 4) & 0x87878787u;
}

/*
 * The same for an F3 word. A negative weight's magnitude is stored less one. All sign bits, rotated
 * right by 7, land on bit 0 of their own magnitudes, so one addition completes all eight; 7 + 1
 * still fits into the four bits between two magnitudes.
 */
static inline void f3_decode(uint32_t word, uint32_t reg[2])
{
    const uint32_t signs = word & 0x88888888u;
    const uint32_t magnitudes = (word & 0x77777777u) + bits_rotr32(signs, 7);

    reg[0] = (magnitudes & 0x0f0f0f0fu) | (signs & 0xf0f0f0f0u);
    reg[1] = bits_rotr32((magnitudes & 0xf0f0f0f0u) | (signs & 0x0f0f0f0fu), 4);
}

/* F3 words once more, in the form that treats the registers one after the other. */
static inline void f1_decode(uint32_t word, uint32_t reg[2])
{
    const uint32_t rotated = bits_rotr32(word, 4);

    reg[0] = (word & 0x87878787u) + ((word & 0x80808080u) >> 7);
    reg[1] = (rotated & 0x87878787u) + ((rotated & 0x80808080u) >> 7);
}

/*
 * The word of eight two's complement nibbles, those of the first register in bits 15..0 with byte b
 * of it in bits 4b..4b+3, those of the second in bits 31..16. sm7_encode: no nibble may be -8.
 */
static inline uint32_t sm7_encode(uint32_t nibbles)
{
    const uint64_t codes = int4_spread_e4m3(nibbles);
    return (uint32_t)(codes & 0xffffffffu) | bits_rotr32((uint32_t)(codes >> 32), 28);
}

static inline uint32_t f3_encode(uint32_t nibbles)
{
    const uint64_t x = int4_spread(nibbles);
    const uint64_t negative = (x >> 3) & 0x0101010101010101u;
    const uint64_t codes = (x ^ negative * 15u) | negative << 7;
    return (uint32_t)(codes & 0xffffffffu) | bits_rotr32((uint32_t)(codes >> 32), 28);
}

/* ---- address --------------------------------------------------------------------------------- */

/* Byte offset in its atom of the word that holds packed row 0..63, position 0..127. */
static inline unsigned int4_packed_atom_word(unsigned row, unsigned position)
{
    const unsigned warp = row / 16, g = row % 8, c = position / 4 % 4;
    const unsigned load = position / 64, step = position / 32 % 2, k_half = position / 16 % 2;
    const unsigned thread = 32 * warp + 4 * g + c;

    return 2048 * load + 16 * thread + 8 * step + 4 * k_half;
}

/* The code of that weight is bits_rotr32(word, shift) & 0x87. */
static inline unsigned int4_packed_shift(unsigned row, unsigned position)
{
    return 8 * (position % 4) + 4 * (row / 8 % 2);
}

/* Where row n of a group goes: its packed row. */
int64_t int4_packed_row(const struct int4_packed_shape *shape, int64_t n);

/* The inverse: the row of the tensor at a packed row, -1 if none is there. */
int64_t int4_packed_source_row(const struct int4_packed_shape *shape, int64_t packed_row);

/*
 * Panels (64 rows) and atoms along k of one group, and the packed bytes of all groups: -1 if the
 * shape is not valid (something negative, group_k_offset > 127, an unknown flag, n odd with
 * INT4_PACKED_GATE_UP, a size beyond INT64_MAX). The first two ask for a valid shape.
 */
int64_t int4_packed_panels(const struct int4_packed_shape *shape);
int64_t int4_packed_atoms(const struct int4_packed_shape *shape);
int64_t int4_packed_bytes(const struct int4_packed_shape *shape);

/* Byte offset in the packed tensor of the word with weight (group, n, k), and its shift. */
int64_t int4_packed_address(const struct int4_packed_shape *shape, int64_t group, int64_t n,
                            int64_t k, unsigned *shift);

/* Weight (group, n, k), -8..7. */
int int4_packed_get(const void *packed, const struct int4_packed_shape *shape, int64_t group,
                    int64_t n, int64_t k);

/* ---- atoms ----------------------------------------------------------------------------------- */

/*
 * One atom from and to an INT4_RAW matrix of 64 packed rows x 64 bytes (contiguous, 4,096 bytes).
 * flags chooses the word form; packing in SM7 form asks for a matrix without -8. No overlap.
 */
void int4_packed_atom_pack(uint8_t *atom, const uint8_t *rows, unsigned flags);
void int4_packed_atom_unpack(uint8_t *rows, const uint8_t *atom, unsigned flags);

/* One atom as e4m3 bytes: packed row r, position p -> dst[r * row_stride_bytes + p]. */
void int4_packed_atom_to_e4m3(uint8_t *dst, int64_t row_stride_bytes, const uint8_t *atom,
                              unsigned flags);

/* ---- tensors --------------------------------------------------------------------------------- */

/*
 * Packs and unpacks whole tensors. The plain tensor has rows of k values in the given form, group g
 * starting at g * group_stride_bytes. No overlap. Return false and write nothing if the shape or
 * the form is not valid, for n > 1 a row stride is smaller than its row, or, packing without
 * INT4_PACKED_HOLDS_MINUS8, there is a -8. Packing writes all int4_packed_bytes bytes.
 */
bool int4_packed_pack(void *packed, const struct int4_packed_shape *shape, const void *src,
                      enum int4_form form, int64_t row_stride_bytes, int64_t group_stride_bytes);
bool int4_packed_unpack(void *dst, enum int4_form form, int64_t row_stride_bytes,
                        int64_t group_stride_bytes, const void *packed,
                        const struct int4_packed_shape *shape);

#endif /* HALFBYTE_FORMAT_INT4_PACKED_H */
