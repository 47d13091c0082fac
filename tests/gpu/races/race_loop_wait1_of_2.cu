/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop of two groups a trip, scaled with one of them in flight, then the full wait.
 *
 * expect: none
 */
#include "gpu/races/race.h"

#define BODY(n, early)                                                                             \
    FRAGMENT_F32(d, n / 2);                                                                        \
    FRAGMENT_F32(f, n / 2);                                                                        \
    const smem_addr base = smem_base();                                                            \
    uint32_t trip;                                                                                 \
    race_fill(p, base);                                                                            \
    RACE_ZERO(n, d);                                                                               \
    RACE_ZERO(n, f);                                                                               \
    HB_NO_UNROLL                                                                                   \
    for (trip = 0; trip < p->trips; trip++) {                                                      \
        wgmma_fence();                                                                             \
        wgmma_e4m3_ss_n##n(d, race_desc(race_a(base, trip)), race_desc(base), 1);                  \
        wgmma_commit();                                                                            \
        wgmma_fence();                                                                             \
        wgmma_e4m3_ss_n##n(d, race_desc(race_a(base, trip ^ 1u)), race_desc(base), 1);             \
        wgmma_commit();                                                                            \
        wgmma_wait(early);                                                                         \
        RACE_SCALE(n, f, d);                                                                       \
        wgmma_wait(0);                                                                             \
    }                                                                                              \
    RACE_STORE(p, n, f);

KERNEL(race_n8, race_params, p, 128)
{
    BODY(8, 1)
}

KERNEL(fixed_n8, race_params, p, 128)
{
    BODY(8, 0)
}

KERNEL(race_n128, race_params, p, 128)
{
    BODY(128, 1)
}

KERNEL(fixed_n128, race_params, p, 128)
{
    BODY(128, 0)
}
