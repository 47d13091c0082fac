/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cases of this folder share: one racing kernel and its corrected twin a file.
 *
 * A file is compiled twice, plain (it races) and with FIXED, CASE_NAME being its name.  Its comment
 * says what test_cases.c must find in the racing one:
 *
 *     expect: CLASS at MARK                    hazard class of docs/emulator.md, and the line at
 *     expect: CLASS at MARK, other MARK        fault: one that bears the comment MARK; likewise the
 *                                              line it conflicts with
 *     under: NAME...                           (optional) orders or policies; elsewhere the race
 * may hide
 *
 * Of several `expect` lines each run must show one, and each must be shown by some run.
 */
#ifndef HALFBYTE_TESTS_EMULATOR_CASE_H
#define HALFBYTE_TESTS_EMULATOR_CASE_H

#include "kernels/hopper/hopper.h"

/* Data of all cases. */
enum {
    CASE_IN_ROWS = 256, /* rows of 256 e4m3 */
    CASE_IN_BYTES = CASE_IN_ROWS * 256,
    CASE_OUT_FLOATS = 4096,
    CASE_MAPS = 2
};

typedef struct case_params {
    tensor_map a;     /* of in: boxes of 64 rows x 128 bytes, 128-byte swizzle */
    tensor_map b;     /* of in: boxes of 8 rows x 128 bytes, 128-byte swizzle */
    tensor_map d;     /* of out as [128][32] floats: boxes of 32 rows x 32, no swizzle */
    tensor_map mid_a; /* like a, of mid */
    const uint8_t *in;
    float *out;
    float *mid;       /* CASE_OUT_FLOATS more; between the two grids of a pair */
    tensor_map *maps; /* CASE_MAPS in global memory, copies of b */
    int32_t tiles;    /* trips of the main loop */
} case_params;

/* Shared memory, from smem_base(): two stages of operands, a staging buffer, barriers. */
#define A_BYTES 8192u
#define B_BYTES 1024u
#define TILE_BYTES (A_BYTES + B_BYTES)
#define STAGING_BYTES 4096u
#define SMEM_A(s, stage) ((s) + (uint32_t)(stage)*A_BYTES)
#define SMEM_B(s, stage) ((s) + 16384u + (uint32_t)(stage)*B_BYTES)
#define SMEM_STAGING(s) ((s) + 18432u)
#define SMEM_BAR(s, i) ((s) + 22528u + (uint32_t)(i)*8u)
#define CASE_SMEM_BYTES (22528 + 16 * 8 + 1024)

#define DESC_A(s, stage) wgmma_desc(SMEM_A(s, stage), 0, 1024, SWIZZLE_128B)
#define DESC_B(s, stage) wgmma_desc(SMEM_B(s, stage), 0, 1024, SWIZZLE_128B)
/* Of k step 0 .. 3 in the 128 bytes of a row. */
#define DESC_STEP(desc, step) wgmma_desc_advance((desc), (uint32_t)(step)*32u)

/* Fills both stages, the correct way: by thread 0, on the last barrier; all threads wait. */
HB_DEVICE void load_operands(const case_params *p, smem_addr s)
{
    const smem_addr bar = SMEM_BAR(s, 15);
    if (thread_index() == 0) {
        mbarrier_init(bar, 1);
        fence_mbarrier_init();
    }
    block_sync();
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(bar, 2u * TILE_BYTES);
        tma_load_2d(SMEM_A(s, 0), &p->a, bar, 0, 0);
        tma_load_2d(SMEM_A(s, 1), &p->a, bar, 128, 0);
        tma_load_2d(SMEM_B(s, 0), &p->b, bar, 0, 64);
        tma_load_2d(SMEM_B(s, 1), &p->b, bar, 128, 64);
    }
    mbarrier_wait(bar, 0);
}

/* Barrier i of counts[i] arrivals for i < count, the correct way. */
HB_DEVICE void init_barriers(smem_addr s, uint32_t count, uint32_t arrivals_0, uint32_t arrivals_1,
                             uint32_t arrivals_2, uint32_t arrivals_3)
{
    if (thread_index() == 0) {
        mbarrier_init(SMEM_BAR(s, 0), arrivals_0);
        if (count > 1) {
            mbarrier_init(SMEM_BAR(s, 1), arrivals_1);
        }
        if (count > 2) {
            mbarrier_init(SMEM_BAR(s, 2), arrivals_2);
        }
        if (count > 3) {
            mbarrier_init(SMEM_BAR(s, 3), arrivals_3);
        }
        fence_mbarrier_init();
    }
    block_sync();
}

/* The thread's four accumulators of an m64n8 tile, which nothing writes any more. */
HB_DEVICE void store_result(const case_params *p, const float *acc)
{
    int i;
    HB_UNROLL
    for (i = 0; i < 4; i++) {
        global_store_f32(p->out + thread_index() * 4u + (uint32_t)i, acc[i]);
    }
}

/* Names of kernel and record, by the name of the file and of the twin. */
#ifndef CASE_NAME
#define CASE_NAME unnamed
#endif
#define CASE_PASTE_(a, b) a##b
#define CASE_PASTE(a, b) CASE_PASTE_(a, b)
#ifdef FIXED
#define CASE_KERNEL CASE_PASTE(fixed_, CASE_NAME)
#else
#define CASE_KERNEL CASE_PASTE(racing_, CASE_NAME)
#endif
#define CASE_FIRST CASE_PASTE(CASE_KERNEL, _first)
#define CASE_RECORD CASE_PASTE(CASE_KERNEL, _case)

#ifdef __CUDACC__
#define RACE_CASE(threads, blocks, cluster, registers, tiles)                                      \
    static_assert((threads) % 32 == 0, "whole warps")
#define RACE_PAIR(threads) static_assert((threads) % 32 == 0, "whole warps")
#else

/* One kernel of the list. */
typedef struct race_case {
    const char *file;
    void (*first)(const void *params); /* the grid before, of one block; NULL: none */
    void (*kernel)(const void *params);
    uint32_t threads;
    uint32_t blocks;
    uint32_t cluster;
    uint32_t registers; /* a thread at launch; 0: no pool */
    int32_t tiles;
} race_case;

#define RACE_CASE(threads, blocks, cluster, registers, tiles)                                      \
    extern const race_case CASE_RECORD;                                                            \
    const race_case CASE_RECORD = {__FILE__, 0,         CASE_KERNEL, (threads),                    \
                                   (blocks), (cluster), (registers), (tiles)}
/* CASE_KERNEL depends on CASE_FIRST by programmatic dependent launch. */
#define RACE_PAIR(threads)                                                                         \
    extern const race_case CASE_RECORD;                                                            \
    const race_case CASE_RECORD = {__FILE__, CASE_FIRST, CASE_KERNEL, (threads), 1, 1, 0, 1}
#endif

#endif
