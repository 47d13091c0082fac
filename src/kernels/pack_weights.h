/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int4 weights between a checkpoint's layout and the packed one of docs/formats.md.
 *
 *   pack_scan       raises a flag where a weight is -8: which form words take depends on it
 *   pack_weights    rows to atoms         unpack_weights   atoms to rows
 *   pack_in_place   either, where both forms are the same bytes
 *
 * All are bound by memory: a warp loads whole sectors of rows, two atoms side by side with eight
 * loads on their way before the first is used, and stores 512 bytes side by side.
 *
 * IN PLACE.  A panel of 64 rows is permuted within itself, and may be larger than what an SM holds.
 * So a cluster of blocks loads it, each block its own atoms (unpacking: its own 64-row tiles), and
 * keeps it in shared memory, every thread 16 bytes of its own; once all have loaded, all store.
 *
 * PARAMETERS (define before including)
 *   PACK_NAME      name of the kernel: that of the instance file and of its row in pack_kernels.def
 *   PACK_BODY      one of the four names above
 *   PACK_SHARING   blocks on an SM: bounds the registers, so that enough loads are on their way
 */
#include "kernels/hopper/hopper.h"
#include "kernels/pack_weights_params.h"
#include "kernels/pack_weights_tile.h"
#include "kernels/pack_weights_word.h"

#if !defined(PACK_NAME) || !defined(PACK_BODY) || !defined(PACK_SHARING)
#error "define PACK_NAME, PACK_BODY and PACK_SHARING"
#endif

/* Panel and first atom of this warp's part of the tensor. */
HB_DEVICE uint32_t warp_part(const pack_params *p, uint32_t *panel)
{
    const uint32_t chunk = block_index() % p->chunks;
    *panel = block_index() / p->chunks;
    return chunk * PACK_BLOCK_ATOMS + warp_index() / 4u * PACK_WARP_ATOMS;
}

HB_DEVICE bool holds_minus8(uint32_t nibbles)
{
    const uint32_t turned = nibbles ^ 0x88888888u; /* a -8 is zero now */
    return ((turned - NIBBLE_ONES) & ~turned & 0x88888888u) != 0;
}

/* A block that finds the flag up has nothing to add. */
HB_DEVICE void pack_scan(const pack_params *p)
{
    uint32_t units[PACK_WARP_ATOMS][2][2][2];
    uint32_t panel, a, load, i;
    const uint32_t atom = warp_part(p, &panel);
    bool found = false;
    if (atom >= p->atoms || vote_any(global_load_u32_relaxed(p->flag) != 0)) {
        return;
    }
    const pack_rows rows = rows_of_panel(p, panel);
    units_load(p, &rows, atom, units);
    HB_UNROLL
    for (a = 0; a < PACK_WARP_ATOMS; a++) {
        HB_UNROLL
        for (load = 0; load < 2; load++) {
            HB_UNROLL
            for (i = 0; i < 2; i++) {
                found |= holds_minus8(units[a][load][i][0]) || holds_minus8(units[a][load][i][1]);
            }
        }
    }
    if (vote_any(found) && lane_index() == 0) {
        global_raise_u32(p->flag, 1);
    }
}

HB_DEVICE void pack_weights(const pack_params *p)
{
    uint32_t units[PACK_WARP_ATOMS][2][2][2];
    uint32_t words[4];
    uint32_t panel, a, load;
    const uint32_t atom = warp_part(p, &panel);
    const pack_rows rows = rows_of_panel(p, panel);
    units_load(p, &rows, atom, units);
    HB_UNROLL
    for (a = 0; a < PACK_WARP_ATOMS; a++) {
        HB_UNROLL
        for (load = 0; load < 2; load++) {
            words_of_units(units[a][load][0], units[a][load][1], p->holds_minus8 != 0, words);
            words_transpose(words);
            if (atom + a < p->atoms) {
                global_store_u32x4(packed_place(p, &rows, atom + a, load), words[0], words[1],
                                   words[2], words[3]);
            }
        }
    }
}

/* The words of this thread, brought back to the lanes whose units they hold, into the rows. */
HB_DEVICE void words_unpack(const pack_params *p, const pack_rows *rows, uint32_t atom,
                            uint32_t load, bool whole, uint32_t words[4])
{
    uint32_t units[2][2];
    words_transpose(words);
    units_of_words(words, p->holds_minus8 != 0, units[0], units[1]);
    unit_store(p, rows->row[0], unit_position(atom, load), whole, units[0]);
    unit_store(p, rows->row[1], unit_position(atom, load), whole, units[1]);
}

HB_DEVICE void unpack_weights(const pack_params *p)
{
    uint32_t words[PACK_WARP_ATOMS][2][4];
    uint32_t panel, a, load;
    const uint32_t atom = warp_part(p, &panel);
    const pack_rows rows = rows_of_panel(p, panel);
    const bool whole = span_is_whole(p, &rows, atom * ATOM_K, PACK_WARP_ATOMS * ATOM_K);
    HB_UNROLL
    for (a = 0; a < PACK_WARP_ATOMS; a++) {
        HB_UNROLL
        for (load = 0; load < 2; load++) {
            if (atom + a < p->atoms) {
                global_load_u32x4_nc(packed_place(p, &rows, atom + a, load), words[a][load]);
            }
        }
    }
    HB_UNROLL
    for (a = 0; a < PACK_WARP_ATOMS; a++) {
        HB_UNROLL
        for (load = 0; load < 2; load++) {
            if (atom + a < p->atoms) {
                words_unpack(p, &rows, atom + a, load, whole, words[a][load]);
            }
        }
    }
}

/* What this thread has of an atom, as it stands in memory, which other blocks will write. */
HB_DEVICE void own_load(const pack_params *p, const pack_rows *rows, uint32_t atom, uint32_t load,
                        uint32_t words[4])
{
    const uint8_t *from[2];
    uint32_t i;
    if (p->unpacks) {
        from[0] = packed_place(p, rows, atom, load);
        from[1] = from[0] + 8;
    } else {
        from[0] = rows->row[0] + (unit_position(atom, load) >> 1);
        from[1] = rows->row[1] + (unit_position(atom, load) >> 1);
    }
    HB_UNROLL
    for (i = 0; i < 2; i++) {
        const uint64_t both = global_load_u64((const uint64_t *)(const void *)from[i]);
        words[2 * i] = (uint32_t)both;
        words[2 * i + 1] = (uint32_t)(both >> 32);
    }
}

HB_DEVICE void own_store(const pack_params *p, const pack_rows *rows, uint32_t atom, uint32_t load,
                         uint32_t words[4])
{
    uint32_t made[4];
    uint32_t i;
    if (p->unpacks) {
        words_unpack(p, rows, atom, load, true, words);
        return;
    }
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        words[i] ^= p->flip;
    }
    words_of_units(words, words + 2, p->holds_minus8 != 0, made);
    words_transpose(made);
    global_store_u32x4(packed_place(p, rows, atom, load), made[0], made[1], made[2], made[3]);
}

/* Half of the block's warps take the even slots, the other half the odd ones. */
HB_DEVICE void pack_in_place(const pack_params *p)
{
    const pack_rows rows = rows_of_panel(p, block_index() / p->chunks);
    const uint32_t first = block_index() % p->chunks + warp_index() / 4u * p->chunks;
    const uint32_t step = 2u * p->chunks;
    const smem_addr own = smem_base() + thread_index() * 16u;
    uint32_t words[2][2][4];
    uint32_t atom, a, load;
    smem_addr slot = own;
    HB_NO_UNROLL
    for (atom = first; atom < p->atoms; atom += 2u * step, slot += 4 * PACK_ATOM_BYTES) {
        HB_UNROLL
        for (a = 0; a < 2; a++) {
            HB_UNROLL
            for (load = 0; load < 2; load++) {
                if (atom + a * step < p->atoms) {
                    own_load(p, &rows, atom + a * step, load, words[a][load]);
                }
            }
        }
        HB_UNROLL
        for (a = 0; a < 2; a++) {
            HB_UNROLL
            for (load = 0; load < 2; load++) {
                if (atom + a * step < p->atoms) {
                    smem_store_u32x4(slot + (2 * a + load) * PACK_ATOM_BYTES, words[a][load][0],
                                     words[a][load][1], words[a][load][2], words[a][load][3]);
                }
            }
        }
    }
    cluster_sync();
    slot = own;
    HB_NO_UNROLL
    for (atom = first; atom < p->atoms; atom += step, slot += 2 * PACK_ATOM_BYTES) {
        HB_UNROLL
        for (load = 0; load < 2; load++) {
            smem_load_u32x4(slot + load * PACK_ATOM_BYTES, words[0][load]);
            own_store(p, &rows, atom, load, words[0][load]);
        }
    }
}

KERNEL_SHARING(PACK_NAME, pack_params, p, PACK_THREADS, PACK_SHARING)
{
    PACK_BODY(p);
}
