/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_REFERENCE_H
#define HALFBYTE_CLI_REFERENCE_H

/*
 * The product of an instance in fp64, from its quantised operands and scales, and how far the exact
 * arithmetic may be from it: the bound of docs/numerics.md section 9, element by element. Shares no
 * code with the library but the decoding of single numbers.
 */

#include "instance.h"

typedef struct reference {
    const instance *of;
    float *a, *b;               /* [owned_rows, k], [groups, n, k]; int4 as value / 512 */
    float *a_weight, *b_weight; /* powers of two of the unnormalised exponents, 0 for zero */
    float *a_scale, *b_scale;   /* widened, laid out as in the instance */
} reference;

/* Finite operands only. Prints what fails; release with reference_free in every case. */
int reference_create(reference *made, const instance *of);
void reference_free(reference *made);

/* Element (owned row, column): its exact value and the largest distance from it allowed. */
void reference_element(const reference *from, int64_t row, int64_t column, double *value,
                       double *bound);

#endif
