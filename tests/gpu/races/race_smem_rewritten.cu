/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B is rewritten in shared memory while a group of four instructions reads it; the wait comes after.
 *
 * expect: none
 */
#include "gpu/races/race.h"

#define BODY(n, early)                                                                             \
    FRAGMENT_F32(d, n / 2);                                                                        \
    const smem_addr base = smem_base();                                                            \
    uint32_t trip;                                                                                 \
    int j;                                                                                         \
    race_fill(p, base);                                                                            \
    RACE_ZERO(n, d);                                                                               \
    HB_NO_UNROLL                                                                                   \
    for (trip = 0; trip < p->trips; trip++) {                                                      \
        const uint32_t next = p->a[trip];                                                          \
        wgmma_fence();                                                                             \
        HB_UNROLL                                                                                  \
        for (j = 0; j < 4; j++) {                                                                  \
            wgmma_e4m3_ss_n##n(d, race_desc(race_a(base, (uint32_t)j)), race_desc(base), 1);       \
        }                                                                                          \
        wgmma_commit();                                                                            \
        early;                                                                                     \
        race_words(base, n * 32u, next);                                                           \
        fence_proxy_async();                                                                       \
        block_sync();                                                                              \
        wgmma_wait(0);                                                                             \
    }                                                                                              \
    RACE_STORE(p, n, d);

#define NOTHING
#define WAIT                                                                                       \
    wgmma_wait(0);                                                                                 \
    block_sync()

KERNEL(race_n8, race_params, p, 128)
{
    BODY(8, NOTHING)
}

KERNEL(fixed_n8, race_params, p, 128)
{
    BODY(8, WAIT)
}

KERNEL(race_n128, race_params, p, 128)
{
    BODY(128, NOTHING)
}

KERNEL(fixed_n128, race_params, p, 128)
{
    BODY(128, WAIT)
}
