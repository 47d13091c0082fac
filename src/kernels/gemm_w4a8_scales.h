/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales along k of the W4A8 kernels: from global memory, any layout and type, to fp32 in a stage
 * of the ring.
 *
 * A warp loads a few stages' scales into registers before it waits for the first of them to be
 * free, so the loads run as far ahead as the ring is long; SCALE_WARPS share the work.  What they
 * read is mostly a line that nobody has read yet, so lines are asked for another 32 blocks ahead.
 *
 * A stage holds, for each of its k blocks and each weight group in it,
 *   TILE_ROWS    factors of the weights' rows: with scales of A the scale itself, else
 *                mul_rn(scale, 512), and 512 where the weights have none along k
 *                (rows g and g + 8 of each 16 stand side by side, as a thread wants them)
 *   TILE_TOKENS  scales of A, one a token, if A has scales along k
 *
 * A group that does not exist (the last atom may end before its groups do, the last stage before
 * its blocks do) has the factors -0 and 1: its products are +0, and acc + +0 * -0 is acc, whatever
 * acc is.
 */
#ifndef HALFBYTE_KERNELS_GEMM_W4A8_SCALES_H
#define HALFBYTE_KERNELS_GEMM_W4A8_SCALES_H

#include "kernels/gemm_params.h"
#include "kernels/gemm_w4a8_tiles.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/work.h"

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
#define TURN_BLOCKS                                                                                \
    (TURN_STAGES * STAGE_BLOCKS) /* k blocks whose scales are loaded at a time: 4                  \
                                  */
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

/* The scales of a lane's rows, `column` + lane and 32 further on, in the first k group of a turn.
 * Rows past the end read the last row's; their sums are never stored. */
typedef struct scale_rows {
    const uint8_t *row[ROW_SCALES];
} scale_rows;

HB_DEVICE scale_rows scale_rows_of(const gemm_params *p, const scale_tile *tile)
{
    const gemm_scales *s = &p->b_scale;
    const int64_t base =
        tile->group * s->group_stride + scale_offset(s, tile->first_block * groups_of(p));
    scale_rows rows;
    int i;
    HB_UNROLL
    for (i = 0; i < ROW_SCALES; i++) {
        const int32_t row = tile->column + (int32_t)lane_index() + i * 32;
        rows.row[i] = (const uint8_t *)s->data +
                      (base + (row < p->n ? row : p->n - 1) * s->stride_mn) * scale_bytes(s);
    }
    return rows;
}

/* To the next turn: as many groups on, a multiple of four. */
HB_DEVICE void next_scales(const gemm_params *p, scale_rows *rows)
{
    const int64_t bytes =
        TURN_BLOCKS * groups_of(p) / 4 * p->b_scale.stride_k4 * scale_bytes(&p->b_scale);
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

/* Scales of a turn as they are stored.  All loads are issued before one is waited for.  bytes: a
 * constant. */
HB_DEVICE void load_scales(const scale_rows *rows, const int64_t offset[TURN_GROUPS], int32_t bytes,
                           uint32_t raw[TURN_LOADS])
{
    int q, i;
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

/* The factors of a turn.  Loads and conversions stand in the same branches: apart, as a warp that
 * loads ahead has them, they take registers that larger tiles do not have. */
HB_DEVICE void fetch_scales(const gemm_params *p, const scale_rows *rows,
                            const int64_t offset[TURN_GROUPS], uint32_t raw[TURN_LOADS])
{
    const gemm_scales *s = &p->b_scale;
    if (s->data == NULL) {
        widen_as(ELEMENT_NONE, raw);
    } else if (s->type == ELEMENT_F32) {
        load_scales(rows, offset, 4, raw);
    } else if (s->type == ELEMENT_E4M3) {
        load_scales(rows, offset, 1, raw);
        widen_as(ELEMENT_E4M3, raw);
    } else {
        load_scales(rows, offset, 2, raw);
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
        load_scales(rows, offset, 4, raw);
    } else if (s->type == ELEMENT_E4M3) {
        load_scales(rows, offset, 1, raw);
    } else {
        load_scales(rows, offset, 2, raw);
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

/* One stage's, from `block` on (whole: a constant, all its groups exist), to its place in shared
 * memory. */
HB_DEVICE void store_scales(const gemm_params *p, int32_t block, int32_t end_block, smem_addr to,
                            const uint32_t raw[STAGE_LOADS], bool whole)
{
    const uint32_t lane = lane_index();
    const smem_addr mine = to + lane / 16u * 64u + lane % 8u * 8u + lane / 8u % 2u * 4u;
    int q, i;
    HB_UNROLL
    for (q = 0; q < STAGE_GROUPS; q++) {
        const bool exists =
            whole || (block + q / GEMM_GROUPS < end_block && group_at(p, block, q) < p->k_groups);
        HB_UNROLL
        for (i = 0; i < ROW_SCALES; i++) {
            smem_store_u32(mine + (uint32_t)q * GROUP_SCALE_BYTES + (uint32_t)i * 128u,
                           exists ? raw[q * ROW_SCALES + i] : 0x80000000u);
        }
    }
}

#include "kernels/gemm_w4a8_token_scales.h"

/* Asks for lines of scales that are needed `distance` blocks after k block `now`, the first of the
 * turn: a lane for a block of its own.  Where the scales of a block are neighbours, that is their
 * line. */
HB_DEVICE void prefetch_scales(const gemm_params *p, const scale_tile *tile, const scale_rows *rows,
                               int32_t now, int32_t distance)
{
    const gemm_scales *a = &p->a_scale, *b = &p->b_scale;
    const int32_t mine = now + distance + (int32_t)lane_index();
    if (mine >= tile->end_block) {
        return;
    }
    if (b->data != NULL) {
        const int64_t ahead =
            scale_offset(b, mine * groups_of(p)) - scale_offset(b, now * groups_of(p));
        prefetch_l2(rows->row[0] + ahead * scale_bytes(b));
    }
    if (a->data != NULL) {
        const token_rows of_a = token_rows_of(tile);
        prefetch_l2((const float *)a->data + of_a.plane * a->group_stride +
                    of_a.row * a->stride_mn + scale_offset(a, mine));
    }
}

/* Waits for the stage and fills it. */
HB_DEVICE void fill_scales(const gemm_params *p, const scale_tile *tile, const ring *r,
                           int32_t block, smem_addr to, const uint32_t raw[STAGE_LOADS],
                           uint32_t half, bool whole)
{
    const smem_addr full = r->full + r->stage * 8u;
    ring_wait_empty(r);
    store_scales(p, block, tile->end_block, to + half * 256u, raw, whole);
#if GEMM_TOKEN_SCALES != 0
    if (half == 0 && p->a_scale.data != NULL) {
        copy_token_scales(p, tile, block, to);
        cp_async_mbarrier_arrive_noinc(full); /* when this lane's copies are there */
    }
#endif
    if (half == 0 && block + STAGE_BLOCKS >= tile->end_block &&
        p->epilogue.row_scale.data != NULL) {
        store_token_factors(p, tile, to + (uint32_t)FACTOR_GROUP * GROUP_SCALE_BYTES);
    }
    warp_sync();
    if (elect_one()) {
        mbarrier_arrive(full); /* for the stores of all lanes */
    }
}

/* Waits for the next tile; false: there is none. */
HB_DEVICE bool scale_tile_next(const work_ring *work, uint32_t half, scale_tile *tile)
{
    tile->slot = work->slots + work->slot * 32u;
    mbarrier_wait(work_full(work), work->parity);
    tile->group = uniform_load(tile->slot);
    tile->column = uniform_load(tile->slot + 16u) + (int32_t)half * 64;
    tile->first_block = uniform_load(tile->slot + 24u);
    tile->end_block = uniform_load(tile->slot + 28u);
    return tile->group >= 0;
}

/* A turn of this warp: all stages whose scales are in raw. */
HB_DEVICE void fill_turn(const gemm_params *p, const scale_tile *tile, ring *r, int32_t block,
                         int32_t blocks, smem_addr scales, const uint32_t raw[TURN_LOADS],
                         uint32_t half, bool whole)
{
    int j;
    HB_UNROLL
    for (j = 0; j < TURN_STAGES; j++) {
        if (whole || j * STAGE_BLOCKS < blocks) {
            fill_scales(p, tile, r, block + j * STAGE_BLOCKS, scales + r->stage * SCALE_BYTES,
                        raw + j * STAGE_LOADS, half, whole);
            ring_advance(r);
        }
    }
}

/* Past the stages of another warp's turn. */
HB_DEVICE void skip_turn(ring *r, int32_t blocks)
{
    int j;
    HB_UNROLL
    for (j = 0; j < TURN_STAGES; j++) {
        if (j * STAGE_BLOCKS < blocks) {
            ring_advance(r);
        }
    }
}

#if SCALES_AHEAD
#include "kernels/gemm_w4a8_scales_ahead.h"
#else
HB_DEVICE void produce_scales(const gemm_params *p, smem_addr scales, ring r, work_ring work,
                              uint32_t warp)
{
    const uint32_t half = WARPGROUPS == 2 ? warp : 0;
    scale_tile tile;
    bool mine = WARPGROUPS == 2 || warp == 0;
    int32_t i;
    while (scale_tile_next(&work, half, &tile)) {
        scale_rows rows = scale_rows_of(p, &tile);
        const int32_t blocks = padded_blocks(tile.first_block, tile.end_block);
        int64_t offset[TURN_GROUPS];
        turn_offsets(p, tile.first_block, offset);
        for (i = 0; i < blocks; i += TURN_BLOCKS) {
            const int32_t block = tile.first_block + i;
            uint32_t raw[TURN_LOADS];
            if (!mine) {
                skip_turn(&r, blocks - i);
            } else if (GEMM_GROUPS == 1 && block + TURN_BLOCKS <= tile.end_block) {
                fetch_scales(p, &rows, offset, raw);
                if (i == 0) {
                    prefetch_scales(p, &tile, &rows, block, 0);
                }
                if (i % PREFETCHED_BLOCKS == 0) {
                    prefetch_scales(p, &tile, &rows, block, PREFETCHED_BLOCKS);
                }
                fill_turn(p, &tile, &r, block, blocks - i, scales, raw, half, true);
            } else {
                int64_t exact[TURN_GROUPS];
                turn_offsets(p, block, exact);
                fetch_scales(p, &rows, exact, raw);
                fill_turn(p, &tile, &r, block, blocks - i, scales, raw, half, false);
            }
            next_scales(p, &rows);
            mine = WARPGROUPS == 2 || !mine;
        }
        warp_sync(); /* all lanes have read the item before one says so */
        if (elect_one()) {
            mbarrier_arrive(work_empty(&work));
        }
        work_ring_advance(&work);
    }
}
#endif

#endif
