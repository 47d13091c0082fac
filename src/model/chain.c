/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of the chain variant at run time. */
#include "model/chain.h"

#include "model/chain_variants.h"

/* __builtin_cpu_supports also asks whether the system saves the registers (XGETBV). */
static const chain_ops *avx2_ops(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        return &chain_ops_avx2;
#endif
    return NULL;
}

static const chain_ops *avx512_ops(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        return &chain_ops_avx512;
    }
#endif
    return NULL;
}

const chain_ops *chain_ops_get(chain_isa isa)
{
    switch (isa) {
    case CHAIN_ISA_AUTO: {
        const chain_ops *ops = avx512_ops();
        if (!ops)
            ops = avx2_ops();
        return ops ? ops : &chain_ops_portable;
    }
    case CHAIN_ISA_PORTABLE: return &chain_ops_portable;
    case CHAIN_ISA_AVX2: return avx2_ops();
    case CHAIN_ISA_AVX512: return avx512_ops();
    }
    return NULL;
}
