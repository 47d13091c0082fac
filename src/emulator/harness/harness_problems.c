/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels are run on: small problems, since each of them runs under many schedules.
 *
 * The tables hold a row for each thing that a kernel may get wrong, not for each combination.  A
 * row's number of SMs and its draw (gemm_case.h) are part of it: one SM makes a block work through
 * all tiles, so that the ring of items (tile/work.h) goes round.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/kernel_table.h"
#include "emulator/harness/gemm_case.h"
#include "emulator/harness/harness.h"

/* Bits of draws, short. */
enum {
    STARTS_ENDS,
    STARTS_COUNTS,
    ENDS,
    COUNTS,
    PAIRS = GEMM_CASE_D_PAIRS,
    WIDE = GEMM_CASE_D_WIDE,
    FEWER = GEMM_CASE_FEWER_ROWS,
    NO_BETA = GEMM_CASE_NO_BETA,
    C_IS_D = GEMM_CASE_C_IS_D,
    WILD = GEMM_CASE_WILD,
    DEVICE = GEMM_CASE_ALPHA_DEVICE,
    OVERLAP = GEMM_CASE_OVERLAP,
    BEHIND = HARNESS_BEHIND,
    MUTANTS = HARNESS_FOR_MUTANTS,
    ALL_OF_B = GEMM_CASE_NO_MINUS8,
    LOAD_ONE = GEMM_CASE_LOAD_ONE,
    LOAD_EACH = GEMM_CASE_LOAD_EACH,
    LOAD_ZIPF = GEMM_CASE_LOAD_ZIPF,
    FOURS = GEMM_CASE_SCALES_BY_FOUR,
    PLAIN = 0
};

#define BY_SIZE HARNESS_BY_SIZE

#define SCALE(mode, layout, type)                                                                  \
    {                                                                                              \
        HALFBYTE_SCALE_##mode, HALFBYTE_TYPE_##type, HALFBYTE_SCALE_##layout##_MAJOR               \
    }
#define OF_K_GROUP(type, layout_name)                                                              \
    {                                                                                              \
        HALFBYTE_SCALE_K_GROUP, HALFBYTE_TYPE_##type, layout_name                                  \
    }

/* One row: m, n, k; how many groups of which kind; SMs; draw; fields of the problem. */
#define ROW(family_name, mm, nn, kk, grouping_name, count, sms, drawn, ...)                        \
    {                                                                                              \
        {.struct_size = sizeof(halfbyte_problem),                                                  \
         .family = HALFBYTE_FAMILY_##family_name,                                                  \
         .grouping = HALFBYTE_GROUPING_##grouping_name,                                            \
         .m_max = (mm),                                                                            \
         .n = (nn),                                                                                \
         .k = (kk),                                                                                \
         .groups = (count),                                                                        \
         __VA_ARGS__},                                                                             \
            (sms), (drawn)                                                                         \
    }
#define FP8(...) ROW(FP8, __VA_ARGS__)
#define W4A8(...) ROW(W4A8, __VA_ARGS__, .b_layout = HALFBYTE_B_PACKED)
#define RAW(...) ROW(W4A8, __VA_ARGS__) /* row-major weights, packed ahead of the product */
#define A(mode, layout) .a_scale = SCALE(mode, layout, NONE)
#define B(mode, layout) .b_scale = SCALE(mode, layout, NONE)
#define K(size, type, layout)                                                                      \
    .weight_group_size = (size), .b_scale = OF_K_GROUP(type, HALFBYTE_SCALE_##layout)
#define D(type) .d_type = HALFBYTE_TYPE_##type
#define C(type) .c_type = HALFBYTE_TYPE_##type
#define BIAS(type) .bias_type = HALFBYTE_TYPE_##type
#define CHANNEL .channel_scale_type = HALFBYTE_TYPE_F32
#define ALPHA .alpha_mode = HALFBYTE_ALPHA_HOST
#define SPLITS(count) .k_splits = (count)
#define ZERO .flags = HALFBYTE_ZERO_FILL_PADDING
#define INT64 .index_type = HALFBYTE_INDEX_INT64

/* The order matters to the standard grid, which is made of the first row that a kernel accepts. */
static const harness_problem table[] = {
    /* Dense: scale modes and layouts, types of D, terms, widths of stores. */
    FP8(70, 40, 200, DENSE, 1, 1, WIDE | FEWER, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(40, 264, 130, DENSE, 1, 2, WIDE, A(1X128, K), B(128X128, MN), D(F16)),
    FP8(33, 27, 144, DENSE, 1, 1, PAIRS, A(TENSOR, MN), B(TENSOR, MN), D(F16), ALPHA),
    FP8(130, 24, 128, DENSE, 1, 1, WIDE, A(OUTER, MN), B(OUTER, MN), D(BF16), BIAS(BF16), CHANNEL),
    FP8(21, 24, 128, DENSE, 1, 1, WIDE, A(NONE, MN), B(NONE, MN), D(F32)),
    FP8(20, 130, 272, DENSE, 1, 1, WIDE | DEVICE, A(1X128, K), B(NONE, MN), D(BF16), ALPHA),
    FP8(65, 129, 300, DENSE, 1, 2, C_IS_D, A(1X128, MN), B(1X128, K), D(BF16), C(BF16)),
    FP8(7, 33, 384, DENSE, 1, 1, PAIRS, A(NONE, MN), B(1X128, MN), D(F32), C(F16), BIAS(F32)),
    FP8(17, 16, 520, DENSE, 1, 1, DEVICE, A(TENSOR, MN), B(128X128, K), D(F32), ALPHA, C(F32),
        BIAS(F16), CHANNEL),
    FP8(9, 70, 130, DENSE, 1, 1, C_IS_D, A(OUTER, MN), B(1X128, K), D(F16), C(F16)),
    FP8(35, 30, 0, DENSE, 1, 1, PAIRS, A(1X128, MN), B(128X128, K), D(BF16), C(BF16), BIAS(BF16),
        ALPHA),
    FP8(12, 40, 128, DENSE, 1, 1, NO_BETA, A(1X128, MN), B(128X128, K), D(F32), C(F32)),

    /* Dense: more rows of tiles than a band has (tile/work.h).  With k blocks that fill the ring
     * blocks take runs of tiles, from the middle of a column on too; with three they do not. */
    FP8(2100, 200, 128, DENSE, 1, 3, WIDE | BEHIND, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(2100, 24, 256, DENSE, 1, 3, WIDE, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(2100, 24, 384, DENSE, 1, 2, WIDE, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(2100, 24, 512, DENSE, 1, 2, WIDE, A(1X128, MN), B(128X128, K), D(BF16)),

    /* Groups: forms, 64-bit sizes, sizes to be clamped, empty ones, more than two times the slots
     * of the ring of items for one block, more than 32 and 64 groups. */
    FP8(60, 24, 144, RANGES, 4, 1, STARTS_ENDS | WIDE, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(60, 40, 100, RANGES, 5, 2, STARTS_COUNTS | FEWER, A(1X128, K), B(128X128, MN), D(BF16),
        INT64, ZERO),
    FP8(50, 16, 128, RANGES, 3, 1, ENDS | WILD, A(TENSOR, MN), B(TENSOR, MN), D(F16), CHANNEL),
    FP8(50, 16, 128, RANGES, 3, 1, COUNTS | WILD, A(OUTER, MN), B(TENSOR, MN), D(BF16), INT64),
    FP8(26, 24, 128, RANGES, 40, 1, COUNTS | FEWER, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(24, 16, 16, RANGES, 70, 2, STARTS_ENDS | WILD, A(NONE, MN), B(OUTER, MN), D(F32), ZERO),
    FP8(30, 8, 128, RANGES, 24, 1, MUTANTS | STARTS_COUNTS | WILD | C_IS_D, A(1X128, MN),
        B(1X128, MN), D(BF16), C(BF16)),
    FP8(24, 16, 64, RANGES, 33, 1, ENDS, A(OUTER, MN), B(128X128, K), D(BF16), BIAS(F32), INT64),
    FP8(20, 40, 144, MASKED, 3, 1, COUNTS | WILD | WIDE, A(1X128, MN), B(128X128, K), D(BF16),
        ZERO),
    FP8(9, 24, 128, MASKED, 5, 1, ENDS | PAIRS, A(TENSOR, MN), B(OUTER, MN), D(F32), C(F32), ALPHA),
    FP8(3, 20, 100, MASKED, 35, 2, COUNTS | FEWER, A(1X128, K), B(TENSOR, MN), D(F16), INT64,
        BIAS(BF16)),
    FP8(40, 136, 128, LABELS, 6, 2, WIDE, A(1X128, MN), B(128X128, K), D(BF16), ZERO),
    FP8(70, 16, 256, LABELS, 3, 1, WILD | C_IS_D, A(OUTER, MN), B(OUTER, MN), D(F32), C(F32)),
    FP8(300, 8, 16, LABELS, 5, 1, WILD | FEWER, A(NONE, MN), B(128X128, MN), D(F16), ZERO),
    FP8(30, 24, 0, RANGES, 3, 1, COUNTS, A(1X128, MN), B(128X128, K), D(BF16), BIAS(F32), ZERO),

    /* Sums of several ranges of k. */
    FP8(20, 140, 384, DENSE, 1, 1, PAIRS, A(1X128, MN), B(128X128, K), D(BF16), SPLITS(2)),
    FP8(40, 21, 300, DENSE, 1, 2, C_IS_D, A(OUTER, MN), B(OUTER, MN), D(F16), C(F16), SPLITS(3),
        BIAS(F16)),
    FP8(40, 16, 300, RANGES, 4, 1, COUNTS | FEWER, A(1X128, MN), B(128X128, K), D(F32), SPLITS(3)),
    FP8(12, 16, 256, MASKED, 3, 1, COUNTS, A(TENSOR, MN), B(1X128, K), D(BF16), ALPHA, SPLITS(2)),
    FP8(30, 16, 256, LABELS, 3, 1, WIDE, A(1X128, K), B(128X128, MN), D(BF16), ZERO, SPLITS(2)),

    /* Behind another grid. */
    FP8(70, 40, 200, DENSE, 1, 1, MUTANTS | BEHIND | OVERLAP | C_IS_D, A(1X128, MN), B(128X128, K),
        D(BF16)),
    FP8(20, 24, 200, DENSE, 1, 1, MUTANTS | BEHIND | OVERLAP | C_IS_D, A(OUTER, MN), B(OUTER, MN),
        D(BF16), C(BF16), ALPHA, BIAS(F32)),
    FP8(40, 24, 128, RANGES, 4, 1, MUTANTS | BEHIND | STARTS_ENDS, A(1X128, MN), B(128X128, K),
        D(BF16), ZERO),
    FP8(30, 24, 200, DENSE, 1, 1, BEHIND | WIDE, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(9, 24, 128, MASKED, 3, 1, BEHIND | OVERLAP | COUNTS, A(TENSOR, MN), B(128X128, K), D(F32)),
    FP8(40, 24, 128, LABELS, 3, 1, BEHIND | OVERLAP, A(1X128, MN), B(128X128, K), D(BF16), ZERO),
    FP8(20, 24, 256, DENSE, 1, 1, BEHIND | OVERLAP, A(1X128, MN), B(128X128, K), D(BF16),
        SPLITS(2)),

    /* W4A8, in the same order. */
    W4A8(20, 72, 256, DENSE, 1, 1, WIDE | FEWER, A(1X128, MN), K(128, BF16, MN_MAJOR), D(BF16)),
    W4A8(20, 72, 256, DENSE, 1, 1, WIDE, A(OUTER, MN), K(128, BF16, K_MAJOR), D(BF16)),
    W4A8(20, 72, 512, DENSE, 1, 1, WIDE, A(OUTER, MN), K(128, BF16, INTERLEAVED4), D(BF16)),
    W4A8(9, 136, 192, DENSE, 1, 2, PAIRS, A(TENSOR, MN), K(64, F16, MN_MAJOR), D(F16), ALPHA,
         .group_k_offset = 32),
    W4A8(33, 64, 160, DENSE, 1, 1, ALL_OF_B, A(OUTER, MN), K(128, F32, K_MAJOR), D(F32), BIAS(BF16),
         .group_k_offset = 96),
    W4A8(17, 40, 288, DENSE, 1, 1, ALL_OF_B, A(NONE, MN), K(32, E4M3, K_MAJOR), D(BF16), CHANNEL),
    W4A8(24, 72, 256, DENSE, 1, 1, PAIRS, A(1X128, K), K(32, BF16, INTERLEAVED4), D(F16), C(F16)),
    W4A8(5, 8, 320, DENSE, 1, 1, WIDE | DEVICE, A(1X128, K), K(64, F32, MN_MAJOR), D(BF16), ALPHA),
    W4A8(12, 72, 320, DENSE, 1, 1, C_IS_D, A(TENSOR, MN), K(0, BF16, MN_MAJOR), D(F32), C(F32)),
    W4A8(6, 72, 128, DENSE, 1, 1, PLAIN, A(NONE, MN), B(NONE, MN), D(BF16), BIAS(F16)),
    W4A8(12, 64, 128, DENSE, 1, 1, PLAIN, A(OUTER, MN), B(OUTER, MN), D(F16)),
    W4A8(40, 24, 256, DENSE, 1, 1, WIDE, A(1X128, MN), B(TENSOR, MN), D(BF16), C(BF16), CHANNEL),
    W4A8(10, 24, 0, DENSE, 1, 1, PLAIN, A(1X128, MN), K(128, BF16, MN_MAJOR), D(BF16), BIAS(F32)),
    W4A8(300, 72, 0, DENSE, 1, 1, WIDE, A(OUTER, MN), K(128, BF16, MN_MAJOR), D(BF16)),
    W4A8(60, 72, 256, RANGES, 4, 1, STARTS_ENDS | WIDE, A(OUTER, MN), K(128, BF16, MN_MAJOR),
         D(BF16)),
    W4A8(60, 40, 160, RANGES, 5, 2, STARTS_COUNTS | FEWER, A(1X128, K), K(32, F16, MN_MAJOR),
         D(BF16), INT64, ZERO),
    W4A8(50, 16, 128, RANGES, 3, 1, ENDS | WILD | ALL_OF_B, A(TENSOR, MN), K(64, BF16, K_MAJOR),
         D(F16), CHANNEL),
    W4A8(44, 24, 128, RANGES, 40, 1, MUTANTS | COUNTS | WILD, A(OUTER, MN), K(128, E4M3, MN_MAJOR),
         D(BF16)),
    W4A8(30, 24, 64, RANGES, 24, 1, MUTANTS | STARTS_COUNTS | WILD, A(1X128, MN),
         K(64, E4M3, MN_MAJOR), D(BF16)),
    W4A8(30, 16, 0, RANGES, 24, 1, MUTANTS | COUNTS, A(OUTER, MN), K(128, BF16, MN_MAJOR), D(F16)),
    W4A8(30, 16, 0, RANGES, 24, 1, MUTANTS | COUNTS, A(OUTER, MN), K(32, BF16, MN_MAJOR), D(F32)),
    W4A8(20, 72, 192, MASKED, 3, 1, COUNTS | WILD | WIDE, A(1X128, MN), K(128, BF16, MN_MAJOR),
         D(BF16), ZERO),
    W4A8(6, 16, 96, MASKED, 35, 2, ENDS, A(TENSOR, MN), K(32, F32, MN_MAJOR), D(F32), C(F32)),
    W4A8(40, 136, 128, LABELS, 6, 2, WIDE, A(OUTER, MN), K(64, BF16, MN_MAJOR), D(BF16), ZERO),
    W4A8(20, 72, 640, DENSE, 1, 1, PAIRS, A(1X128, MN), K(128, BF16, MN_MAJOR), D(BF16), SPLITS(3)),
    W4A8(40, 24, 256, RANGES, 4, 1, COUNTS, A(OUTER, MN), K(32, BF16, MN_MAJOR), D(F32), SPLITS(5)),
    W4A8(20, 72, 256, DENSE, 1, 1, MUTANTS | BEHIND | OVERLAP | C_IS_D, A(1X128, MN),
         K(128, BF16, MN_MAJOR), D(BF16), C(BF16)),
    W4A8(40, 24, 128, RANGES, 4, 1, MUTANTS | BEHIND, A(OUTER, MN), K(64, BF16, MN_MAJOR), D(BF16)),
    W4A8(40, 24, 128, RANGES, 4, 1, MUTANTS | BEHIND, A(OUTER, MN), K(128, F16, K_MAJOR), D(F16)),
    W4A8(27, 136, 256, DENSE, 1, 1, WIDE | C_IS_D | BEHIND | OVERLAP, A(1X128, MN),
         K(128, BF16, MN_MAJOR), D(BF16), C(BF16)),
    /* The standard grid's A has scales along k; once round the longest ring without. */
    W4A8(3, 8, 4640, DENSE, 1, 1, MUTANTS, A(OUTER, MN), K(128, BF16, MN_MAJOR), D(BF16)),
    /* Scales of four groups by one load: whole turns and one that is not, ranges of k that begin
     * inside a turn. */
    W4A8(20, 72, 1152, DENSE, 1, 1, FOURS | WIDE, A(OUTER, MN), K(128, BF16, K_MAJOR), D(BF16)),
    W4A8(20, 72, 1184, RANGES, 3, 1, FOURS | COUNTS, A(TENSOR, MN), K(128, F16, K_MAJOR), D(F16)),
    W4A8(9, 136, 1024, MASKED, 2, 1, FOURS | COUNTS, A(1X128, MN), K(128, E4M3, K_MAJOR), D(BF16)),
    W4A8(9, 72, 1280, DENSE, 1, 1, FOURS, A(OUTER, MN), K(128, F32, K_MAJOR), D(F32)),
    W4A8(9, 72, 1536, DENSE, 1, 1, FOURS | WIDE, A(1X128, K), K(128, BF16, INTERLEAVED4), D(BF16)),
    W4A8(20, 72, 1280, DENSE, 1, 1, FOURS, A(OUTER, MN), K(128, BF16, K_MAJOR), D(F32), SPLITS(2)),
    /* The same by words, each with one of them. */
    W4A8(20, 72, 1280, DENSE, 1, 1, FOURS | WIDE, A(OUTER, MN), K(128, BF16, MN_MAJOR), D(BF16)),
    W4A8(9, 72, 1184, RANGES, 3, 1, FOURS | COUNTS, A(TENSOR, MN), K(128, E4M3, MN_MAJOR), D(F16)),
    W4A8(9, 136, 1152, DENSE, 1, 1, FOURS, A(1X128, MN), K(128, F32, MN_MAJOR), D(BF16)),
    W4A8(9, 72, 1024, MASKED, 2, 1, FOURS | COUNTS, A(OUTER, MN), K(128, F16, MN_MAJOR), D(BF16)),
    /* One for all of k; and scales that are asked for before the block's warps have met, behind
     * another grid. */
    W4A8(20, 72, 1152, DENSE, 1, 1, FOURS | WIDE, A(OUTER, MN), K(0, BF16, MN_MAJOR), D(BF16)),
    W4A8(20, 72, 1152, DENSE, 1, 1, MUTANTS | BEHIND | FOURS | WIDE, A(OUTER, MN),
         K(128, BF16, K_MAJOR), D(BF16)),
    W4A8(20, 72, 1280, DENSE, 1, 2, BEHIND | FOURS | WIDE, A(1X128, MN), K(128, BF16, MN_MAJOR),
         D(BF16)),
    /* Tiles below one another that are stored at the same time: a box that reached past its own
     * would be seen. */
    W4A8(189, 72, 256, DENSE, 1, 2, BEHIND | WIDE, A(OUTER, MN), K(128, BF16, K_MAJOR), D(BF16)),
    /* Scales on their way for one tile while those of others are stored, over more items than their
     * ring holds. */
    W4A8(8, 1160, 640, DENSE, 1, 1, FOURS | WIDE, A(OUTER, MN), K(128, BF16, K_MAJOR), D(BF16)),
    W4A8(40, 264, 512, RANGES, 6, 1, FOURS | COUNTS, A(1X128, MN), K(128, BF16, K_MAJOR), D(BF16)),
    /* More than one band of the narrowest tiles, and blocks that begin in the second. */
    W4A8(270, 72, 32, DENSE, 1, 18, PLAIN, A(OUTER, MN), K(128, BF16, MN_MAJOR), D(BF16)),

    /* Uneven loads: one group with all rows, one row each over 256, Zipf. */
    FP8(150, 72, 256, RANGES, 9, 2, COUNTS | LOAD_ONE, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(256, 8, 32, RANGES, 256, 2, ENDS | WIDE | LOAD_EACH, A(1X128, MN), B(128X128, K), D(BF16)),
    FP8(200, 16, 128, RANGES, 64, 2, COUNTS | LOAD_ZIPF, A(1X128, MN), B(128X128, K), D(BF16)),
    W4A8(150, 72, 256, RANGES, 9, 2, COUNTS | LOAD_ONE, A(OUTER, MN), K(128, BF16, MN_MAJOR),
         D(BF16)),
    W4A8(256, 8, 32, RANGES, 256, 2, ENDS | WIDE | LOAD_EACH, A(OUTER, MN), K(32, BF16, MN_MAJOR),
         D(BF16)),
    W4A8(256, 8, 32, RANGES, 256, 2, STARTS_COUNTS | LOAD_EACH, A(OUTER, MN),
         K(128, BF16, MN_MAJOR), D(BF16)),
    W4A8(200, 16, 128, RANGES, 64, 2, COUNTS | LOAD_ZIPF, A(OUTER, MN), K(128, BF16, MN_MAJOR),
         D(BF16)),
    W4A8(200, 16, 128, RANGES, 64, 2, STARTS_ENDS | LOAD_ZIPF, A(OUTER, MN), K(64, BF16, MN_MAJOR),
         D(BF16)),

    /* Row-major int4 weights: dense, in groups, behind the bounds of labels, ahead of sums. */
    RAW(20, 72, 256, DENSE, 1, 1, WIDE, A(1X128, MN), K(128, BF16, MN_MAJOR), D(BF16)),
    RAW(30, 40, 192, RANGES, 5, 2, ENDS, A(OUTER, MN), K(64, BF16, K_MAJOR), D(BF16),
        .group_k_offset = 32),
    RAW(20, 72, 160, MASKED, 3, 1, COUNTS, A(TENSOR, MN), K(128, F16, MN_MAJOR), D(F16), ALPHA,
        .group_k_offset = 96),
    RAW(40, 136, 96, LABELS, 4, 2, WIDE | ALL_OF_B, A(OUTER, MN), K(128, BF16, K_MAJOR), D(BF16),
        ZERO),
    RAW(20, 72, 640, DENSE, 1, 1, PAIRS, A(OUTER, MN), K(128, F32, MN_MAJOR), D(F32), SPLITS(3)),

    /* Groups of one block, many more than the ring of items has slots, for kernels that serve no
     * ranges. */
    FP8(6, 16, 64, MASKED, 24, 1, MUTANTS | COUNTS | WILD, A(1X128, MN), B(128X128, K), D(BF16)),

    /* Dense tiles of one block, more than the ring of items has slots: some warps pass over the
     * first item there (tile/direct.h). */
    FP8(520, 8, 16, DENSE, 1, 1, MUTANTS | WIDE, A(1X128, MN), B(128X128, K), D(BF16)),
    W4A8(8, 1160, 128, DENSE, 1, 1, MUTANTS | WIDE, A(OUTER, MN), K(128, BF16, MN_MAJOR), D(BF16)),
    W4A8(8, 520, 64, DENSE, 1, 1, MUTANTS | WIDE, A(OUTER, MN), K(64, BF16, MN_MAJOR), D(BF16)),

    /* Boxes of a D that has not the straight way (tile/store_across.h). */
    W4A8(20, 72, 128, DENSE, 1, 1, MUTANTS | WIDE, A(OUTER, MN), K(128, BF16, MN_MAJOR), D(F16)),

    /* So many turns that all copies of scales that may be on their way are. */
    W4A8(3, 8, 4640, DENSE, 1, 1, MUTANTS | FOURS | WIDE, A(OUTER, MN), K(128, BF16, K_MAJOR),
         D(BF16)),

    /* Groups by their sizes, in two launches: what both computed would be added to C twice. */
    FP8(200, 16, 128, RANGES, 64, 2, BY_SIZE | COUNTS | LOAD_ZIPF | C_IS_D, A(1X128, MN),
        B(128X128, K), D(BF16), C(BF16)),
    FP8(200, 16, 128, RANGES, 64, 2, BY_SIZE | COUNTS, A(1X128, MN), B(128X128, K), D(BF16)),
    W4A8(200, 16, 128, RANGES, 64, 2, BY_SIZE | COUNTS, A(OUTER, MN), K(128, BF16, MN_MAJOR),
         D(BF16)),
    FP8(20, 40, 144, MASKED, 5, 2, BY_SIZE | COUNTS | WILD | WIDE, A(1X128, MN), B(128X128, K),
        D(BF16), ZERO),
    FP8(60, 24, 128, LABELS, 6, 2, BY_SIZE | WILD, A(1X128, MN), B(128X128, K), D(BF16), ZERO),
    W4A8(200, 16, 128, RANGES, 64, 2, BY_SIZE | STARTS_ENDS | LOAD_ZIPF | C_IS_D, A(OUTER, MN),
         K(128, BF16, MN_MAJOR), D(BF16), C(BF16)),
    W4A8(200, 16, 128, RANGES, 64, 2, BY_SIZE | ENDS | LOAD_ZIPF | C_IS_D, A(OUTER, MN),
         K(64, BF16, MN_MAJOR), D(BF16), C(BF16)),
    W4A8(60, 24, 128, LABELS, 6, 2, BY_SIZE | WILD, A(OUTER, MN), K(128, BF16, MN_MAJOR), D(BF16),
         ZERO),
    W4A8(20, 72, 192, MASKED, 5, 2, BY_SIZE | COUNTS | WILD | WIDE, A(OUTER, MN),
         K(128, BF16, MN_MAJOR), D(BF16), ZERO),
};
enum { ROWS = sizeof table / sizeof table[0] };

/* For the kernels before and behind a GEMM, whose blocks do more at a time: enough for their loops
 * to go round. */
static const harness_problem long_table[] = {
    FP8(1100, 8, 160, DENSE, 1, 1, WIDE, A(NONE, MN), B(NONE, MN), D(BF16), SPLITS(2)),
    FP8(1100, 8, 16, LABELS, 5, 1, WILD, A(NONE, MN), B(NONE, MN), D(F16), ZERO),
    FP8(33, 8, 0, MASKED, 40, 1, COUNTS, A(NONE, MN), B(NONE, MN), D(F32), ZERO),
};
enum { LONG_ROWS = sizeof long_table / sizeof long_table[0] };

/* The number behind the last such letter of a kernel's name. */
static int64_t number_behind(const char *name, char letter)
{
    const char *at = strrchr(name, letter);
    return at != NULL ? strtoll(at + 1, NULL, 10) : 0;
}

/* The standard grid: `from` with the extents and SMs that the kernel's tile and ring ask for. */
static void grid_make(const harness_kernel *kernel, const harness_problem *from,
                      harness_problem list[HARNESS_GRID])
{
    const kernel_row *row = &kernel_table[kernel->index];
    const int64_t m = row->tile_m, n = row->tile_n;
    const int64_t k = number_behind(kernel->name, 'k'), stages = number_behind(kernel->name, 's');
    const int64_t unit = m * row->cluster_m; /* one row tile more leaves a cluster half idle */
    const int64_t odd = n > 27 ? 27 : n - 5, fours = n > 32 ? n - 28 : n - 4;
    const int64_t other = n > 32 ? n - 32 : 2 * n;
    const bool fp8 = from->problem.family == HALFBYTE_FAMILY_FP8;
    const struct {
        int64_t m, n, k;
        uint64_t draw;
        uint32_t sms;
    } grid[HARNESS_GRID] = {
        {m / 2 + 5, n / 2 + 8, 0, PAIRS, 1},       {1, 8, k, WIDE, 1},
        {m, n, (stages - 1) * k, WIDE, 1},         {m / 2 + 1, fours, stages * k, PLAIN, 1},
        {m / 2, odd, (stages + 1) * k - 80, 2, 1}, {unit + 5, other, 4 * k, WIDE, 1},
        {m - 1, n, (2 * stages + 1) * k, WIDE, 1}, {unit + 4, n + 1, 3 * k, PAIRS, 2},
    };
    for (int i = 0; i < HARNESS_GRID; i++) {
        /* W4A8 takes multiples of 8 and 32. */
        list[i] = *from;
        list[i].problem.m_max = grid[i].m;
        list[i].problem.n = fp8 ? grid[i].n : (grid[i].n + 7) / 8 * 8;
        list[i].problem.k = fp8 ? grid[i].k : (grid[i].k + 31) / 32 * 32;
        if (!harness_accepts(kernel, &list[i].problem)) {
            list[i].problem.k = k; /* it serves no empty sum */
        }
        list[i].blocks = grid[i].sms * row->cluster_m * row->cluster_n;
        list[i].draw = grid[i].draw + (uint64_t)i * GEMM_CASE_SEED;
    }
}

/* Adds the row, if the kernel accepts it, and before the first one of a GEMM the grid; returns the
 * new count. */
static int row_add(const harness_kernel *kernel, const harness_problem *row, int number,
                   harness_problem *list, int count)
{
    if (!harness_accepts(kernel, &row->problem)) {
        return count;
    }
    if (count == 0 && kernel->is_gemm) {
        grid_make(kernel, row, list);
        count = HARNESS_GRID;
    }
    list[count] = *row;
    list[count].draw += (uint64_t)number * GEMM_CASE_SEED;
    return count + 1;
}

int harness_problems(const harness_kernel *kernel, harness_problem list[HARNESS_MOST_PROBLEMS])
{
    _Static_assert(HARNESS_GRID + ROWS + LONG_ROWS <= HARNESS_MOST_PROBLEMS, "all fit");
    int count = 0;
    for (int i = 0; i < ROWS; i++) {
        count = row_add(kernel, &table[i], i + 1, list, count);
    }
    for (int i = 0; i < LONG_ROWS && !kernel->is_gemm; i++) {
        count = row_add(kernel, &long_table[i], ROWS + i + 1, list, count);
    }
    return count;
}
