/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the racing kernels share.  All operands are constant over a matrix, so that every output of
 * a kernel is the same number and no layout matters: matrix j of A holds one e4m3 code everywhere,
 * B another.
 *
 * Each file makes four kernels: race_n8, fixed_n8, race_n128, fixed_n128.  Its line `expect:` names
 * the messages that ptxas 13.0 gives for it; the build compares them.
 */
#ifndef HALFBYTE_TESTS_GPU_RACES_RACE_H
#define HALFBYTE_TESTS_GPU_RACES_RACE_H

#include "kernels/hopper/types.h"

enum {
    RACE_MATRICES = 8, /* of A */
    RACE_B_BYTES = 4096,
    RACE_A_BYTES = 2048,
    RACE_SMEM_BYTES = 1024 + RACE_B_BYTES + RACE_MATRICES * RACE_A_BYTES
};

typedef struct race_params {
    float *out;                /* [blocks, 128, n / 2] */
    uint32_t a[RACE_MATRICES]; /* four equal codes a word */
    uint32_t b;
    uint32_t trips; /* of kernels with a loop, at most RACE_MATRICES */
} race_params;

#if defined(__CUDACC__)
#include "kernels/hopper/hopper.h"

HB_DEVICE smem_addr race_a(smem_addr base, uint32_t j)
{
    return base + RACE_B_BYTES + j * RACE_A_BYTES;
}

HB_DEVICE void race_words(smem_addr at, uint32_t bytes, uint32_t word)
{
    uint32_t i;
    for (i = thread_index() * 4u; i < bytes; i += 512u) {
        smem_store_u32(at + i, word);
    }
}

HB_DEVICE void race_fill(const race_params *p, smem_addr base)
{
    uint32_t j;
    race_words(base, RACE_B_BYTES, p->b);
    for (j = 0; j < RACE_MATRICES; j++) {
        race_words(race_a(base, j), RACE_A_BYTES, p->a[j]);
    }
    fence_proxy_async();
    block_sync();
}

/* Core matrices of 128 bytes, two along k, then the next 8 rows. */
HB_DEVICE uint64_t race_desc(smem_addr at)
{
    return wgmma_desc(at, 128, 256, SWIZZLE_NONE);
}

#define RACE_STORE(p, n, f)                                                                        \
    do {                                                                                           \
        float *out_ = (p)->out + (size_t)(block_index() * 128u + thread_index()) * (n / 2);        \
        int i_;                                                                                    \
        HB_UNROLL                                                                                  \
        for (i_ = 0; i_ < (n) / 2; i_++) {                                                         \
            global_store_f32(out_ + i_, (f)[i_]);                                                  \
        }                                                                                          \
    } while (0)

#define RACE_ZERO(n, f)                                                                            \
    do {                                                                                           \
        int i_;                                                                                    \
        HB_UNROLL                                                                                  \
        for (i_ = 0; i_ < (n) / 2; i_++) {                                                         \
            (f)[i_] = 0.0f;                                                                        \
        }                                                                                          \
    } while (0)

/* f += 1.5 * d, the scaling that must not come before the wait. */
#define RACE_SCALE(n, f, d)                                                                        \
    do {                                                                                           \
        int i_;                                                                                    \
        HB_UNROLL                                                                                  \
        for (i_ = 0; i_ < (n) / 2; i_++) {                                                         \
            (f)[i_] = fma_rn((d)[i_], 1.5f, (f)[i_]);                                              \
        }                                                                                          \
    } while (0)
#endif

#endif
