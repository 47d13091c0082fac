/* SPDX-License-Identifier: Apache-2.0 */
#include "model/promote.h"

#include "model/arith.h"

static void promote_portable(const float partial[CHAIN_COLUMNS], const float scale[CHAIN_COLUMNS],
                             float acc[CHAIN_COLUMNS])
{
    for (int c = 0; c < CHAIN_COLUMNS; c++) {
        acc[c] = fma_rn(partial[c], scale[c], acc[c]);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

/* x86 has another default NaN (0xffc00000) and keeps payloads: both become the GPU's. */
__attribute__((target("avx2,fma"))) static void promote_fma(const float partial[CHAIN_COLUMNS],
                                                            const float scale[CHAIN_COLUMNS],
                                                            float acc[CHAIN_COLUMNS])
{
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32((int)FLOAT_BITS_NAN));
    for (int c = 0; c < CHAIN_COLUMNS; c += 8) {
        const __m256 sum = _mm256_fmadd_ps(_mm256_loadu_ps(partial + c), _mm256_loadu_ps(scale + c),
                                           _mm256_loadu_ps(acc + c));
        const __m256 unordered = _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q);
        _mm256_storeu_ps(acc + c, _mm256_blendv_ps(sum, nan, unordered));
    }
}

promote_function *promote_get(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? promote_fma
                                                                           : promote_portable;
}

#else

promote_function *promote_get(void)
{
    return promote_portable;
}

#endif
