/* SPDX-License-Identifier: Apache-2.0 */
#include "random_chains.h"

#include <stdbool.h>
#include <stddef.h>

#include "format/bits.h"
#include "format/fp8.h"
#include "model/tensor_core.h"

/* splitmix64 */
uint64_t random_bits(struct random_source *source)
{
    uint64_t z = source->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

unsigned random_below(struct random_source *source, unsigned count)
{
    return (unsigned)((random_bits(source) >> 32) * count >> 32);
}

static bool chance(struct random_source *source, unsigned percent)
{
    return random_below(source, 100) < percent;
}

/* ---- codes ---- */

typedef uint8_t code_function(struct random_source *source);

static uint8_t finite_code(struct random_source *source)
{
    uint8_t code;
    do
        code = (uint8_t)random_bits(source);
    while ((code & 0x7f) == E4M3_NAN);
    return code;
}

/* About normally distributed: the sum of 12 uniform numbers, with sigma 448 / 4. */
static uint8_t normal_code(struct random_source *source)
{
    float sum = -6.0f;
    for (int i = 0; i < 12; i++)
        sum += (float)random_below(source, 1u << 20) * 0x1p-20f;
    return e4m3_encode(sum * 112.0f);
}

static uint8_t subnormal_code(struct random_source *source)
{
    const uint8_t sign = (uint8_t)(random_bits(source) & 0x80);
    return sign | (uint8_t)random_below(source, chance(source, 80) ? 8 : 24);
}

static uint8_t sprinkled_code(struct random_source *source)
{
    const unsigned percent = random_below(source, 400);
    if (percent == 0)
        return (uint8_t)(random_bits(source) & 0x80) | E4M3_NAN;
    return percent < 40 ? (uint8_t)(random_bits(source) & 0x80) : normal_code(source);
}

static uint8_t positive_code(struct random_source *source)
{
    return finite_code(source) & 0x7f;
}

static uint8_t largest_code(struct random_source *source)
{
    return (uint8_t)(random_bits(source) & 0x80) | (uint8_t)(E4M3_MAX - random_below(source, 6));
}

static uint8_t rare_code(struct random_source *source)
{
    return chance(source, 95) ? (uint8_t)(random_bits(source) & 0x80) : finite_code(source);
}

/* What an int4 weight becomes: sign and a magnitude of 0..8. */
static uint8_t int4_code(struct random_source *source)
{
    return (uint8_t)(random_bits(source) & 0x80) | (uint8_t)random_below(source, 9);
}

static void codes_fill(uint8_t *codes, code_function *code, struct random_source *source)
{
    for (int k = 0; k < CHAIN_MAX_K; k++)
        codes[k] = code(source);
}

/* Exponents from a window of 1 to 15 binades, and a share of zeros, both drawn once. */
static void codes_fill_window(uint8_t *codes, struct random_source *source)
{
    const unsigned width = 1 + random_below(source, 15);
    const unsigned first = random_below(source, 16 - width);
    const unsigned zeros = random_below(source, 96);
    for (int k = 0; k < CHAIN_MAX_K; k++) {
        const unsigned field = first + random_below(source, width);
        const unsigned code = field << 3 | random_below(source, 8);
        codes[k] = (uint8_t)(random_bits(source) & 0x80);
        codes[k] |= (uint8_t)(chance(source, zeros) ? 0 : code);
    }
}

/* ---- accumulators ---- */

typedef uint32_t accumulator_function(struct random_source *source);

static uint32_t zero_accumulator(struct random_source *source)
{
    (void)source;
    return 0;
}

static uint32_t any_accumulator(struct random_source *source)
{
    static const uint32_t special[] = {
        0x00000000, 0x80000000, 0x000003ff, 0x800003ff, 0x00000400, 0x007fffff, 0x00800000,
        0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xff800001, 0x7fffffff,
    };
    if (chance(source, 10))
        return special[random_below(source, sizeof special / sizeof special[0])];
    return (uint32_t)random_bits(source);
}

/* Any sign and mantissa, exponent -24..20: around that of the products. */
static uint32_t near_accumulator(struct random_source *source)
{
    const uint32_t bits = (uint32_t)random_bits(source) & ~FLOAT_BITS_INF;
    return bits | (127 - 24 + random_below(source, 45)) << 23;
}

static uint32_t small_accumulator(struct random_source *source)
{
    const uint32_t bits = (uint32_t)random_bits(source);
    switch (random_below(source, 3)) {
    case 0: return bits & FLOAT_BITS_SIGN;
    case 1: return bits & ~FLOAT_BITS_INF; /* subnormal */
    default: return (bits & ~FLOAT_BITS_INF) | random_below(source, 127) << 23;
    }
}

/* ---- cancellation ---- */

/* In every instruction product k + 16 is minus product k, but for a few of them. */
static void pairs_cancel(struct chain_case *dots, struct random_source *source)
{
    for (int k = 0; k < CHAIN_MAX_K; k++) {
        if (k % 32 < 16)
            continue;
        dots->a[k] = dots->a[k - 16];
        for (int column = 0; column < CHAIN_COLUMNS; column++) {
            if (!chance(source, 5))
                dots->b[column][k] = dots->b[column][k - 16] ^ 0x80;
        }
    }
}

/* C is minus the first dot product, give or take a few of its bits. */
static void accumulators_cancel(struct chain_case *dots, struct random_source *source)
{
    for (int column = 0; column < CHAIN_COLUMNS; column++) {
        uint16_t a[32], b[32];
        for (int k = 0; k < 32; k++) {
            a[k] = dots->a[k];
            b[k] = dots->b[column][k];
        }
        const uint32_t dot = tensor_core_block(TENSOR_CORE_E4M3, a, b, 0);
        const uint32_t step = 1u << random_below(source, 16);
        dots->c[column] = (dot ^ FLOAT_BITS_SIGN) + step * (random_below(source, 5) - 2);
    }
}

/* ---- cases ---- */

enum operand_shape { PLAIN, WINDOWS, PAIRS, CANCEL_C };

struct chain_kind {
    enum operand_shape shape;
    code_function *a, *b;
    accumulator_function *c;
};

const char *const chain_kind_names[] = {
    "uniform, C = 0",  "uniform, C near",     "uniform, C any",  "normal",
    "windows, C near", "windows, C any",      "paired products", "C = -dot",
    "subnormal",       "NaN and zeros",       "positive",        "near the maximum",
    "95 % zeros",      "int4 against normal", "int4, C any",
};

static const struct chain_kind kinds[] = {
    {PLAIN, finite_code, finite_code, zero_accumulator},
    {PLAIN, finite_code, finite_code, near_accumulator},
    {PLAIN, finite_code, finite_code, any_accumulator},
    {PLAIN, normal_code, normal_code, near_accumulator},
    {WINDOWS, NULL, NULL, near_accumulator},
    {WINDOWS, NULL, NULL, any_accumulator},
    {PAIRS, finite_code, finite_code, near_accumulator},
    {CANCEL_C, finite_code, normal_code, zero_accumulator},
    {PLAIN, subnormal_code, subnormal_code, small_accumulator},
    {PLAIN, normal_code, sprinkled_code, any_accumulator},
    {PLAIN, positive_code, positive_code, near_accumulator},
    {PLAIN, largest_code, largest_code, any_accumulator},
    {PLAIN, rare_code, rare_code, any_accumulator},
    {PLAIN, normal_code, int4_code, zero_accumulator},
    {PLAIN, rare_code, int4_code, any_accumulator},
};

const unsigned chain_kinds = sizeof kinds / sizeof kinds[0];

void chain_case_fill(struct chain_case *dots, unsigned kind_index, struct random_source *source)
{
    const struct chain_kind *kind = &kinds[kind_index];

    if (kind->shape == WINDOWS)
        codes_fill_window(dots->a, source);
    else
        codes_fill(dots->a, kind->a, source);
    for (int column = 0; column < CHAIN_COLUMNS; column++) {
        if (kind->shape == WINDOWS)
            codes_fill_window(dots->b[column], source);
        else
            codes_fill(dots->b[column], kind->b, source);
        dots->c[column] = kind->c(source);
    }
    if (kind->shape == PAIRS)
        pairs_cancel(dots, source);
    if (kind->shape == CANCEL_C)
        accumulators_cancel(dots, source);
}
