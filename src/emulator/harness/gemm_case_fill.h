/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a case: the inner half of gemm_case_make(). */
#ifndef HALFBYTE_EMULATOR_HARNESS_GEMM_CASE_FILL_H
#define HALFBYTE_EMULATOR_HARNESS_GEMM_CASE_FILL_H

#include "emulator/harness/gemm_case.h"

enum { GEMM_CASE_POISON = 0xa5 };

uint64_t gemm_case_random(uint64_t *state);

/* The int4 weights of the problem before they are packed: rows without gaps. */
halfbyte_int4_desc gemm_case_weights(const halfbyte_problem *problem);

/* Poisons the arena, then fills the inputs, and D where it is C.  False: memory is out, or the
 * library refuses the weights. */
bool gemm_case_fill(gemm_case *made, uint64_t draw, uint64_t *state);

#endif
