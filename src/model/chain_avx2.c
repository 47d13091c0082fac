/* SPDX-License-Identifier: Apache-2.0 */
/* Four vectors of eight columns: AVX2.  Compiled for any x86-64, run where chain.c finds it. */
#ifdef __x86_64__

#include <immintrin.h>
#include <stdint.h>

#define CHAIN_LANES 8
#define CHAIN_TARGET __attribute__((target("avx2")))

#define chain_max(a, b) ((vint)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define chain_truncate(a) ((vint)_mm256_cvttps_epi32((__m256)(a)))
#define chain_widen(from) ((vint)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(from))))
#define chain_bits_mask(bits) ((vint)lanes_from_bits(bits))

CHAIN_TARGET static inline __m256i lanes_from_bits(uint32_t bits)
{
    const __m256i lane_bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), lane_bit), lane_bit);
}

#include "model/chain_vector.h"

const chain_ops chain_ops_avx2 = {"avx2", decode_row, decode_panel, run};

#else

typedef int chain_avx2_is_empty; /* ISO C wants a declaration in every file */

#endif
