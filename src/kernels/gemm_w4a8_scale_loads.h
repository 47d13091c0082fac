/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights' scales along k of the W4A8 kernels, any layout and type: from global memory to fp32 in
 * the registers of a scale warp.  Part of gemm_w4a8_scales.h.
 *
 * A turn is what a lane loads, or copies, at a time: the scales of two rows for up to four k blocks
 * (expand: of four for one).  Where a row's scales of four groups lie side by side, they are one
 * load (GEMM_SCALES_BY_FOUR): a scale warp's instructions are taken from the consumers of its
 * scheduler.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_SCALE_LOADS_H
#define HALFBYTE_KERNELS_GEMM_W4A8_SCALE_LOADS_H

#include "kernels/gemm_params.h"
#include "kernels/gemm_w4a8_tiles.h"
#include "kernels/hopper/hopper.h"

/* e4m3 to fp32: its exponent and fraction in place, times 2^120, which is exact. */
HB_DEVICE float f32_of_e4m3(uint32_t bits)
{
    const float magnitude = mul_rn(f32_of_bits((bits & 0x7fu) << 20), f32_of_bits(0x7b800000u));
    const uint32_t sign = (bits & 0x80u) << 24;
    return f32_of_bits((bits & 0x7fu) == 0x7fu ? 0x7fffffffu : bits_of_f32(magnitude) | sign);
}

#ifndef ROW_SCALES
#define ROW_SCALES 2 /* rows of a lane */
#endif
#define STAGE_GROUPS (STAGE_BLOCKS * GEMM_GROUPS) /* groups of a stage, at most */
#define STAGE_LOADS (STAGE_GROUPS * ROW_SCALES)   /* of a lane */
/* Stages whose scales are loaded together. */
#ifndef TURN_STAGES
#define TURN_STAGES (STAGE_LOADS < 8 ? 8 / STAGE_LOADS : 1)
#endif
#define TURN_BLOCKS (TURN_STAGES * STAGE_BLOCKS) /* k blocks whose scales are loaded at a time */
#define TURN_LOADS (TURN_STAGES * STAGE_LOADS)
#define PREFETCHED_BLOCKS 32

/* Weight groups in a k block. */
HB_DEVICE int32_t groups_of(const gemm_params *p)
{
    return GEMM_GROUPS == 1 ? 1 : p->block_k == 32 ? 4 : 2;
}

HB_DEVICE int32_t scale_bytes(const gemm_scales *s)
{
    return s->type == ELEMENT_F32 ? 4 : s->type == ELEMENT_E4M3 ? 1 : 2;
}

/* Elements from a row's first scale to that of k group kb. */
HB_DEVICE int64_t scale_offset(const gemm_scales *s, int32_t kb)
{
    return (kb >> 2) * s->stride_k4 + (kb & 3) * s->stride_k;
}

/* What a scale warp keeps of a tile; the rest it reads again when it needs it. */
typedef struct scale_tile {
    smem_addr slot; /* of the work item */
    int32_t group, column;
    int32_t first_block, end_block;
} scale_tile;

/* By way of shuffles, which tell the compiler that all lanes have the same. */
HB_DEVICE int32_t uniform_load(smem_addr at)
{
    return (int32_t)shuffle_u32(smem_load_u32(at), 0);
}

/* The scales of a lane's rows, of each 64 a pair, in the first k group of a turn.  Rows past the
 * end read the last row's; their sums are never stored. */
typedef struct scale_rows {
    const uint8_t *row[ROW_SCALES];
} scale_rows;

/* Row i of the lane's. */
HB_DEVICE int32_t scale_row(int i)
{
    const uint32_t lane = lane_index();
    return (int32_t)(lane / 8u * 16u + lane % 8u) + i / 2 * 64 + i % 2 * 8;
}

HB_DEVICE scale_rows scale_rows_of(const gemm_params *p, const scale_tile *tile)
{
    const gemm_scales *s = &p->b_scale;
    const int64_t base =
        tile->group * s->group_stride + scale_offset(s, tile->first_block * groups_of(p));
    scale_rows rows;
    int i;
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        const int32_t row = tile->column + scale_row(i);
        rows.row[i] = (const uint8_t *)s->data +
                      (base + (row < p->n ? row : p->n - 1) * s->stride_mn) * scale_bytes(s);
    }
    return rows;
}

/* Bytes from one turn to the next: as many groups on, a multiple of four. */
HB_DEVICE int64_t turn_bytes(const gemm_params *p)
{
    return TURN_BLOCKS * groups_of(p) / 4 * p->b_scale.stride_k4 * scale_bytes(&p->b_scale);
}

HB_DEVICE void next_scales(int64_t bytes, scale_rows *rows)
{
    int i;
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        rows->row[i] += bytes;
    }
}

/* A scale as it is stored. */
HB_DEVICE uint32_t scale_raw(const uint8_t *address, int32_t bytes)
{
    return bytes == 4   ? global_load_u32_nc((const uint32_t *)address)
           : bytes == 2 ? global_load_u16_nc((const uint16_t *)address)
                        : global_load_u8_nc(address);
}

/* The k group of index q among those from k block `block` on. */
HB_DEVICE int32_t group_at(const gemm_params *p, int32_t block, int q)
{
    return (block + q / GEMM_GROUPS) * groups_of(p) + q % GEMM_GROUPS;
}

/* Reads what a scale warp needs of the parameters, while it has nothing else to do. */
HB_DEVICE void scales_touch(const gemm_params *p)
{
    parameter_touch((uint32_t)p->a_scale.stride_mn);
    parameter_touch((uint32_t)p->a_scale.mn_shift);
    parameter_touch((uint32_t)p->b_scale.mn_shift);
    parameter_touch((uint32_t)p->epilogue.row_scale.stride);
}

#define TURN_GROUPS (TURN_STAGES * STAGE_GROUPS)

/* Do a turn's scales of a row lie side by side, where they can be loaded at once? */
HB_DEVICE bool scales_by_four(const gemm_params *p, const scale_tile *tile)
{
    return (p->flags & GEMM_SCALES_BY_FOUR) && tile->first_block * groups_of(p) % 4 == 0;
}

/* Elements from the first group of a turn to each of its groups, to the last where they end. */
HB_DEVICE void turn_offsets(const gemm_params *p, int32_t block, int64_t offset[TURN_GROUPS])
{
    const gemm_scales *s = &p->b_scale;
    const int64_t first = scale_offset(s, block * groups_of(p));
    int q;
    HB_UNROLL
    for (q = 0; q < TURN_GROUPS; q++) {
        const int32_t kb = group_at(p, block, q);
        offset[q] = scale_offset(s, kb < p->k_groups ? kb : p->k_groups - 1) - first;
    }
}

/* Those of four groups that lie side by side, of the lane's row i: `bytes` words, word j to
 * raw[j * ROW_SCALES + i].  bytes: a constant. */
HB_DEVICE void load_four(const uint8_t *row, int32_t bytes, int i, uint32_t *raw)
{
    if (bytes == 4) {
        uint32_t word[4];
        int j;
        global_load_u32x4_nc((const uint32_t *)row, word);
        HB_UNROLL
        for (j = 0; j < 4; j++) {
            raw[j * ROW_SCALES + i] = word[j];
        }
    } else if (bytes == 2) {
        const uint64_t both = global_load_u64_nc((const uint64_t *)row);
        raw[i] = (uint32_t)both;
        raw[ROW_SCALES + i] = (uint32_t)(both >> 32);
    } else {
        raw[i] = global_load_u32_nc((const uint32_t *)row);
    }
}

/* What load_four() has loaded, apart. */
HB_DEVICE void part_four(int32_t bytes, int i, uint32_t *raw)
{
    int q;
    HB_UNROLL
    for (q = 3; q >= 0; q--) {
        const uint32_t word = raw[q * bytes / 4 * ROW_SCALES + i] >> q * bytes % 4 * 8;
        raw[q * ROW_SCALES + i] = bytes == 4 ? word : bytes == 2 ? word & 0xffffu : word & 0xffu;
    }
}

/* Scales of a turn as they are stored.  All loads are issued before one is waited for.  bytes: a
 * constant.  fours: GEMM_SCALES_BY_FOUR. */
HB_DEVICE void load_scales(const scale_rows *rows, const int64_t offset[TURN_GROUPS], int32_t bytes,
                           bool fours, uint32_t raw[TURN_LOADS])
{
    int q, i;
    if (TURN_GROUPS == 4 && fours) {
        HB_UNROLL
        for (i = 0; i < ROW_SCALES; i++) {
            load_four(rows->row[i], bytes, i, raw);
            part_four(bytes, i, raw);
        }
        return;
    }
    HB_UNROLL
    for (q = 0; q < TURN_GROUPS; q++) {
        HB_UNROLL
        for (i = 0; i < ROW_SCALES; i++) {
            raw[q * ROW_SCALES + i] = scale_raw(rows->row[i] + offset[q] * bytes, bytes);
        }
    }
}

/* Scales as they are stored to fp32; without a type, 1.  type: a constant. */
HB_DEVICE void widen_as(int32_t type, uint32_t raw[TURN_LOADS])
{
    int i;
    HB_UNROLL
    for (i = 0; i < TURN_LOADS; i++) {
        if (type == ELEMENT_NONE) {
            raw[i] = bits_of_f32(1.0f);
        } else if (type == ELEMENT_E4M3) {
            raw[i] = bits_of_f32(f32_of_e4m3(raw[i]));
        } else if (type == ELEMENT_BF16) {
            raw[i] <<= 16;
        } else if (type == ELEMENT_F16) {
            raw[i] = bits_of_f32(f32_of_f16((uint16_t)raw[i]));
        }
    }
}

/* Times 512 unless A's scale comes first (docs/numerics.md section 5). */
HB_DEVICE void factors_of_scales(const gemm_params *p, uint32_t raw[TURN_LOADS])
{
    const float factor = p->a_scale.data == NULL ? 512.0f : 1.0f;
    int i;
    HB_UNROLL
    for (i = 0; i < TURN_LOADS; i++) {
        raw[i] = bits_of_f32(mul_rn(f32_of_bits(raw[i]), factor));
    }
}

/* The factors of a turn.  Loads and conversions stand in the same branches: apart, as where the
 * first is loaded early, they take registers that larger tiles do not have. */
HB_DEVICE void fetch_scales(const gemm_params *p, const scale_rows *rows,
                            const int64_t offset[TURN_GROUPS], bool fours, uint32_t raw[TURN_LOADS])
{
    const gemm_scales *s = &p->b_scale;
    if (s->data == NULL) {
        widen_as(ELEMENT_NONE, raw);
    } else if (s->type == ELEMENT_F32) {
        load_scales(rows, offset, 4, fours, raw);
    } else if (s->type == ELEMENT_E4M3) {
        load_scales(rows, offset, 1, fours, raw);
        widen_as(ELEMENT_E4M3, raw);
    } else {
        load_scales(rows, offset, 2, fours, raw);
        if (s->type == ELEMENT_BF16) {
            widen_as(ELEMENT_BF16, raw);
        } else {
            widen_as(ELEMENT_F16, raw);
        }
    }
    factors_of_scales(p, raw);
}

/* load_scales() by the type of the scales, which widen_scales() knows again. */
HB_DEVICE void load_typed(const gemm_params *p, const scale_rows *rows,
                          const int64_t offset[TURN_GROUPS], uint32_t raw[TURN_LOADS])
{
    const gemm_scales *s = &p->b_scale;
    if (s->data == NULL) {
        return;
    }
    if (s->type == ELEMENT_F32) {
        load_scales(rows, offset, 4, false, raw);
    } else if (s->type == ELEMENT_E4M3) {
        load_scales(rows, offset, 1, false, raw);
    } else {
        load_scales(rows, offset, 2, false, raw);
    }
}

HB_DEVICE void widen_scales(const gemm_params *p, uint32_t raw[TURN_LOADS])
{
    const gemm_scales *s = &p->b_scale;
    if (s->data == NULL) {
        widen_as(ELEMENT_NONE, raw);
    } else if (s->type == ELEMENT_E4M3) {
        widen_as(ELEMENT_E4M3, raw);
    } else if (s->type == ELEMENT_BF16) {
        widen_as(ELEMENT_BF16, raw);
    } else if (s->type == ELEMENT_F16) {
        widen_as(ELEMENT_F16, raw);
    }
    factors_of_scales(p, raw);
}

#endif
