/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the emulator's tests: splitmix64.
 */
#ifndef HALFBYTE_TESTS_EMULATOR_UNIT_DRAW_H
#define HALFBYTE_TESTS_EMULATOR_UNIT_DRAW_H

#include <stdint.h>

static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static inline uint32_t draw_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)((draw(state) >> 32) * limit >> 32);
}

#endif
