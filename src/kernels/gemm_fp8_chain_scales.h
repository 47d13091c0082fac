/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of the chains of gemm_fp8_ahead.h: one of A a row, one of B a segment of columns.
 */
#ifndef HALFBYTE_KERNELS_GEMM_FP8_CHAIN_SCALES_H
#define HALFBYTE_KERNELS_GEMM_FP8_CHAIN_SCALES_H

/* The scales of a chain that a thread needs. */
#define CHAIN_SEGMENTS                                                                             \
    ((GEMM_CHAIN_N + SEGMENT - 9) / SEGMENT + 1) /* at most so many are touched */
typedef struct chain_scales {
    float low, high; /* of row g of the warp's 16, of row g + 8 */
    float b[CHAIN_SEGMENTS];
} chain_scales;

HB_DEVICE int first_segment(int chain)
{
    return chain * GEMM_CHAIN_N / SEGMENT;
}

HB_DEVICE int end_segment(int chain)
{
    return (chain * GEMM_CHAIN_N + chain_columns(chain) - 1) / SEGMENT + 1;
}

/* Before the wait for the chain: beside wgmma's operands a load takes 100 cycles and more. */
HB_DEVICE void load_chain_scales(const consumer *c, int chain, chain_scales *to)
{
    const uint32_t at = stage_before(c, 1) * SCALE_BYTES;
    const int first = first_segment(chain);
    int i;
    if (chain == 0) {
        to->low = smem_load_f32(c->scales + at);
        to->high = smem_load_f32(c->scales + at + 32u);
    }
    HB_UNROLL
    for (i = first; i < end_segment(chain); i++) {
        to->b[i - first] = smem_load_f32(c->b_scales + at + (uint32_t)i * 4u);
    }
}

/* acc = fma_rn(partial, scale of A * scale of B, acc). */
HB_DEVICE void promote_chain(float *acc, int chain, const float *partial,
                             const chain_scales *scales)
{
    const int first = chain * GEMM_CHAIN_N;
    const float *sums = partial + (first - chain_start(chain)) / 2;
    float low = 0.0f, high = 0.0f;
    int i;
    acc += first / 2;
    HB_UNROLL
    for (i = 0; i < chain_columns(chain) / 2; i += 4) {
        const int column = first + i * 2;
        if (i == 0 || column % SEGMENT == 0) {
            const float b = scales->b[column / SEGMENT - first_segment(chain)];
            low = mul_rn(scales->low, b);
            high = mul_rn(scales->high, b);
        }
        acc[i + 0] = fma_rn(sums[i + 0], low, acc[i + 0]);
        acc[i + 1] = fma_rn(sums[i + 1], low, acc[i + 1]);
        acc[i + 2] = fma_rn(sums[i + 2], high, acc[i + 2]);
        acc[i + 3] = fma_rn(sums[i + 3], high, acc[i + 3]);
    }
}

#endif
