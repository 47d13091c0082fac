/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A from registers that are an array of the loop's body, loaded for the next trip before the wait of the
 * last one.  The compiler gives every trip the same registers.
 *
 * expect: none
 */
#include "gpu/races/race.h"

#define LOAD_A(a)                                                                                  \
    HB_UNROLL                                                                                      \
    for (i = 0; i < 4; i++) {                                                                      \
        a[i] = smem_load_u32(race_a(base, trip) + thread_index() * 16u + (uint32_t)i * 4u);        \
    }

/* before, after: what stands before and behind the loads of a trip */
#define BODY(n, before, after)                                                                     \
    FRAGMENT_F32(d, n / 2);                                                                        \
    const smem_addr base = smem_base();                                                            \
    uint32_t trip;                                                                                 \
    int i;                                                                                         \
    race_fill(p, base);                                                                            \
    RACE_ZERO(n, d);                                                                               \
    HB_NO_UNROLL                                                                                   \
    for (trip = 0; trip < p->trips; trip++) {                                                      \
        FRAGMENT_U32(a, 4);                                                                        \
        before;                                                                                    \
        LOAD_A(a)                                                                                  \
        after;                                                                                     \
        wgmma_fence();                                                                             \
        wgmma_e4m3_rs_n##n(d, a, race_desc(base), 1);                                              \
        wgmma_commit();                                                                            \
    }                                                                                              \
    wgmma_wait(0);                                                                                 \
    RACE_STORE(p, n, d);

#define NOTHING

KERNEL(race_n8, race_params, p, 128)
{
    BODY(8, NOTHING, wgmma_wait(0))
}

KERNEL(fixed_n8, race_params, p, 128)
{
    BODY(8, wgmma_wait(0), NOTHING)
}

KERNEL(race_n128, race_params, p, 128)
{
    BODY(128, NOTHING, wgmma_wait(0))
}

KERNEL(fixed_n128, race_params, p, 128)
{
    BODY(128, wgmma_wait(0), NOTHING)
}
