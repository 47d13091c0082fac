/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the rows of a grouped product fall to its experts, for measurements and tests: the same
 * numbers on every machine and in bench/gemm_data.py.
 */
#ifndef HALFBYTE_BENCH_EXPERT_LOADS_H
#define HALFBYTE_BENCH_EXPERT_LOADS_H

#include <stdint.h>

enum { EXPERT_LOADS_MOST_TOP = 64 };

/* SplitMix64. */
static inline uint64_t expert_loads_bits(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/*
 * Zipf's law with exponent 1: each token in turn draws `top` different experts, expert e with
 * weight floor(2^32 / (e + 1)); one that the token has already is drawn again.  A draw is a number
 * of the generator, seeded once, modulo the sum of all weights, counted off from expert 0.
 *
 * rows[experts] gets the tokens of each, tokens * top in all.  top <= experts and
 * EXPERT_LOADS_MOST_TOP.
 */
static inline void expert_loads_zipf(int64_t tokens, int64_t top, int64_t experts, uint64_t seed,
                                     int64_t *rows)
{
    const uint64_t scale = UINT64_C(1) << 32;
    uint64_t sum = 0;
    for (int64_t e = 0; e < experts; e++) {
        rows[e] = 0;
        sum += scale / (uint64_t)(e + 1);
    }
    for (int64_t token = 0; token < tokens; token++) {
        int64_t has[EXPERT_LOADS_MOST_TOP], count = 0;
        while (count < top) {
            uint64_t at = expert_loads_bits(&seed) % sum;
            int64_t expert = 0, same = 0;
            while (at >= scale / (uint64_t)(expert + 1)) {
                at -= scale / (uint64_t)(++expert);
            }
            while (same < count && has[same] != expert) {
                same++;
            }
            if (same == count) {
                has[count++] = expert;
                rows[expert]++;
            }
        }
    }
}

#endif
