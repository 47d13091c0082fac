/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four groups on one accumulator, then a wait that leaves three of them in flight, then the scaling; the
 * full wait comes after it.  The shape of a fault that W4A8 kernels have had.
 *
 * expect: none
 */
#include "gpu/races/race.h"

#define BODY(n, early)                                                                             \
    FRAGMENT_F32(d, n / 2);                                                                        \
    FRAGMENT_F32(f, n / 2);                                                                        \
    FRAGMENT_U32(a, 16);                                                                           \
    const smem_addr base = smem_base();                                                            \
    int j;                                                                                         \
    race_fill(p, base);                                                                            \
    RACE_ZERO(n, d);                                                                               \
    RACE_ZERO(n, f);                                                                               \
    HB_UNROLL                                                                                      \
    for (j = 0; j < 16; j++) {                                                                     \
        a[j] = smem_load_u32(race_a(base, (uint32_t)j / 4u) + thread_index() * 4u);                \
    }                                                                                              \
    HB_UNROLL                                                                                      \
    for (j = 0; j < 4; j++) {                                                                      \
        wgmma_fence();                                                                             \
        wgmma_e4m3_rs_n##n(d, a + j * 4, race_desc(base), 1);                                      \
        wgmma_commit();                                                                            \
    }                                                                                              \
    wgmma_wait(early);                                                                             \
    RACE_SCALE(n, f, d);                                                                           \
    wgmma_wait(0);                                                                                 \
    RACE_STORE(p, n, f);

KERNEL(race_n8, race_params, p, 128)
{
    BODY(8, 3)
}

KERNEL(fixed_n8, race_params, p, 128)
{
    BODY(8, 0)
}

KERNEL(race_n128, race_params, p, 128)
{
    BODY(128, 3)
}

KERNEL(fixed_n128, race_params, p, 128)
{
    BODY(128, 0)
}
