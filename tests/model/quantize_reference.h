/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantisers' formulas once more, slow and in double: every rounding is written out as the
 * choice between two neighbours.  Shares no code with the library.
 *
 * A double holds every fp32 value, and the quotient of two of them, rounded to double, still lies
 * on the same side of every fp32 tie (53 >= 2 * 24 + 2), so rounding it again gives the fp32
 * quotient.
 */
#ifndef HALFBYTE_TESTS_MODEL_QUANTIZE_REFERENCE_H
#define HALFBYTE_TESTS_MODEL_QUANTIZE_REFERENCE_H

#include <stdint.h>

#include "halfbyte.h"

/* The value of a code of f32, bf16, f16 or e4m3. */
double reference_decode(halfbyte_type type, uint32_t code);

/* value to the nearest number of f32, bf16 or f16, ties to even; infinite beyond the largest. */
double reference_round(halfbyte_type type, double value);

/* The code of a number that the type has; -0 is kept. */
uint32_t reference_code(halfbyte_type type, double value);

/* x / y as fp32 gives it. */
double reference_divide(double x, double y);

/* The nearest e4m3 code, ties to the even one; saturates; NaN gives 0x7f. */
uint8_t reference_e4m3(double value);

/* The nearest integer, ties to even, clamped to -7..7. */
int reference_int4(double value);

/* The smallest power of two that is not below value > 0. */
double reference_power_of_two(double value);

#endif
