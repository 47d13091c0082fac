/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One k block of FP8 products: a chain of four wgmma from +0 (docs/numerics.md section 4).
 *
 * Define CHAIN_COLUMNS before including.  The caller fences before the first chain after it has
 * read or written the sums, and commits.
 */
#ifndef HALFBYTE_KERNELS_TILE_WGMMA_CHAIN_H
#define HALFBYTE_KERNELS_TILE_WGMMA_CHAIN_H

#include "kernels/hopper/hopper.h"

#define CHAIN_JOIN_(a, b) a##b
#define CHAIN_JOIN(a, b) CHAIN_JOIN_(a, b)
#define CHAIN_WGMMA CHAIN_JOIN(wgmma_e4m3_ss_n, CHAIN_COLUMNS)

/* partial (64, CHAIN_COLUMNS) = A (64, 128) * B^T, tiles of rows of 128 bytes, 128-byte swizzle. */
HB_DEVICE void chain_issue(float *partial, smem_addr a, smem_addr b)
{
    const uint64_t desc_a = wgmma_desc(a, 0, 1024, SWIZZLE_128B);
    const uint64_t desc_b = wgmma_desc(b, 0, 1024, SWIZZLE_128B);
    int step;
    HB_UNROLL
    for (step = 0; step < 4; step++) { /* an instruction has 32 of k */
        CHAIN_WGMMA(partial, wgmma_desc_advance(desc_a, (uint32_t)step * 32u),
                    wgmma_desc_advance(desc_b, (uint32_t)step * 32u), step != 0);
    }
}

#endif
