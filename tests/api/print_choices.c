/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the kernel that a run on an H200 takes, for each line "family layout groups m n k" of
 * standard input; m: rows of a group.  Exit status 1: a line that is no such thing, or a problem
 * that no kernel serves.
 */
#include <stdio.h>
#include <string.h>

#include "api/gemm_select.h"
#include "api/problem_check.h"

enum { SMS = 132 };

/* The problems that the measurements are of. */
static halfbyte_problem problem_of(bool int4, const char *layout, int64_t groups, int64_t m,
                                   int64_t n, int64_t k)
{
    const bool masked = strcmp(layout, "masked") == 0;
    const bool dense = strcmp(layout, "dense") == 0;
    halfbyte_problem p = halfbyte_problem_init();
    p.family = int4 ? HALFBYTE_FAMILY_W4A8 : HALFBYTE_FAMILY_FP8;
    p.grouping = dense    ? HALFBYTE_GROUPING_DENSE
                 : masked ? HALFBYTE_GROUPING_MASKED
                          : HALFBYTE_GROUPING_RANGES;
    p.m_max = masked ? m : groups * m;
    p.n = n;
    p.k = k;
    p.groups = groups;
    p.d_type = HALFBYTE_TYPE_BF16;
    p.a_scale.mode = int4 ? HALFBYTE_SCALE_OUTER : HALFBYTE_SCALE_1X128;
    p.b_scale.mode = int4 ? HALFBYTE_SCALE_K_GROUP : HALFBYTE_SCALE_128X128;
    if (int4) {
        p.b_scale.type = HALFBYTE_TYPE_BF16;
        p.b_layout = HALFBYTE_B_PACKED;
        p.weight_group_size = 128;
    }
    problem_resolve(&p, HALFBYTE_PROFILE_SM90);
    return p;
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

int main(void)
{
    static const char *const families[] = {"fp8_block", "w4a8", NULL};
    static const char *const layouts[] = {"dense", "contiguous", "offsets", "masked", NULL};
    char family[16], layout[16];
    long long groups, m, n, k;
    int read;
    while ((read = scanf("%15s %15s %lld %lld %lld %lld", family, layout, &groups, &m, &n, &k)) ==
           6) {
        if (!is_one_of(family, families) || !is_one_of(layout, layouts)) {
            return 1;
        }
        const halfbyte_problem p = problem_of(strcmp(family, "w4a8") == 0, layout, groups, m, n, k);
        halfbyte_operands operands = halfbyte_operands_init();
        operands.m = p.m_max;
        const gemm_kernel_set all = gemm_select(&p, ((gemm_kernel_set)1 << KERNEL_COUNT) - 1);
        if (all == 0) {
            return 1;
        }
        printf("%s\n", kernel_table[gemm_kernel_for(all, NULL, &p, &operands, SMS)].name);
    }
    return read == EOF ? 0 : 1;
}
