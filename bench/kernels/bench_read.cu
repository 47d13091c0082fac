/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads weights and activations once and does nothing with them: what a product's operands cost to
 * fetch.  Any number of blocks and any cache policy; the host tries several and keeps
 * the fastest.
 */
#include "bench_params.h"
#include "kernels/hopper/hopper.h"

#define LOADS 4 /* of 16 bytes in flight in a thread */

/* A load of 16 bytes, under a cache policy that the host chose. */
HB_DEVICE void load_vector(const unsigned char *address, uint64_t policy, uint32_t value[4])
{
    asm volatile("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "l"(address), "l"(policy));
}

/* Exclusive or of all that this thread reads of `bytes` at `data`: `first` of `step` threads. */
HB_DEVICE uint32_t read_all(const unsigned char *data, uint64_t bytes, uint64_t policy,
                            uint64_t first, uint64_t step)
{
    const uint64_t vectors = bytes / 16;
    uint32_t seen = 0;
    uint64_t at;
    int i, j;
    for (at = first; at < vectors; at += step * LOADS) {
        uint32_t value[LOADS][4];
        HB_UNROLL
        for (i = 0; i < LOADS; i++) {
            const uint64_t vector = at + (uint64_t)i * step;
            load_vector(data + (vector < vectors ? vector : at) * 16, policy, value[i]);
        }
        HB_UNROLL
        for (i = 0; i < LOADS; i++) {
            HB_UNROLL
            for (j = 0; j < 4; j++) {
                seen ^= value[i][j] + (uint32_t)i;
            }
        }
    }
    return seen;
}

KERNEL_SHARING(bench_read, bench_read_params, p, BENCH_READ_THREADS, 4)
{
    const uint64_t first = (uint64_t)block_index() * BENCH_READ_THREADS + thread_index();
    const uint64_t step = (uint64_t)block_count() * BENCH_READ_THREADS;
    const uint32_t seen =
        read_all(p->weights, p->weight_bytes, p->policy, first, step) ^
        read_all(p->activations, p->activation_bytes, p->policy, first, step);
    if (seen == 0x5eed5eedu) {
        global_store_u32(p->sink, seen);
    }
}
