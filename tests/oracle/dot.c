/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/dot.h"
#include "oracle/exact.h"

#include <stdbool.h>

#define MAX_LENGTH 32

/* A product or c: (-1)^negative * sig * 2^lowest, of the exponent that counts for alignment. */
struct term {
    bool negative;
    uint64_t sig;
    int lowest, exponent;
};

struct specials {
    bool nan, plus_infinity, minus_infinity;
};

int oracle_dot_length(halfbyte_type type)
{
    return type == HALFBYTE_TYPE_E4M3 || type == HALFBYTE_TYPE_E5M2 ? 32 : 16;
}

/* Decoding is slow and there are few codes of 8 bits: e4m3 ones are kept. */
static struct number decode(halfbyte_type type, uint16_t code)
{
    static struct number table[256];
    static bool filled;
    if (type != HALFBYTE_TYPE_E4M3)
        return number_decode(type, code);
    for (uint32_t i = 0; i < 256 && !filled; i++)
        table[i] = number_decode(type, i);
    filled = true;
    return table[code];
}

static struct term term_product(const struct number *x, const struct number *y,
                                struct specials *specials)
{
    bool negative = x->negative != y->negative;
    bool zero =
        (x->kind == NUMBER_FINITE && x->sig == 0) || (y->kind == NUMBER_FINITE && y->sig == 0);
    if (x->kind == NUMBER_NAN || y->kind == NUMBER_NAN) {
        specials->nan = true;
    } else if (x->kind == NUMBER_INFINITE || y->kind == NUMBER_INFINITE) {
        if (zero)
            specials->nan = true;
        else if (negative)
            specials->minus_infinity = true;
        else
            specials->plus_infinity = true;
    }
    return (struct term){negative, x->sig * y->sig, x->lowest + y->lowest,
                         x->exponent + y->exponent};
}

/* Cuts the term's magnitude toward zero to a multiple of 2^lowest and adds it. */
static void add_cut(struct exact *sum, const struct term *term, int lowest)
{
    int drop = lowest - term->lowest;
    if (drop <= 0)
        exact_add(sum, term->negative, term->sig, term->lowest);
    else if (drop < 64)
        exact_add(sum, term->negative, term->sig >> drop, lowest);
}

uint32_t oracle_dot(halfbyte_type type, const uint16_t *a, const uint16_t *b, uint32_t c)
{
    bool fp8 = type == HALFBYTE_TYPE_E4M3 || type == HALFBYTE_TYPE_E5M2;
    int length = oracle_dot_length(type), aligned_bits = fp8 ? 13 : 25, out_bits = fp8 ? 13 : 23;

    /* Steps 1 to 3: the terms, c last. */
    struct term term[MAX_LENGTH + 1];
    struct specials specials = {false, false, false};
    for (int i = 0; i < length; i++) {
        struct number x = decode(type, a[i]), y = decode(type, b[i]);
        term[i] = term_product(&x, &y, &specials);
    }
    struct number c_number = number_decode(HALFBYTE_TYPE_F32, c);
    struct number one = number_decode(HALFBYTE_TYPE_F32, 0x3f800000u);
    term_product(&c_number, &one, &specials);
    term[length] =
        (struct term){c_number.negative, c_number.sig, c_number.lowest, c_number.exponent};
    if (specials.nan || (specials.plus_infinity && specials.minus_infinity))
        return ORACLE_NAN32;
    if (specials.plus_infinity || specials.minus_infinity)
        return ORACLE_INF32 | (specials.minus_infinity ? 0x80000000u : 0);

    /* Step 4. */
    bool any = false;
    int emax = 0;
    for (int i = 0; i <= length; i++) {
        if (term[i].sig != 0 && (!any || term[i].exponent > emax)) {
            emax = term[i].exponent;
            any = true;
        }
    }
    if (!any)
        return 0;
    if (!fp8 && emax < -133)
        emax = -133;

    /* Steps 5 and 6. */
    struct exact sum = {{0}};
    for (int i = 0; i <= length; i++)
        add_cut(&sum, &term[i], emax - aligned_bits);

    /* Step 7. Cut to what fp32 holds, so that rounding to it afterwards changes nothing. */
    if (exact_is_zero(&sum))
        return 0;
    bool negative = exact_take_magnitude(&sum);
    int exponent = exact_exponent(&sum);
    exact_cut(&sum, (exponent > -126 ? exponent : -126) - out_bits);
    return exact_round(HALFBYTE_TYPE_F32, negative && !exact_is_zero(&sum), &sum);
}
