/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact arithmetic for the oracle: one wide fixed-point integer that holds every product of two
 * numbers of any format here, and every sum of them, without an error.
 *
 * A struct exact is a two's complement integer of 768 bits that counts multiples of 2^-320. The
 * smallest product is 2^-149 * 2^-149 = 2^-298, the largest below 2^256, so that 2^190 terms fit.
 * Nothing below uses the host's floating point, so no mode of it matters.
 */
#ifndef HALFBYTE_TESTS_ORACLE_EXACT_H
#define HALFBYTE_TESTS_ORACLE_EXACT_H

#include "halfbyte.h"

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 exact_u128;

#define EXACT_WORDS 12
#define EXACT_LOWEST (-320) /* the weight of bit 0 is 2^EXACT_LOWEST */

struct exact {
    uint64_t word[EXACT_WORDS]; /* word 0 lowest */
};

#define ORACLE_NAN32 0x7fffffffu
#define ORACLE_INF32 0x7f800000u

enum number_kind { NUMBER_FINITE, NUMBER_INFINITE, NUMBER_NAN };

/* What a code stands for: (-1)^negative * sig * 2^lowest. The exponent of section 2 of numerics.md,
 * not normalised, is lowest + fraction bits of the format. */
struct number {
    enum number_kind kind;
    bool negative;
    uint64_t sig; /* integer, hidden bit included; 0 for a zero */
    int lowest;
    int exponent;
};

/* A code of type f32, bf16, f16, e4m3 or e5m2. */
struct number number_decode(halfbyte_type type, uint32_t code);

/* *x += (-1)^negative * sig * 2^lowest. */
void exact_add(struct exact *x, bool negative, uint64_t sig, int lowest);

/* *x += the product of two finite numbers, each with sig < 2^32. */
void exact_add_product(struct exact *x, const struct number *a, const struct number *b);

bool exact_is_zero(const struct exact *x);

/* Replaces *x by its magnitude; returns whether it was negative. */
bool exact_take_magnitude(struct exact *x);

/* floor(log2(magnitude)) of a nonzero magnitude. */
int exact_exponent(const struct exact *magnitude);

/* Cuts a magnitude to a multiple of 2^lowest. */
void exact_cut(struct exact *magnitude, int lowest);

/* The code of type f32, bf16, f16, e4m3 or e5m2 nearest to the magnitude, ties to even, with the
 * sign given. Overflow: infinity, or the largest finite value for e4m3 and e5m2. */
uint32_t exact_round(halfbyte_type type, bool negative, const struct exact *magnitude);

/* The five operations on fp32 bit patterns and the conversions, section 1 of numerics.md. */
uint32_t oracle_mul(uint32_t x, uint32_t y);
uint32_t oracle_add(uint32_t x, uint32_t y);
uint32_t oracle_fma(uint32_t x, uint32_t y, uint32_t z);
uint32_t oracle_div(uint32_t x, uint32_t y);

/* From fp32, the conversions of section 1 (e5m2 like e4m3: saturating, NaN 0x7f). */
uint32_t oracle_narrow(halfbyte_type type, uint32_t x);

/* To fp32, exact; a NaN becomes 0x7fffffff. */
uint32_t oracle_widen(halfbyte_type type, uint32_t code);

#endif /* HALFBYTE_TESTS_ORACLE_EXACT_H */
