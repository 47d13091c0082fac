/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of packed int4 weights, and the way from rows to them, in the registers of a warp.
 *
 * A thread of an atom wants eight weights a word: four along k of row g and four of row g + 8
 * (docs/formats.md).  It loads 16 neighbouring weights of each of the two rows instead, a unit,
 * which make four words: one of its own and one for each of the three lanes beside it.  So lanes
 * make the words of what they have loaded, and every four lanes transpose their 4 x 4 words.  The
 * way back is the same transposition first.
 */
#ifndef HALFBYTE_KERNELS_PACK_WEIGHTS_WORD_H
#define HALFBYTE_KERNELS_PACK_WEIGHTS_WORD_H

#include "kernels/hopper/hopper.h"

#define LOW_NIBBLES 0x0f0f0f0fu
#define NIBBLE_ONES 0x11111111u

/*
 * Eight weights, those of the two rows in turn: nibble 2b is number b of the first row, 2b + 1 of
 * the second.  In the packed word the magnitude of nibble i takes the lower three bits of its
 * place, and its sign is the upper bit of the next one's.
 */
HB_DEVICE uint32_t word_encode(uint32_t nibbles, bool f3)
{
    const uint32_t negative = nibbles >> 3 & NIBBLE_ONES;
    const uint32_t magnitudes = (nibbles ^ negative * 15u) + (f3 ? 0u : negative);
    return magnitudes | bits_turn_right(negative, 25);
}

/* A sign without magnitude, which SM7 words do not have, counts as zero. */
HB_DEVICE uint32_t word_decode(uint32_t word, bool f3)
{
    const uint32_t magnitudes = word & 0x77777777u;
    const uint32_t signs = bits_turn_right(word & 0x88888888u, 7);
    const uint32_t not_zero = (magnitudes + 0x77777777u) >> 3 & NIBBLE_ONES;
    const uint32_t negative = f3 ? signs : signs & not_zero;
    return (magnitudes ^ negative * 15u) + (f3 ? 0u : negative);
}

/* Units of two rows to four words, and back. */
HB_DEVICE void words_of_units(const uint32_t first[2], const uint32_t second[2], bool f3,
                              uint32_t words[4])
{
    int i;
    HB_UNROLL
    for (i = 0; i < 2; i++) {
        const uint32_t even = bits_select(LOW_NIBBLES, first[i], second[i] << 4);
        const uint32_t odd = bits_select(LOW_NIBBLES, first[i] >> 4, second[i]);
        words[2 * i] = word_encode(bytes_pick(even, odd, 0x5140u), f3);
        words[2 * i + 1] = word_encode(bytes_pick(even, odd, 0x7362u), f3);
    }
}

HB_DEVICE void units_of_words(const uint32_t words[4], bool f3, uint32_t first[2],
                              uint32_t second[2])
{
    int i;
    HB_UNROLL
    for (i = 0; i < 2; i++) {
        const uint32_t low = word_decode(words[2 * i], f3);
        const uint32_t high = word_decode(words[2 * i + 1], f3);
        const uint32_t even = bytes_pick(low, high, 0x6420u);
        const uint32_t odd = bytes_pick(low, high, 0x7531u);
        first[i] = bits_select(LOW_NIBBLES, even, odd << 4);
        second[i] = bits_select(LOW_NIBBLES, even >> 4, odd);
    }
}

/* With the lane at this distance: its *x becomes the lower lane's *y, and the other way round. */
HB_DEVICE void words_exchange(uint32_t *x, uint32_t *y, uint32_t distance)
{
    const bool upper = (lane_index() & distance) != 0;
    const uint32_t got = shuffle_xor_u32(upper ? *x : *y, distance);
    *x = upper ? got : *x;
    *y = upper ? *y : got;
}

/* Word i of lane c of every four lanes becomes word c of lane i. */
HB_DEVICE void words_transpose(uint32_t words[4])
{
    words_exchange(&words[0], &words[1], 1);
    words_exchange(&words[2], &words[3], 1);
    words_exchange(&words[0], &words[2], 2);
    words_exchange(&words[1], &words[3], 2);
}

#endif
