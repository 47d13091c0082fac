/* SPDX-License-Identifier: Apache-2.0 */
#include "model/quantize_reference.h"

#include <math.h>
#include <stdbool.h>

typedef struct number_format {
    int exponent_bits, mantissa_bits;
} number_format;

static number_format format_of(halfbyte_type type)
{
    switch (type) {
    case HALFBYTE_TYPE_BF16: return (number_format){8, 7};
    case HALFBYTE_TYPE_F16: return (number_format){5, 10};
    case HALFBYTE_TYPE_E4M3: return (number_format){4, 3};
    default: return (number_format){8, 23};
    }
}

static int bias_of(number_format f)
{
    return (1 << (f.exponent_bits - 1)) - 1;
}

double reference_decode(halfbyte_type type, uint32_t code)
{
    const number_format f = format_of(type);
    const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
    const int field = (int)(code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
    const int top = (1 << f.exponent_bits) - 1;
    const bool negative = (code >> (f.mantissa_bits + f.exponent_bits) & 1) != 0;
    double magnitude;

    if (type == HALFBYTE_TYPE_E4M3 && field == top && mantissa == 7) {
        return NAN;
    } else if (type != HALFBYTE_TYPE_E4M3 && field == top) {
        magnitude = mantissa == 0 ? (double)INFINITY : (double)NAN;
    } else if (field == 0) {
        magnitude = ldexp(mantissa, 1 - bias_of(f) - f.mantissa_bits);
    } else {
        magnitude = ldexp((double)mantissa + ldexp(1, f.mantissa_bits),
                          field - bias_of(f) - f.mantissa_bits);
    }
    return negative ? -magnitude : magnitude;
}

/* The nearest integer to magnitude >= 0, ties to even. */
static double nearest_integer(double magnitude)
{
    const double below = floor(magnitude), rest = magnitude - below;
    const bool up = rest > 0.5 || (rest == 0.5 && fmod(below, 2) != 0);
    return up ? below + 1 : below;
}

double reference_round(halfbyte_type type, double value)
{
    const number_format f = format_of(type);
    int exponent;

    if (value == 0 || !isfinite(value)) {
        return value;
    }
    frexp(value, &exponent); /* value is in [2^(exponent - 1), 2^exponent) */
    int quantum = exponent - 1 - f.mantissa_bits;
    const int least = 1 - bias_of(f) - f.mantissa_bits;
    quantum = quantum < least ? least : quantum;
    const double rounded = ldexp(nearest_integer(ldexp(fabs(value), -quantum)), quantum);
    const double result = rounded >= ldexp(1, bias_of(f) + 1) ? (double)INFINITY : rounded;
    return value < 0 ? -result : result;
}

uint32_t reference_code(halfbyte_type type, double value)
{
    const number_format f = format_of(type);
    const uint32_t sign = signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
    const double magnitude = fabs(value);
    int exponent;

    if (isinf(value)) {
        return sign | ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    }
    if (magnitude < ldexp(1, 1 - bias_of(f))) {
        return sign | (uint32_t)ldexp(magnitude, bias_of(f) - 1 + f.mantissa_bits);
    }
    const double fraction = frexp(magnitude, &exponent) * 2 - 1;
    return sign | (uint32_t)(exponent - 1 + bias_of(f)) << f.mantissa_bits |
           (uint32_t)ldexp(fraction, f.mantissa_bits);
}

double reference_divide(double x, double y)
{
    return reference_round(HALFBYTE_TYPE_F32, x / y);
}

uint8_t reference_e4m3(double value)
{
    static double numbers[0x7f]; /* tests call from one thread */
    const uint8_t sign = signbit(value) ? 0x80 : 0;
    const double magnitude = fabs(value);

    for (uint32_t code = 0; numbers[0x7e] == 0 && code <= 0x7e; code++) {
        numbers[code] = reference_decode(HALFBYTE_TYPE_E4M3, code);
    }
    if (isnan(value)) {
        return 0x7f;
    }
    for (uint8_t code = 0; code < 0x7e; code++) {
        const double low = numbers[code], high = numbers[code + 1];
        if (magnitude < high) {
            const double to_low = magnitude - low, to_high = high - magnitude;
            const bool up = to_high < to_low || (to_high == to_low && code % 2 != 0);
            return (uint8_t)(sign | (code + up));
        }
    }
    return sign | 0x7e;
}

int reference_int4(double value)
{
    const double magnitude = nearest_integer(fabs(value));
    const int clamped = magnitude > 7 ? 7 : (int)magnitude;
    return value < 0 ? -clamped : clamped;
}

double reference_power_of_two(double value)
{
    double power = ldexp(1, -160);
    while (power < value) {
        power *= 2;
    }
    return power;
}
