/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The factors of the tokens of the W4A8 kernels, in shared memory, to the sums of a thread.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_TOKEN_FACTORS_H
#define HALFBYTE_KERNELS_GEMM_W4A8_TOKEN_FACTORS_H

#include "kernels/hopper/hopper.h"

/* acc = mul_rn(acc, factor of its token): the first step of the epilogue.  tokens: the factor of
 * the thread's first. */
HB_DEVICE void scale_tokens(float *acc, smem_addr tokens)
{
    int i;
    HB_UNROLL
    for (i = 0; i < FRAGMENT; i += 4) {
        uint32_t pair[2];
        smem_load_u32x2(tokens + (uint32_t)i * 8u, pair);
        acc[i + 0] = mul_rn(acc[i + 0], f32_of_bits(pair[0]));
        acc[i + 1] = mul_rn(acc[i + 1], f32_of_bits(pair[1]));
        acc[i + 2] = mul_rn(acc[i + 2], f32_of_bits(pair[0]));
        acc[i + 3] = mul_rn(acc[i + 3], f32_of_bits(pair[1]));
    }
}

#endif
