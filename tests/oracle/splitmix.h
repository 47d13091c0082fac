/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of the oracle's tests: splitmix64, the same on every machine. */
#ifndef HALFBYTE_TESTS_ORACLE_SPLITMIX_H
#define HALFBYTE_TESTS_ORACLE_SPLITMIX_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_bits(struct random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* Uniform in [0, count), count > 0. */
static inline int64_t random_below(struct random *r, int64_t count)
{
    return (int64_t)(random_bits(r) % (uint64_t)count);
}

/* Uniform in [low, high], both ends included. */
static inline int64_t random_between(struct random *r, int64_t low, int64_t high)
{
    return low + random_below(r, high - low + 1);
}

static inline bool random_percent(struct random *r, int percent)
{
    return random_below(r, 100) < percent;
}

#endif /* HALFBYTE_TESTS_ORACLE_SPLITMIX_H */
