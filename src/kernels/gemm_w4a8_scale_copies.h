/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane's scales of a turn, to shared memory by copies and from there to registers.  Part of
 * gemm_w4a8_scales_ahead.h.
 *
 * COPIED SCALES of a warp are [SCALES_AHEAD turns][rows of a lane][32 lanes][16 bytes]: of a row
 * the scales of four groups side by side (GEMM_SCALES_BY_FOUR), or four words of which each holds
 * one (GEMM_SCALES_BY_WORD).  All others (other strides, a tile's last turn) are loaded where they
 * are stored.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_SCALE_COPIES_H
#define HALFBYTE_KERNELS_GEMM_W4A8_SCALE_COPIES_H

#include "kernels/gemm_w4a8_scale_loads.h"
#include "kernels/hopper/hopper.h"

#define COPIED_ROW_BYTES 512u

/* This lane's scales of a turn, four of a row side by side.  bytes: of a scale, a constant. */
HB_DEVICE void copy_fours(const scale_rows *rows, int32_t bytes, smem_addr to)
{
    int i;
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        const smem_addr at = to + (uint32_t)i * COPIED_ROW_BYTES;
        if (bytes == 4) {
            cp_async_16(at, rows->row[i]);
        } else if (bytes == 2) {
            cp_async_8(at, rows->row[i]);
        } else {
            cp_async_4(at, rows->row[i]);
        }
    }
}

/* The words with this lane's scales of a turn. */
HB_DEVICE void copy_words(const gemm_params *p, const scale_rows *rows, smem_addr to)
{
    const int64_t step = p->b_scale.stride_k * scale_bytes(&p->b_scale);
    int q, i;
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        const uint8_t *word = (const uint8_t *)((uintptr_t)rows->row[i] & ~(uintptr_t)3);
        HB_UNROLL
        for (q = 0; q < TURN_BLOCKS; q++) {
            cp_async_4(to + (uint32_t)i * COPIED_ROW_BYTES + (uint32_t)q * 4u, word + q * step);
        }
    }
}

/* What copy_fours() has copied, apart.  bytes: of a scale, a constant. */
HB_DEVICE void load_fours(smem_addr from, int32_t bytes, uint32_t raw[TURN_LOADS])
{
    int i, j;
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        const smem_addr at = from + (uint32_t)i * COPIED_ROW_BYTES;
        uint32_t word[4] = {0, 0, 0, 0};
        if (bytes == 4) {
            smem_load_u32x4(at, word);
        } else if (bytes == 2) {
            smem_load_u32x2(at, word);
        } else {
            word[0] = smem_load_u32(at);
        }
        HB_UNROLL
        for (j = 0; j < bytes; j++) {
            raw[j * ROW_SCALES + i] = word[j];
        }
        part_four(bytes, i, raw);
    }
}

/* And copy_words(): rows' places in their words follow from their numbers, since the first row's
 * scale begins one. */
HB_DEVICE void load_words_of_scales(smem_addr from, int32_t bytes, uint32_t raw[TURN_LOADS])
{
    int i, q;
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        const uint32_t shift = (uint32_t)(scale_row(i) * bytes) % 4u * 8u;
        uint32_t word[4];
        smem_load_u32x4(from + (uint32_t)i * COPIED_ROW_BYTES, word);
        HB_UNROLL
        for (q = 0; q < TURN_BLOCKS; q++) {
            raw[q * ROW_SCALES + i] = word[q] >> shift & (bytes == 2 ? 0xffffu : 0xffu);
            raw[q * ROW_SCALES + i] = bytes == 4 ? word[q] : raw[q * ROW_SCALES + i];
        }
    }
}

/* What has been copied.  bytes: of a scale, a constant. */
HB_DEVICE void load_copied(const gemm_params *p, smem_addr from, int32_t bytes,
                           uint32_t raw[TURN_LOADS])
{
    if (p->flags & GEMM_SCALES_BY_FOUR) {
        load_fours(from, bytes, raw);
    } else {
        load_words_of_scales(from, bytes, raw);
    }
}

#endif
