/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_RANDOM_H
#define HALFBYTE_CLI_RANDOM_H

/*
 * Random numbers by position: element `index` of stream `stream` under `seed` is a function of the
 * three alone, the same on every machine and in every order. SplitMix64's mixing function, twice.
 */

#include <stdint.h>

/* One stream a tensor, so that no two share their numbers. */
typedef enum random_stream {
    RANDOM_A = 1,
    RANDOM_A_SCALE,
    RANDOM_B,
    RANDOM_B_SCALE,
    RANDOM_CHANNEL_SCALE,
    RANDOM_BIAS,
    RANDOM_C,
    RANDOM_SHAPE
} random_stream;

static inline uint64_t random_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t random_bits(uint64_t seed, random_stream stream, uint64_t index)
{
    uint64_t start = random_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)stream);
    return random_mix(start + UINT64_C(0x9e3779b97f4a7c15) * (index + 1));
}

/* Nearly normal, mean 0, variance 1, largest magnitude 2 * sqrt(3): four uniform numbers added. */
static inline float random_normal(uint64_t bits)
{
    int32_t sum = (int32_t)(bits & 0xffff) + (int32_t)(bits >> 16 & 0xffff) +
                  (int32_t)(bits >> 32 & 0xffff) + (int32_t)(bits >> 48) - 131070;
    return (float)sum * (1.7320508f / 65536.0f);
}

#endif
