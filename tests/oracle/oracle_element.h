/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second implementation of docs/numerics.md: one output at a time, slow and obvious, with nothing
 * in common with src/ but the public header.
 */
#ifndef HALFBYTE_TESTS_ORACLE_ORACLE_ELEMENT_H
#define HALFBYTE_TESTS_ORACLE_ORACLE_ELEMENT_H

#include "halfbyte.h"

#include <stdint.h>

/* The code, of type d_type, of D[row, column] of group, as if the group owned the row. */
uint32_t oracle_element(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                        int64_t row, int64_t column);

/* Blocks [first, end) of running sum i of k_splits, section 5 of numerics.md. */
void oracle_split_range(const halfbyte_problem *p, int64_t i, int64_t *first, int64_t *end);

#endif /* HALFBYTE_TESTS_ORACLE_ORACLE_ELEMENT_H */
