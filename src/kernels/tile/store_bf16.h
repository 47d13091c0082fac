/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accumulators of a warpgroup to rows of bf16, straight from registers.
 *
 * A thread holds two neighbouring columns of every eight, for rows g and g + 8.  Four threads hold
 * the eight columns of a group; where D allows 16-byte stores, they trade so that of four groups
 * each thread stores one whole.
 */
#ifndef HALFBYTE_KERNELS_TILE_STORE_BF16_H
#define HALFBYTE_KERNELS_TILE_STORE_BF16_H

#include "kernels/gemm_fp8_params.h"
#include "kernels/hopper/hopper.h"

/* Columns `column` and the next of row `row`, where they exist. */
HB_DEVICE void store_bf16_pair(const gemm_fp8_params *p, int32_t row, int32_t column, uint32_t pair)
{
    uint16_t *d = p->d + (int64_t)row * p->ldd + column;
    if (row >= p->m || column >= p->n) {
        return;
    }
    if (p->d_pairs && column + 1 < p->n) {
        global_store_u32((uint32_t *)d, pair);
        return;
    }
    global_store_u16(d, (uint16_t)(pair & 0xffffu));
    if (column + 1 < p->n) {
        global_store_u16(d + 1, (uint16_t)(pair >> 16));
    }
}

/*
 * 4 x 4 transpose among four neighbouring lanes: lane q gives word[j] to lane j and receives, as
 * word[i], what lane i had for it.  Two rounds of exchanges, by lane bit 0 and by lane bit 1.
 */
HB_DEVICE void transpose_quad(uint32_t word[4])
{
    const uint32_t q = lane_index() % 4u;
    const bool odd = (q & 1u) != 0, high = (q & 2u) != 0;
    uint32_t a, b;
    a = shuffle_xor_u32(odd ? word[0] : word[1], 1);
    b = shuffle_xor_u32(odd ? word[2] : word[3], 1);
    if (odd) {
        word[0] = a;
        word[2] = b;
    } else {
        word[1] = a;
        word[3] = b;
    }
    a = shuffle_xor_u32(high ? word[0] : word[2], 2);
    b = shuffle_xor_u32(high ? word[1] : word[3], 2);
    if (high) {
        word[0] = a;
        word[1] = b;
    } else {
        word[2] = a;
        word[3] = b;
    }
}

/* Four groups of eight columns of one row, from `column` on: lane q stores group q. */
HB_DEVICE void store_bf16_groups(const gemm_fp8_params *p, int32_t row, int32_t column,
                                 uint32_t word[4])
{
    const int32_t first = column + (int32_t)(lane_index() % 4u) * 8;
    transpose_quad(word);
    if (row < p->m && first < p->n) {
        global_store_u32x4(p->d + (int64_t)row * p->ldd + first, word[0], word[1], word[2],
                           word[3]);
    }
}

/*
 * acc[count] of the calling thread; its row g of the warp's 16 is `row`, its first column that of
 * the warpgroup's tile, `column`.  All lanes of the warp take part.
 */
HB_DEVICE void store_bf16(const gemm_fp8_params *p, const float *acc, int count, int32_t row,
                          int32_t column)
{
    const int32_t mine = column + (int32_t)(lane_index() % 4u) * 2;
    int i, j;
    HB_UNROLL
    for (i = 0; i < count; i += 16) {
        uint32_t low[4], high[4];
        HB_UNROLL
        for (j = 0; j < 4; j++) {
            const int e = i + 4 * j < count ? i + 4 * j : i; /* a short last round repeats */
            low[j] = cvt_bf16x2(acc[e + 0], acc[e + 1]);
            high[j] = cvt_bf16x2(acc[e + 2], acc[e + 3]);
        }
        if (p->d_groups && i + 16 <= count) {
            store_bf16_groups(p, row, column + i * 2, low);
            store_bf16_groups(p, row + 8, column + i * 2, high);
        } else {
            HB_UNROLL
            for (j = 0; j < 4; j++) {
                if (i + 4 * j < count) {
                    store_bf16_pair(p, row, mine + (i + 4 * j) * 2, low[j]);
                    store_bf16_pair(p, row + 8, mine + (i + 4 * j) * 2, high[j]);
                }
            }
        }
    }
}

#endif
