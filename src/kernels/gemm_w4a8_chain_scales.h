/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of the chains of gemm_w4a8_expand.h: one a row of weights, as gemm_w4a8_scales.h has them.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_CHAIN_SCALES_H
#define HALFBYTE_KERNELS_GEMM_W4A8_CHAIN_SCALES_H

typedef struct chain_scales {
    float low, high; /* of row g of the warp's 16, of row g + 8 */
} chain_scales;

/* Before the wait for the chain: beside wgmma's operands a load takes 100 cycles and more. */
HB_DEVICE void load_chain_scales(const consumer *c, int chain, chain_scales *to)
{
    if (chain == 0) {
        uint32_t pair[2];
        smem_load_u32x2(c->scales + stage_before(c, 1) * SCALE_BYTES, pair);
        to->low = f32_of_bits(pair[0]);
        to->high = f32_of_bits(pair[1]);
    }
}

/* acc = fma_rn(partial, scale of the row, acc). */
HB_DEVICE void promote_chain(float *acc, int chain, const float *partial,
                             const chain_scales *scales)
{
    const int first = chain * GEMM_CHAIN_N;
    const float *sums = partial + (first - chain_start(chain)) / 2;
    int i;
    acc += first / 2;
    HB_UNROLL
    for (i = 0; i < chain_columns(chain) / 2; i += 4) {
        acc[i + 0] = fma_rn(sums[i + 0], scales->low, acc[i + 0]);
        acc[i + 1] = fma_rn(sums[i + 1], scales->low, acc[i + 1]);
        acc[i + 2] = fma_rn(sums[i + 2], scales->high, acc[i + 2]);
        acc[i + 3] = fma_rn(sums[i + 3], scales->high, acc[i + 3]);
    }
}

#endif
