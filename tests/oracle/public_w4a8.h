/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The problems of the W4A8 test that users of grouped int4 x e4m3 kernels know: its extents, its
 * distributions and its tensors' layouts, for a test on the CPU and one on a GPU.
 *
 * 600 problems have several experts: tokens in {2, 4, 8, 16, 32} x k in {256, 512, 1024, 2048,
 * 4096, 7168} x n in {256, 512, 1024, 2048, 7168} x experts in {2, 4, 6, 8}, an expert drawn for
 * each token, so that some have none.  5 have one: tokens in {1, 2, 4, 8, 16}, k = 512, n = 1024.
 *
 *   A        normal bf16 numbers, quantised with one scale = largest / 448 for all
 *   B        int4 [experts, n, k], -8 .. 7 alike, row-major, the low nibble first
 *   scales   bf16, normal * 0.005 (so half are negative), one for 128 of k: INTERLEAVED4 where k is
 *            a multiple of 512, else MN_MAJOR
 *   groups   starts, and counts in the second of three words an expert (n, tokens, k)
 *   D        bf16, rows without gaps
 */
#ifndef HALFBYTE_TESTS_ORACLE_PUBLIC_W4A8_H
#define HALFBYTE_TESTS_ORACLE_PUBLIC_W4A8_H

#include "oracle/gemm_case.h"

enum { PUBLIC_SEVERAL = 600, PUBLIC_PROBLEMS = 605 };

/* The tolerance of that test, |D - reference| <= PUBLIC_ATOL + PUBLIC_RTOL |reference|: only to
 * show what it lets pass. */
#define PUBLIC_ATOL 0.1
#define PUBLIC_RTOL 0.01

struct public_problem {
    int64_t tokens, experts, n, k;
    uint64_t seed;
};

/* index < PUBLIC_PROBLEMS; the last five have one expert. */
struct public_problem public_problem_at(int index);

/* With row-major weights; free it with case_free(). */
void public_case_make(struct gemm_case *c, const struct public_problem *problem);

/* What the library packs from the weights of such a case, and where they go. */
halfbyte_int4_desc public_weights(const struct gemm_case *c);

#endif /* HALFBYTE_TESTS_ORACLE_PUBLIC_W4A8_H */
