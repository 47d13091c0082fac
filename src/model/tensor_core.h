/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dot product of Hopper's tensor core (wgmma on sm_90a, fp32 accumulator), bit for bit.
 *
 * One instruction computes every output independently: the sum of its K products and of the
 * accumulator as one fused block.  A longer K is a chain of blocks in program order, the result
 * of one being the accumulator of the next; nothing else is carried between them.
 *
 * This is the plain form that everything else is tested against.  chain.h has the fast one.
 */
#ifndef HALFBYTE_MODEL_TENSOR_CORE_H
#define HALFBYTE_MODEL_TENSOR_CORE_H

#include <stdint.h>

/* Operand type of both A and B.  The values are those of the golden vectors. */
typedef enum tensor_core_type {
    TENSOR_CORE_E4M3 = 0, /* no infinity; 0x7f and 0xff are NaN */
    TENSOR_CORE_E5M2 = 1,
    TENSOR_CORE_BF16 = 2,
    TENSOR_CORE_FP16 = 3,
} tensor_core_type;

enum { TENSOR_CORE_MAX_K = 32 };

/* Products per instruction: 32 for the FP8 types, 16 for bf16 and fp16. */
int tensor_core_k(tensor_core_type type);

/*
 * D = C + sum over i of a[i] * b[i], one instruction.
 *
 *   a, b   tensor_core_k(type) bit patterns; an FP8 code stands in the low byte
 *   c      accumulator input, any fp32 bit pattern
 *
 * Returns the fp32 bit pattern that the device writes.  NaN is always 0x7fffffff, zero always +0.
 * Integer arithmetic throughout: independent of the floating-point environment.
 */
uint32_t tensor_core_block(tensor_core_type type, const uint16_t *a, const uint16_t *b, uint32_t c);

#endif
