/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed int4 weights (docs/formats.md, version 1) from shared memory to the A fragments of wgmma.
 *
 * An atom is 64 rows x 128 k: [2 loads][128 threads][4 words], so two 16-byte loads give a thread
 * the 64 weights of its 16 fragment registers, four a k32 step.  A word holds eight weights of two
 * registers; what comes out are e4m3 bytes sign << 7 | magnitude, worth value * 2^-9.
 *
 * Operations a word: SM7 (tensors without -8) 3, F3 (any tensor) 6.
 */
#ifndef HALFBYTE_KERNELS_TILE_INT4_ATOM_H
#define HALFBYTE_KERNELS_TILE_INT4_ATOM_H

#include "kernels/hopper/hopper.h"

#define ATOM_BYTES 4096u
#define ATOM_ROWS 64
#define ATOM_REGISTERS 16 /* of a thread */

HB_DEVICE void decode_sm7(uint32_t word, uint32_t *reg)
{
    reg[0] = word & 0x87878787u;
    reg[1] = bits_turn_right(word, 4) & 0x87878787u;
}

/* A negative weight's magnitude is stored less one.  The sign bits, rotated right by 7, stand on
 * bit 0 of their own magnitudes, so one addition completes all eight. */
HB_DEVICE void decode_f3(uint32_t word, uint32_t *reg)
{
    const uint32_t signs = word & 0x88888888u;
    const uint32_t magnitudes = (word & 0x77777777u) + bits_turn_right(signs, 7);
    reg[0] = bits_select(0x0f0f0f0fu, magnitudes, signs);
    reg[1] = bits_turn_right(bits_select(0xf0f0f0f0u, magnitudes, signs), 4);
}

/* The thread's words of the atom at shared address `atom`; `thread`: of the warpgroup. */
HB_DEVICE void atom_load(smem_addr atom, uint32_t thread, uint32_t words[8])
{
    smem_load_u32x4(atom + thread * 16u, words);
    smem_load_u32x4(atom + 2048u + thread * 16u, words + 4);
}

/* Words `first` to first + count - 1 of those as fragments: registers 4s .. 4s + 3 of `a` are those
 * of k32 step s. */
HB_DEVICE void atom_decode_part(const uint32_t *words, int first, int count, bool f3, uint32_t *a)
{
    int i;
    HB_UNROLL
    for (i = 0; i < count; i++) {
        if (f3) {
            decode_f3(words[i], a + 2 * (first + i));
        } else {
            decode_sm7(words[i], a + 2 * (first + i));
        }
    }
}

/* All of them. */
HB_DEVICE void atom_decode(const uint32_t words[8], bool f3, uint32_t *a)
{
    atom_decode_part(words, 0, 8, f3, a);
}

#endif
