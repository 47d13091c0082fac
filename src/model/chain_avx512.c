/* SPDX-License-Identifier: Apache-2.0 */
/* Two vectors of 16 columns: AVX-512 F, BW, VL, DQ.  Compiled for any x86-64 as chain_avx2.c is. */
#ifdef __x86_64__

#include <immintrin.h>
#include <stdint.h>

#define CHAIN_LANES 16
#define CHAIN_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

#define chain_max(a, b) ((vint)_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#define chain_truncate(a) ((vint)_mm512_cvttps_epi32((__m512)(a)))
#define chain_widen(from) ((vint)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(from))))
#define chain_bits_mask(bits) ((vint)_mm512_movm_epi32((__mmask16)(bits)))

#include "model/chain_vector.h"

const chain_ops chain_ops_avx512 = {"avx512", decode_row, decode_panel, run};

#else

typedef int chain_avx512_is_empty; /* ISO C wants a declaration in every file */

#endif
