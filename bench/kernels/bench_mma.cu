/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chained m64n256k32 e4m3 wgmma from shared memory with nothing else in the loop: the rate that the
 * tensor cores sustain.  Operands are random, about normal with deviation 100, since power limits
 * the clock and power depends on the data.
 */
#include "bench_params.h"
#include "kernels/hopper/hopper.h"

#define A_BYTES (128 * 128)
#define B_BYTES (256 * 128)

/* A stream of 32 random bits (xorshift). */
HB_DEVICE uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Four e4m3 numbers: each from the sum of four uniform bytes, whose deviation is 147.8. */
HB_DEVICE uint32_t random_word(uint32_t *state)
{
    uint32_t word = 0;
    int i;
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        const uint32_t r = next_random(state);
        const int32_t sum = (int32_t)((r & 255u) + (r >> 8 & 255u) + (r >> 16 & 255u) + (r >> 24));
        word |= (uint32_t)cvt_e4m3((float)(sum - 510) * (100.0f / 147.8f)) << (8 * i);
    }
    return word;
}

KERNEL(bench_mma, bench_mma_params, p, BENCH_MMA_THREADS)
{
    FRAGMENT_F32(acc, 128);
    const smem_addr smem = smem_base();
    const smem_addr a = smem + warp_index() / 4u * (64u * 128u);
    const uint64_t desc_a = wgmma_desc(a, 0, 1024, SWIZZLE_128B);
    const uint64_t desc_b = wgmma_desc(smem + A_BYTES, 0, 1024, SWIZZLE_128B);
    uint32_t state = p->seed ^ ((block_index() * BENCH_MMA_THREADS + thread_index() + 1u) * 7919u);
    uint32_t at, chain;
    float sum = 0.0f;
    int i;
    for (at = thread_index() * 4u; at < A_BYTES + B_BYTES; at += BENCH_MMA_THREADS * 4u) {
        smem_store_u32(smem + at, random_word(&state));
    }
    fence_proxy_async();
    block_sync();
    HB_UNROLL
    for (i = 0; i < 128; i++) {
        acc[i] = 0.0f;
    }
    HB_NO_UNROLL
    for (chain = 0; chain < p->chains; chain++) {
        wgmma_fence();
        HB_UNROLL
        for (i = 0; i < BENCH_MMA_CHAIN; i++) {
            const uint32_t step = (uint32_t)i % 4u * 32u;
            wgmma_e4m3_ss_n256(acc, wgmma_desc_advance(desc_a, step),
                               wgmma_desc_advance(desc_b, step), i != 0);
        }
        wgmma_commit();
        wgmma_wait(0);
    }
    HB_UNROLL
    for (i = 0; i < 128; i++) {
        sum += acc[i];
    }
    if (sum == 1.25f) {
        global_store_f32(p->sink, sum);
    }
}
