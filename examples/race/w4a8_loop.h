/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main loop of a W4A8 kernel: int4 weights become e4m3 in registers, four wgmma multiply a k
 * tile of 128 with them, and the sums are scaled by the scale of the tile's weights and added up.
 *
 * D[64 output channels, 8 tokens] = W * X^T.  A producer warp keeps two stages filled, one
 * warpgroup consumes them.
 *
 * PARAMETERS (define before including)
 *   W4A8_NAME         name of the kernel
 *   W4A8_WAIT(tile)   what is waited for between the last wgmma of a tile and the scaling of its
 * sums
 */
#include <halfbyte/hopper.h>

#ifndef W4A8_LOOP_ONCE
#define W4A8_LOOP_ONCE

typedef struct w4a8_params {
    tensor_map x;         /* [8 tokens, k] e4m3: boxes of 8 x 128, 128-byte swizzle */
    const uint32_t *w;    /* k tiles of 4,096 bytes: 8 words a thread, see words_of() */
    const float *w_scale; /* [k tiles, 64 channels] */
    float *d;             /* [64 channels, 8 tokens] */
    int32_t tiles;        /* of k */
} w4a8_params;

#define W_BYTES 4096u
#define X_BYTES 1024u
#define STAGE_BYTES (X_BYTES + W_BYTES)
#define SMEM_FULL(s, stage) ((s) + 2u * STAGE_BYTES + (stage)*8u)
#define SMEM_EMPTY(s, stage) ((s) + 2u * STAGE_BYTES + 16u + (stage)*8u)
#define W4A8_SMEM_BYTES (2 * 5120 + 32 + 1024)
#define W4A8_THREADS 160

/* Stage `stage`: X first, since swizzled tiles lie at multiples of 1,024. */
HB_DEVICE smem_addr stage_x(smem_addr s, uint32_t stage)
{
    return s + stage * X_BYTES;
}

HB_DEVICE smem_addr stage_w(smem_addr s, uint32_t stage)
{
    return s + 2u * X_BYTES + stage * W_BYTES;
}

HB_DEVICE void produce(const w4a8_params *p, smem_addr s)
{
    int32_t tile;
    for (tile = 0; tile < p->tiles; tile++) {
        const uint32_t stage = (uint32_t)tile & 1u;
        const smem_addr full = SMEM_FULL(s, stage);
        mbarrier_wait(SMEM_EMPTY(s, stage), (((uint32_t)tile >> 1) & 1u) ^ 1u);
        mbarrier_arrive_expect_tx(full, STAGE_BYTES);
        tma_load_2d(stage_x(s, stage), &p->x, full, tile * 128, 0);
        bulk_load(stage_w(s, stage), p->w + tile * 1024, W_BYTES, full);
    }
}

/* Eight int4 of a word, sign and magnitude, to e4m3 bytes of the same value * 2^-9. */
HB_DEVICE void dequantise(uint32_t *a, uint32_t word_0, uint32_t word_1)
{
    const uint32_t high_0 = word_0 >> 4, high_1 = word_1 >> 4;
    a[0] = (word_0 & 0x07070707u) | (word_0 & 0x08080808u) << 4;
    a[1] = (high_0 & 0x07070707u) | (high_0 & 0x08080808u) << 4;
    a[2] = (word_1 & 0x07070707u) | (word_1 & 0x08080808u) << 4;
    a[3] = (high_1 & 0x07070707u) | (high_1 & 0x08080808u) << 4;
}

#endif

/* One k step of 32: dequantised, multiplied, a group of its own. */
#define W4A8_STEP(a, step)                                                                         \
    dequantise(a, words[2 * (step)], words[2 * (step) + 1]);                                       \
    wgmma_fence();                                                                                 \
    wgmma_e4m3_rs_n8(partial, a, wgmma_desc_advance(desc, (step)*32u), (step) != 0);               \
    wgmma_commit()

KERNEL(W4A8_NAME, w4a8_params, p, W4A8_THREADS)
{
    const smem_addr s = smem_base();
    if (thread_index() == 0) {
        uint32_t stage;
        for (stage = 0; stage < 2; stage++) {
            mbarrier_init(SMEM_FULL(s, stage), 1);
            mbarrier_init(SMEM_EMPTY(s, stage), 4);
        }
        fence_mbarrier_init();
    }
    block_sync();
    if (thread_index() == 128) {
        produce(p, s);
    } else if (thread_index() < 128) {
        FRAGMENT_F32(partial, 4);
        FRAGMENT_F32(acc, 4);
        FRAGMENT_U32(a0, 4);
        FRAGMENT_U32(a1, 4);
        FRAGMENT_U32(a2, 4);
        FRAGMENT_U32(a3, 4);
        const uint32_t row = warp_index() * 16u + lane_index() / 4u;
        const uint32_t column = lane_index() % 4u * 2u;
        int32_t tile;
        int i;
        HB_UNROLL
        for (i = 0; i < 4; i++) {
            acc[i] = 0.0f;
        }
        for (tile = 0; tile < p->tiles; tile++) {
            const uint32_t stage = (uint32_t)tile & 1u;
            const uint64_t desc = wgmma_desc(stage_x(s, stage), 0, 1024, SWIZZLE_128B);
            const smem_addr mine = stage_w(s, stage) + thread_index() * 32u;
            const float *scale = p->w_scale + tile * 64;
            const float low = global_load_f32_nc(scale + row);
            const float high = global_load_f32_nc(scale + row + 8u);
            uint32_t words[8];
            mbarrier_wait(SMEM_FULL(s, stage), ((uint32_t)tile >> 1) & 1u);
            smem_load_u32x4(mine, words);
            smem_load_u32x4(mine + 16u, words + 4);
            W4A8_STEP(a0, 0u);
            W4A8_STEP(a1, 1u);
            W4A8_STEP(a2, 2u);
            W4A8_STEP(a3, 3u);
            W4A8_WAIT(tile);
            acc[0] = fma_rn(partial[0], low, acc[0]);
            acc[1] = fma_rn(partial[1], low, acc[1]);
            acc[2] = fma_rn(partial[2], high, acc[2]);
            acc[3] = fma_rn(partial[3], high, acc[3]);
            wgmma_wait(0);       /* before the stage goes back */
            fence_proxy_async(); /* its weights were read by ordinary loads */
            warp_sync();
            if (elect_one()) {
                mbarrier_arrive(SMEM_EMPTY(s, stage));
            }
        }
        HB_UNROLL
        for (i = 0; i < 4; i++) {
            global_store_f32(
                p->d + (row + (uint32_t)(i / 2) * 8u) * 8u + column + (uint32_t)(i % 2), acc[i]);
        }
    }
}

#undef W4A8_STEP
#undef W4A8_NAME
#undef W4A8_WAIT
