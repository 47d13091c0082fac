/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a warp packs, and its loads and stores in the checkpoint's layout.
 *
 * Four warps share an atom: 16 rows each, lane l the rows l / 4 and l / 4 + 8 of them.  A unit is
 * 16 neighbouring weights of a row: 8 bytes.
 */
#ifndef HALFBYTE_KERNELS_PACK_WEIGHTS_TILE_H
#define HALFBYTE_KERNELS_PACK_WEIGHTS_TILE_H

#include "kernels/hopper/hopper.h"
#include "kernels/pack_weights_params.h"

#define UNIT_WEIGHTS 16u
#define ATOM_K 128u

/* The two rows of this lane; NULL: there is no such row. */
typedef struct pack_rows {
    uint8_t *row[2];
    int64_t panel; /* of all groups */
} pack_rows;

/* Gate row i of a packed row, if gate and up rows are interleaved, stands in row 16 (i / 8) + i % 8
 * and its up row 8 below. */
HB_DEVICE pack_rows rows_of_panel(const pack_params *p, uint32_t panel)
{
    const uint32_t group = panel / p->panels;
    const uint32_t strip = (panel - group * p->panels) * 4u + warp_index() % 4u;
    const uint32_t half = p->n / 2u;
    const uint32_t lane_row = lane_index() / 4u;
    const uint32_t first = strip * (p->gate_up ? 8u : 16u) + lane_row;
    const uint32_t second = first + (p->gate_up ? half : 8u);
    uint8_t *const plain = p->plain + group * p->group_bytes;
    pack_rows rows;
    rows.row[0] = first < (p->gate_up ? half : p->n) ? plain + first * p->row_bytes : NULL;
    rows.row[1] = rows.row[0] != NULL && second < p->n ? plain + second * p->row_bytes : NULL;
    rows.panel = panel;
    return rows;
}

/* Bits of weights 8 * i .. of a unit of which `count` belong to the row. */
HB_DEVICE uint32_t unit_mask(uint32_t count, uint32_t i)
{
    const uint32_t left = count > 8u * i ? count - 8u * i : 0u;
    return left >= 8u ? 0xffffffffu : (1u << 4u * left) - 1u;
}

/* The first position of this lane's unit of a load (0, 1) of an atom. */
HB_DEVICE uint32_t unit_position(uint32_t atom, uint32_t load)
{
    return atom * ATOM_K + load * (ATOM_K / 2u) + lane_index() % 4u * UNIT_WEIGHTS;
}

/*
 * Weights of a row as two's complement nibbles, zero where the row has none.  A word that is the
 * flag is not read.
 */
HB_DEVICE void unit_load_ragged(const pack_params *p, const uint8_t *row, uint32_t position,
                                uint32_t words[2])
{
    const uint32_t k = position - p->k_offset; /* before the row: larger than any k */
    const uint32_t count = row == NULL || k >= p->k ? 0u : p->k - k;
    const uint8_t *const from = count > 0 ? row + (k >> 1) : NULL;
    const bool is_flag = (const void *)from == (const void *)p->flag;
    uint32_t i;
    words[0] = 0;
    words[1] = 0;
    HB_UNROLL
    for (i = 0; i < 8; i++) {
        if (2 * i < count && (i >= 4 || !is_flag)) {
            words[i / 4] |= (uint32_t)global_load_u8_nc(from + i) << 8 * (i % 4);
        }
    }
    words[0] = is_flag ? 0u : (words[0] ^ p->flip) & unit_mask(count, 0);
    words[1] = (words[1] ^ p->flip) & unit_mask(count, 1);
}

HB_DEVICE void unit_load_whole(const pack_params *p, const uint8_t *row, uint32_t position,
                               uint32_t words[2])
{
    const uint32_t k = position - p->k_offset;
    const uint64_t both = global_load_u64_nc((const uint64_t *)(const void *)(row + (k >> 1)));
    words[0] = (uint32_t)both ^ p->flip;
    words[1] = (uint32_t)(both >> 32) ^ p->flip;
}

/* Is a row's span of so many positions all there, where units can be accessed at once? */
HB_DEVICE bool span_is_whole(const pack_params *p, const pack_rows *rows, uint32_t position,
                             uint32_t length)
{
    return p->is_aligned && rows->row[0] != NULL && rows->row[1] != NULL &&
           position >= p->k_offset && position - p->k_offset + length <= p->k;
}

/* All loads go out before a value is used. */
HB_DEVICE void units_load(const pack_params *p, const pack_rows *rows, uint32_t atom,
                          uint32_t units[PACK_WARP_ATOMS][2][2][2])
{
    const bool holds_flag =
        p->flag != NULL && (const void *)p->flag == (const void *)p->plain && block_index() == 0;
    const bool whole =
        span_is_whole(p, rows, atom * ATOM_K, PACK_WARP_ATOMS * ATOM_K) && !holds_flag;
    uint32_t a, load, i;
    if (whole) {
        HB_UNROLL
        for (a = 0; a < PACK_WARP_ATOMS; a++) {
            HB_UNROLL
            for (load = 0; load < 2; load++) {
                HB_UNROLL
                for (i = 0; i < 2; i++) {
                    unit_load_whole(p, rows->row[i], unit_position(atom + a, load),
                                    units[a][load][i]);
                }
            }
        }
        return;
    }
    HB_UNROLL
    for (a = 0; a < PACK_WARP_ATOMS; a++) {
        HB_UNROLL
        for (load = 0; load < 2; load++) {
            HB_UNROLL
            for (i = 0; i < 2; i++) {
                unit_load_ragged(p, rows->row[i], unit_position(atom + a, load), units[a][load][i]);
            }
        }
    }
}

/* Writes what the row has of a unit; the rest of its last byte or int32 becomes zero. */
HB_DEVICE void unit_store(const pack_params *p, uint8_t *row, uint32_t position, bool whole,
                          const uint32_t words[2])
{
    const uint32_t k = position - p->k_offset;
    const uint32_t count = row == NULL || k >= p->k ? 0u : p->k - k;
    const uint32_t low = (words[0] ^ p->flip) & unit_mask(count, 0);
    const uint32_t high = (words[1] ^ p->flip) & unit_mask(count, 1);
    uint8_t *const to = count > 0 ? row + (k >> 1) : NULL;
    uint32_t i;
    if (whole) {
        global_store_u32x2(to, low, high);
        return;
    }
    HB_UNROLL
    for (i = 0; i < 8; i++) {
        if (count > 0 && (k >> 1) + i < p->used_bytes) {
            global_store_u8(to + i, (uint8_t)((i < 4 ? low : high) >> 8 * (i % 4)));
        }
    }
}

/* Where this thread's 16 bytes of a load of an atom are. */
HB_DEVICE uint8_t *packed_place(const pack_params *p, const pack_rows *rows, uint32_t atom,
                                uint32_t load)
{
    return p->packed + (rows->panel * p->atoms + atom) * PACK_ATOM_BYTES + load * 2048u +
           thread_index() % 128u * 16u;
}

#endif
