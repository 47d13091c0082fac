/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/exact.h"

#include <stdlib.h>

struct format {
    int bits, fraction, bias;
    bool infinities; /* else the largest exponent is an ordinary one, all ones is NaN: e4m3 */
    bool saturates;
    uint32_t largest, nan;
};

static const struct format *format_of(halfbyte_type type)
{
    static const struct format f32 = {32, 23, 127, true, false, 0x7f7fffffu, ORACLE_NAN32};
    static const struct format bf16 = {16, 7, 127, true, false, 0x7f7fu, 0x7fffu};
    static const struct format f16 = {16, 10, 15, true, false, 0x7bffu, 0x7fffu};
    static const struct format e4m3 = {8, 3, 7, false, true, 0x7eu, 0x7fu};
    static const struct format e5m2 = {8, 2, 15, true, true, 0x7bu, 0x7fu};
    switch (type) {
    case HALFBYTE_TYPE_F32: return &f32;
    case HALFBYTE_TYPE_BF16: return &bf16;
    case HALFBYTE_TYPE_F16: return &f16;
    case HALFBYTE_TYPE_E4M3: return &e4m3;
    case HALFBYTE_TYPE_E5M2: return &e5m2;
    default: abort(); /* no sign, exponent and fraction */
    }
}

struct number number_decode(halfbyte_type type, uint32_t code)
{
    const struct format *f = format_of(type);
    uint32_t magnitude = code & ((1u << (f->bits - 1)) - 1);
    uint32_t fraction = magnitude & ((1u << f->fraction) - 1);
    int field = (int)(magnitude >> f->fraction);
    struct number x = {NUMBER_FINITE, (code >> (f->bits - 1) & 1) != 0, fraction, 0, 0};

    if (magnitude > f->largest) {
        x.kind = f->infinities && fraction == 0 ? NUMBER_INFINITE : NUMBER_NAN;
        return x;
    }
    if (field > 0)
        x.sig |= 1ull << f->fraction;
    x.exponent = (field > 0 ? field : 1) - f->bias;
    x.lowest = x.exponent - f->fraction;
    return x;
}

/* ---- the wide integer ------------------------------------------------------------------------ */

void exact_add(struct exact *x, bool negative, uint64_t sig, int lowest)
{
    int shift = lowest - EXACT_LOWEST;
    if (shift < 0 || shift >= 64 * (EXACT_WORDS - 2))
        abort();
    int first = shift / 64, bit = shift % 64;
    uint64_t part[2] = {sig << bit, bit ? sig >> (64 - bit) : 0};
    uint64_t carry = 0;
    for (int i = first; i < EXACT_WORDS && (i - first < 2 || carry); i++) {
        uint64_t term = i - first < 2 ? part[i - first] : 0;
        exact_u128 sum = negative ? (exact_u128)x->word[i] - term - carry
                                  : (exact_u128)x->word[i] + term + carry;
        x->word[i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64) & 1;
    }
}

void exact_add_product(struct exact *x, const struct number *a, const struct number *b)
{
    exact_add(x, a->negative != b->negative, a->sig * b->sig, a->lowest + b->lowest);
}

bool exact_is_zero(const struct exact *x)
{
    uint64_t any = 0;
    for (int i = 0; i < EXACT_WORDS; i++)
        any |= x->word[i];
    return any == 0;
}

bool exact_take_magnitude(struct exact *x)
{
    if (!(x->word[EXACT_WORDS - 1] >> 63))
        return false;
    uint64_t carry = 1;
    for (int i = 0; i < EXACT_WORDS; i++) {
        x->word[i] = ~x->word[i] + carry;
        carry = carry && x->word[i] == 0;
    }
    return true;
}

static int highest_bit(const struct exact *magnitude)
{
    for (int bit = 64 * EXACT_WORDS - 1; bit >= 0; bit--) {
        if (magnitude->word[bit / 64] == 0)
            bit -= bit % 64;
        else if (magnitude->word[bit / 64] >> (bit % 64) & 1)
            return bit;
    }
    abort(); /* a zero has none */
}

int exact_exponent(const struct exact *magnitude)
{
    return highest_bit(magnitude) + EXACT_LOWEST;
}

void exact_cut(struct exact *magnitude, int lowest)
{
    int keep_from = lowest - EXACT_LOWEST;
    for (int i = 0; i < EXACT_WORDS; i++) {
        if (64 * (i + 1) <= keep_from)
            magnitude->word[i] = 0;
        else if (64 * i < keep_from)
            magnitude->word[i] &= ~0ull << (keep_from - 64 * i);
    }
}

/* The 64 bits of x from 2^lowest on. */
static uint64_t bits_from(const struct exact *x, int lowest)
{
    int shift = lowest - EXACT_LOWEST, i = shift / 64, bit = shift % 64;
    uint64_t value = x->word[i] >> bit;
    if (bit && i + 1 < EXACT_WORDS)
        value |= x->word[i + 1] << (64 - bit);
    return value;
}

uint32_t exact_round(halfbyte_type type, bool negative, const struct exact *magnitude)
{
    const struct format *f = format_of(type);
    uint32_t sign = negative ? 1u << (f->bits - 1) : 0;
    if (exact_is_zero(magnitude))
        return sign;

    /* The unit in the last place is 2^ulp; kept is the magnitude in units, cut; rest what is cut
     * off, against one half. */
    int smallest = 1 - f->bias;
    int exponent = exact_exponent(magnitude) > smallest ? exact_exponent(magnitude) : smallest;
    int ulp = exponent - f->fraction;
    uint64_t kept = bits_from(magnitude, ulp);
    struct exact below = *magnitude;
    exact_cut(&below, ulp);
    struct exact rest = *magnitude;
    for (int i = 0; i < EXACT_WORDS; i++)
        rest.word[i] &= ~below.word[i];
    struct exact half = {{0}};
    exact_add(&half, false, 1, ulp - 1);
    int against_half = 0;
    for (int i = EXACT_WORDS - 1; i >= 0 && against_half == 0; i--)
        against_half = (rest.word[i] > half.word[i]) - (rest.word[i] < half.word[i]);
    if (against_half > 0 || (against_half == 0 && (kept & 1)))
        kept++;

    /* kept has the hidden bit, which counts the exponent field up by one; so does a carry. */
    uint64_t code = ((uint64_t)(exponent - smallest) << f->fraction) + kept;
    if (code > f->largest)
        code = f->saturates ? f->largest : f->largest + 1;
    return sign | (uint32_t)code;
}

/* ---- fp32 ------------------------------------------------------------------------------------ */

uint32_t oracle_fma(uint32_t x, uint32_t y, uint32_t z)
{
    struct number a = number_decode(HALFBYTE_TYPE_F32, x);
    struct number b = number_decode(HALFBYTE_TYPE_F32, y);
    struct number c = number_decode(HALFBYTE_TYPE_F32, z);
    bool product_negative = a.negative != b.negative;
    bool product_infinite = a.kind == NUMBER_INFINITE || b.kind == NUMBER_INFINITE;
    bool product_zero =
        (a.kind == NUMBER_FINITE && a.sig == 0) || (b.kind == NUMBER_FINITE && b.sig == 0);

    if (a.kind == NUMBER_NAN || b.kind == NUMBER_NAN || c.kind == NUMBER_NAN)
        return ORACLE_NAN32;
    if (product_infinite && product_zero)
        return ORACLE_NAN32;
    if (product_infinite && c.kind == NUMBER_INFINITE && product_negative != c.negative)
        return ORACLE_NAN32;
    if (product_infinite)
        return ORACLE_INF32 | (product_negative ? 0x80000000u : 0);
    if (c.kind == NUMBER_INFINITE)
        return ORACLE_INF32 | (c.negative ? 0x80000000u : 0);

    struct exact sum = {{0}};
    exact_add_product(&sum, &a, &b);
    exact_add(&sum, c.negative, c.sig, c.lowest);
    if (exact_is_zero(&sum)) {
        /* Two zeros of one sign keep it; everything else that gives zero gives +0. */
        bool negative = product_zero && c.sig == 0 && product_negative && c.negative;
        return negative ? 0x80000000u : 0;
    }
    bool negative = exact_take_magnitude(&sum);
    return exact_round(HALFBYTE_TYPE_F32, negative, &sum);
}

uint32_t oracle_mul(uint32_t x, uint32_t y)
{
    /* A zero addend of the product's own sign leaves every product as it is, zeros included. */
    return oracle_fma(x, y, (x ^ y) & 0x80000000u);
}

uint32_t oracle_add(uint32_t x, uint32_t y)
{
    return oracle_fma(x, 0x3f800000u, y);
}

uint32_t oracle_div(uint32_t x, uint32_t y)
{
    struct number a = number_decode(HALFBYTE_TYPE_F32, x);
    struct number b = number_decode(HALFBYTE_TYPE_F32, y);
    uint32_t sign = (x ^ y) & 0x80000000u;
    bool a_zero = a.kind == NUMBER_FINITE && a.sig == 0;
    bool b_zero = b.kind == NUMBER_FINITE && b.sig == 0;

    if (a.kind == NUMBER_NAN || b.kind == NUMBER_NAN || (a_zero && b_zero) ||
        (a.kind == NUMBER_INFINITE && b.kind == NUMBER_INFINITE))
        return ORACLE_NAN32;
    if (a.kind == NUMBER_INFINITE || b_zero)
        return sign | ORACLE_INF32;
    if (b.kind == NUMBER_INFINITE || a_zero)
        return sign;

    /* sig_a * 2^64 / sig_b has 40 bits at least; a remainder, however small, stands below them as
     * one more bit, so that it is never taken for a tie. */
    exact_u128 wide = (exact_u128)a.sig << 64;
    exact_u128 quotient = wide / b.sig;
    bool remainder = wide % b.sig != 0;
    int lowest = a.lowest - b.lowest - 64;
    struct exact q = {{0}};
    exact_add(&q, false, (uint64_t)quotient, lowest);
    exact_add(&q, false, (uint64_t)(quotient >> 64), lowest + 64);
    exact_add(&q, false, remainder, lowest - 1);
    return exact_round(HALFBYTE_TYPE_F32, sign != 0, &q);
}

uint32_t oracle_narrow(halfbyte_type type, uint32_t x)
{
    const struct format *f = format_of(type);
    struct number a = number_decode(HALFBYTE_TYPE_F32, x);
    if (a.kind == NUMBER_NAN)
        return f->nan;
    if (a.kind == NUMBER_INFINITE)
        return (a.negative ? 1u << (f->bits - 1) : 0) |
               (f->saturates ? f->largest : f->largest + 1);
    struct exact magnitude = {{0}};
    exact_add(&magnitude, false, a.sig, a.lowest);
    return exact_round(type, a.negative, &magnitude);
}

uint32_t oracle_widen(halfbyte_type type, uint32_t code)
{
    struct number a = number_decode(type, code);
    if (a.kind == NUMBER_NAN)
        return ORACLE_NAN32;
    if (a.kind == NUMBER_INFINITE)
        return ORACLE_INF32 | (a.negative ? 0x80000000u : 0);
    struct exact magnitude = {{0}};
    exact_add(&magnitude, false, a.sig, a.lowest);
    return exact_round(HALFBYTE_TYPE_F32, a.negative, &magnitude);
}
