/* SPDX-License-Identifier: Apache-2.0 */
/* What a run may be given: pointers, strides and group arrays, checked without reading tensors. */
#ifndef HALFBYTE_API_OPERANDS_H
#define HALFBYTE_API_OPERANDS_H

#include "api/tensor.h"
#include "halfbyte.h"

/*
 * Checks every operand that a run of `problem` (resolved) reads or writes, for m > 0 and n > 0.
 * Once it has passed, no offset into a tensor overflows int64_t, in elements or in bytes.
 * ERR_INVALID_ARGUMENT, ERR_MISALIGNED; ERR_UNSUPPORTED for packed weights of another version.
 */
halfbyte_status operands_check(const halfbyte_problem *problem, const halfbyte_operands *operands);

/* m in [0, m_max]. */
halfbyte_status operands_m_check(const halfbyte_problem *problem,
                                 const halfbyte_operands *operands);

/*
 * Which arrays operands.groups has, their strides and alignment; not their values.
 * d: what the run writes, apart from which they must lie; NULL if nothing is written.
 */
halfbyte_status groups_check(const halfbyte_problem *problem, const halfbyte_operands *operands,
                             const tensor *d);

#endif
