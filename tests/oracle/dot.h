/* SPDX-License-Identifier: Apache-2.0 */
/* The tensor core's dot product, section 2 of numerics.md, with exact integers. */
#ifndef HALFBYTE_TESTS_ORACLE_DOT_H
#define HALFBYTE_TESTS_ORACLE_DOT_H

#include "halfbyte.h"

#include <stdint.h>

/* Products of one instruction: 32 for e4m3 and e5m2, 16 for bf16 and f16. */
int oracle_dot_length(halfbyte_type type);

/* d = dot(a, b) + c; a and b hold a code of type in each element, c and d are fp32 bit patterns. */
uint32_t oracle_dot(halfbyte_type type, const uint16_t *a, const uint16_t *b, uint32_t c);

#endif /* HALFBYTE_TESTS_ORACLE_DOT_H */
