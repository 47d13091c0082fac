/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of D that no group owns.
 */
#ifndef HALFBYTE_MODEL_GEMM_PADDING_H
#define HALFBYTE_MODEL_GEMM_PADDING_H

#include "halfbyte.h"

/* Writes +0 to them, and to nothing else.  Arguments as in gemm_run(). */
void gemm_zero_padding(const halfbyte_problem *problem, const halfbyte_operands *operands);

#endif
