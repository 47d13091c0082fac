/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/bound.h"
#include "oracle/exact.h"
#include "oracle/operand.h"
#include "oracle/oracle_element.h"

#include <math.h>

#define STEP 32
#define CUT 0x1p-13 /* one unit in the last of 13 fraction bits */
#define FP64_SLACK 0x1p-20

/* A number known by its real value and how far the computed one may be from it. */
struct near {
    double value, error;
    bool applies;
};

/* pi(x) of section 9: the power of two at or below x, 0 for 0. The argument may be short by a
 * rounding of fp64, which must not cost a binade. */
static double binade(double x)
{
    int exponent;
    if (x == 0)
        return 0;
    frexp(x * (1 + 0x1p-50), &exponent);
    return ldexp(1, exponent - 1);
}

/* rho(x) of section 9: half a unit in the last place of a result of at most magnitude x. */
static double half_unit(halfbyte_type type, double x)
{
    int fraction = type == HALFBYTE_TYPE_F32 ? 23 : type == HALFBYTE_TYPE_F16 ? 10 : 7;
    double smallest = type == HALFBYTE_TYPE_F16 ? 0x1p-14 : 0x1p-126;
    if (x == 0)
        return 0;
    return ldexp(fmax(binade(x), smallest), -fraction - 1);
}

static void round_once(struct near *x, halfbyte_type type)
{
    double limit = type == HALFBYTE_TYPE_F16 ? 65504.0 : 0x1.fep127;
    double largest = fabs(x->value) + x->error;
    x->error += half_unit(type, largest);
    x->applies &= largest < limit; /* false for NaN too */
}

double bound_code_value(halfbyte_type type, uint32_t code)
{
    struct number x = number_decode(type, code);
    if (x.kind != NUMBER_FINITE)
        return NAN;
    double magnitude = ldexp((double)x.sig, x.lowest);
    return x.negative ? -magnitude : magnitude;
}

static double fp32_value(uint32_t bits)
{
    return bound_code_value(HALFBYTE_TYPE_F32, bits);
}

/* ---- one block ------------------------------------------------------------------------------- */

/* The value of an e4m3 code and w() of section 9; kept, because there are only 256. */
struct e4m3 {
    double value, width;
};

static const struct e4m3 *e4m3_of(uint8_t code)
{
    static struct e4m3 table[256];
    static bool filled;
    for (uint32_t i = 0; i < 256 && !filled; i++) {
        table[i].value = bound_code_value(HALFBYTE_TYPE_E4M3, i);
        table[i].width = binade(fmax(fabs(table[i].value), 0x1p-6));
    }
    filled = true;
    return &table[code];
}

struct block_sum {
    double t, error; /* exact sum so far and the error of the computed one */
    double reach;    /* P: sum of the magnitudes of all products so far */
    uint64_t bits;   /* their bits; G, the largest power of two that divides all, is grid_of() */
    bool finite;
};

/* What a multiple of grid can lose when it is cut to a multiple of unit. */
static double cut_loss(double unit, double grid)
{
    return fmax(0, unit - grid);
}

/* Products are multiples of 2^-18 below 2^18: a bit for each binade in which one has a bit. */
static uint64_t bits_of(double product)
{
    return (uint64_t)(fabs(product) * 0x1p18);
}

/* The largest power of two that divides all numbers of which these are the bits; 0 for none. */
static double grid_of(uint64_t bits)
{
    return ldexp((double)(bits & (~bits + 1)), -18);
}

/* x mod a power of two, x >= 0.  Exact, since x is below 2^18 and the power at least 2^-25; what
 * fmod would take is most of the time of all. */
static double remainder_of(double x, double unit, double per_unit)
{
    return x - (double)(int64_t)(x * per_unit) * unit;
}

/* One instruction over the products of [k, end). */
static void instruction(struct block_sum *s, const halfbyte_problem *p, const halfbyte_operands *o,
                        const int64_t at[3], int64_t k, int64_t end)
{
    double product[STEP] = {0}, widest = 0;
    for (int64_t i = 0; k + i < end; i++) {
        const struct e4m3 *a = e4m3_of(oracle_a(p, o, at[0], at[1], k + i));
        const struct e4m3 *b = e4m3_of(oracle_b(p, o, at[0], at[2], k + i));
        product[i] = a->value * b->value;
        if (product[i] != product[i]) {
            s->finite = false;
            return;
        }
        if (product[i] != 0)
            widest = fmax(widest, a->width * b->width);
    }
    if (widest == 0)
        return;

    double carried = fmin(s->reach, fabs(s->t) + s->error);
    double unit = CUT * fmax(widest, binade(carried));
    double per_unit = 1 / unit;
    double lost = fmin(carried, cut_loss(CUT * widest, grid_of(s->bits)));
    for (int i = 0; i < STEP; i++) {
        lost += remainder_of(fabs(product[i]), unit, per_unit);
        s->t += product[i];
        s->reach += fabs(product[i]);
        s->bits |= bits_of(product[i]);
    }
    s->error += lost;
    s->error += cut_loss(CUT * binade(fabs(s->t) + s->error), grid_of(s->bits));
}

static struct near block_partial(const halfbyte_problem *p, const halfbyte_operands *o,
                                 const int64_t at[3], int64_t b)
{
    int64_t start, end;
    oracle_block_range(p, b, &start, &end);
    struct block_sum s = {0, 0, 0, 0, true};
    for (int64_t k = start; k < end; k += STEP)
        instruction(&s, p, o, at, k, k + STEP < end ? k + STEP : end);
    return (struct near){s.t, s.error, s.finite};
}

static struct near block_scale(const halfbyte_problem *p, const halfbyte_operands *o,
                               const int64_t at[3], int64_t b)
{
    halfbyte_scale_mode mode = p->b_scale.mode;
    bool a_varies = p->a_scale.mode == HALFBYTE_SCALE_1X128;
    bool b_varies = mode == HALFBYTE_SCALE_1X128 || mode == HALFBYTE_SCALE_128X128 ||
                    mode == HALFBYTE_SCALE_K_GROUP;
    double factor = p->family == HALFBYTE_FAMILY_W4A8 ? 512 : 1;
    struct near s = {1, 0, true};
    if (a_varies)
        s.value *= fp32_value(oracle_a_block_scale(p, o, at[0], at[1], b));
    if (b_varies)
        s.value *= fp32_value(oracle_b_block_scale(p, o, at[0], at[2], b));
    if (a_varies && b_varies)
        round_once(&s, HALFBYTE_TYPE_F32);
    s.value *= factor;
    s.error *= factor;
    s.applies &= fabs(s.value) + s.error < 0x1.fep127;
    return s;
}

/* ---- all blocks and the epilogue ------------------------------------------------------------- */

static struct near running_sum(const halfbyte_problem *p, const halfbyte_operands *o,
                               const int64_t at[3], int64_t first, int64_t end)
{
    struct near acc = {0, 0, true};
    for (int64_t b = first; b < end; b++) {
        struct near t = block_partial(p, o, at, b), s = block_scale(p, o, at, b);
        acc.value += t.value * s.value;
        acc.error += fabs(s.value) * t.error + (fabs(t.value) + t.error) * s.error;
        acc.applies &= t.applies && s.applies;
        round_once(&acc, HALFBYTE_TYPE_F32);
    }
    return acc;
}

static void multiply(struct near *x, uint32_t factor)
{
    double y = fp32_value(factor);
    x->value *= y;
    x->error *= fabs(y);
    round_once(x, HALFBYTE_TYPE_F32);
}

static void add(struct near *x, double term)
{
    x->value += term;
    round_once(x, HALFBYTE_TYPE_F32);
}

static bool is_outer(halfbyte_scale_mode mode)
{
    return mode == HALFBYTE_SCALE_TENSOR || mode == HALFBYTE_SCALE_OUTER;
}

static void epilogue(struct near *x, const halfbyte_problem *p, const halfbyte_operands *o,
                     const int64_t at[3])
{
    if (is_outer(p->a_scale.mode))
        multiply(x, oracle_a_outer_scale(p, o, at[0], at[1]));
    if (is_outer(p->b_scale.mode))
        multiply(x, oracle_b_outer_scale(p, o, at[0], at[2]));
    if (p->channel_scale_type != HALFBYTE_TYPE_NONE)
        multiply(x, oracle_vector(&o->channel_scale, p->channel_scale_type, at[0], at[2]));
    if (p->alpha_mode != HALFBYTE_ALPHA_NONE) {
        bool host = p->alpha_mode == HALFBYTE_ALPHA_HOST;
        multiply(x, oracle_load(host ? &o->alpha : o->alpha_pointer, HALFBYTE_TYPE_F32, 0));
    }
    if (p->c_type != HALFBYTE_TYPE_NONE && o->beta != 0)
        add(x, (double)o->beta * fp32_value(oracle_c(p, o, at[0], at[1], at[2])));
    if (p->bias_type != HALFBYTE_TYPE_NONE)
        add(x, fp32_value(oracle_vector(&o->bias, p->bias_type, at[0], at[2])));
    if (p->d_type != HALFBYTE_TYPE_F32)
        round_once(x, p->d_type);
}

struct bounded bound_element(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                             int64_t row, int64_t column)
{
    const int64_t at[3] = {group, row, column};
    struct near x = {0, 0, true};
    for (int64_t i = 0; i < (p->k_splits > 1 ? p->k_splits : 1); i++) {
        int64_t first, end;
        oracle_split_range(p, i, &first, &end);
        struct near part = running_sum(p, o, at, first, end);
        x.value += part.value;
        x.error += part.error;
        x.applies &= part.applies;
        if (i > 0)
            round_once(&x, HALFBYTE_TYPE_F32);
    }
    epilogue(&x, p, o, at);
    return (struct bounded){x.applies, x.value, x.error * (1 + FP64_SLACK)};
}

bool bound_holds(const struct bounded *b, halfbyte_type d_type, uint32_t code)
{
    return fabs(bound_code_value(d_type, code) - b->value) <= b->bound;
}
