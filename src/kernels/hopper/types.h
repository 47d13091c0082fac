/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types that kernels share with the host code which launches them.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_TYPES_H
#define HALFBYTE_KERNELS_HOPPER_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A byte address in the block's shared window, or the cluster's. */
typedef uint32_t smem_addr;

/*
 * Cache policies of the _hint forms: what createpolicy.fractional.L2 with fraction 1.0 returns.
 * The values are fixed for the architecture.
 */
#define L2_EVICT_NORMAL 0x1000000000000000ull
#define L2_EVICT_FIRST 0x12f0000000000000ull
#define L2_EVICT_LAST 0x14f0000000000000ull

/* What a host-made tensor map looks like to a kernel; CUtensorMap on the GPU. */
typedef struct tensor_map {
#if defined(__cplusplus)
    alignas(64) unsigned char opaque[128];
#else
    _Alignas(64) unsigned char opaque[128];
#endif
} tensor_map;

#endif
