/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real number that the operands of one output stand for, in fp64, and how far D may be from it:
 * section 9 of docs/numerics.md. Reads the operands through operand.h, computes with none of the
 * oracle's arithmetic.
 */
#ifndef HALFBYTE_TESTS_ORACLE_BOUND_H
#define HALFBYTE_TESTS_ORACLE_BOUND_H

#include "halfbyte.h"

#include <stdbool.h>
#include <stdint.h>

struct bounded {
    bool applies; /* all operands are finite and nothing can overflow; else no bound is claimed */
    double value;
    double bound; /* |D - value| <= bound; includes what fp64 itself may lose */
};

struct bounded bound_element(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                             int64_t row, int64_t column);

/* The value of a finite code of type f32, bf16, f16, e4m3 or e5m2. */
double bound_code_value(halfbyte_type type, uint32_t code);

/* Whether D, a code of d_type, keeps the bound; a NaN does not. */
bool bound_holds(const struct bounded *b, halfbyte_type d_type, uint32_t code);

#endif /* HALFBYTE_TESTS_ORACLE_BOUND_H */
