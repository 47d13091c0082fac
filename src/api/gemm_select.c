/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gemm_select.h"

#include <stdlib.h>
#include <string.h>

#include "api/error.h"

/* ---- what the kernels serve ------------------------------------------------------------------ */

static bool varies_along_k(halfbyte_scale_mode mode)
{
    return mode == HALFBYTE_SCALE_1X128 || mode == HALFBYTE_SCALE_128X128 ||
           mode == HALFBYTE_SCALE_K_GROUP;
}

/* A kernel whose parameters are gemm_fp8_params: one problem, no terms. */
static bool accepts_fp8_block_dense(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_FP8 && problem->grouping == HALFBYTE_GROUPING_DENSE &&
           problem->a_scale.mode == HALFBYTE_SCALE_1X128 &&
           problem->b_scale.mode == HALFBYTE_SCALE_128X128 &&
           problem->d_type == HALFBYTE_TYPE_BF16 && problem->k_splits == 1 &&
           problem->alpha_mode == HALFBYTE_ALPHA_NONE && problem->c_type == HALFBYTE_TYPE_NONE &&
           problem->bias_type == HALFBYTE_TYPE_NONE &&
           problem->channel_scale_type == HALFBYTE_TYPE_NONE;
}

static bool accepts_fp8(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_FP8;
}

/* FP8 whose B has one scale in 128 x 128, or none along k. */
static bool accepts_fp8_block(const halfbyte_problem *problem)
{
    return accepts_fp8(problem) && (problem->b_scale.mode == HALFBYTE_SCALE_128X128 ||
                                    !varies_along_k(problem->b_scale.mode));
}

static bool accepts_w4a8(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_W4A8 && problem->b_layout == HALFBYTE_B_PACKED;
}

/* Tests that no row names at the moment. */
static bool (*const unused[])(const halfbyte_problem *) = {accepts_fp8_block, accepts_w4a8};

typedef bool accept_function(const halfbyte_problem *problem);

static accept_function *const accepts_table[] = {
#define KERNEL_ROW(name, threads, smem_bytes, tile_m, tile_n, cluster_m, cluster_n, box_m, box_n,  \
                   most_m, accepts)                                                                \
    accepts,
#include "api/kernels.def"
#undef KERNEL_ROW
};
_Static_assert(KERNEL_COUNT <= 64, "gemm_kernel_set has a bit for each kernel");

bool gemm_kernel_accepts(int index, const halfbyte_problem *problem)
{
    (void)unused;
    return accepts_table[index](problem);
}

/* Does a word of HALFBYTE_SKIP_KERNELS occur in the name? */
static bool is_skipped(const char *name)
{
    const char *words = getenv("HALFBYTE_SKIP_KERNELS");
    while (words != NULL && *words != '\0') {
        const size_t length = strcspn(words, ",");
        for (const char *at = name; length > 0 && *at != '\0'; at++) {
            if (strncmp(at, words, length) == 0) {
                return true;
            }
        }
        words += length + (words[length] == ',');
    }
    return false;
}

gemm_kernel_set gemm_select(const halfbyte_problem *problem, gemm_kernel_set built)
{
    gemm_kernel_set found = 0;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (gemm_set_has(built, i) && gemm_kernel_accepts(i, problem) &&
            !is_skipped(kernel_table[i].name)) {
            found |= (gemm_kernel_set)1 << i;
            if (kernel_table[i].most_m == 0 || kernel_table[i].most_m >= problem->m_max) {
                return found; /* no run reaches the rows behind it */
            }
        }
    }
    return 0; /* none that takes the largest m */
}

halfbyte_status gemm_select_failed(const halfbyte_problem *problem)
{
    if (problem->family == HALFBYTE_FAMILY_W4A8) {
        return status_fail(HALFBYTE_ERR_UNSUPPORTED,
                           "no GPU kernel of this version serves family W4A8");
    }
    return status_fail(HALFBYTE_ERR_UNSUPPORTED,
                       "no GPU kernel serves the problem: HALFBYTE_SKIP_KERNELS leaves none");
}

/* ---- the choice of a run --------------------------------------------------------------------- */

/* Rows that a group can be expected to have: the hint, or what is known. */
static int64_t rows_of_group(const halfbyte_problem *problem, const halfbyte_operands *operands)
{
    if (problem->grouping == HALFBYTE_GROUPING_DENSE) {
        return operands->m;
    }
    if (operands->expected_m > 0) {
        return operands->expected_m < operands->m ? operands->expected_m : operands->m;
    }
    return problem->grouping == HALFBYTE_GROUPING_MASKED
               ? operands->m
               : (operands->m + problem->groups - 1) / problem->groups;
}

int gemm_kernel_for(gemm_kernel_set kernels, const halfbyte_problem *problem,
                    const halfbyte_operands *operands)
{
    const int64_t rows = rows_of_group(problem, operands);
    int kernel = 0;
    /* The set was closed by a kernel for any m, or for the plan's m_max, so one is always found. */
    while (!gemm_set_has(kernels, kernel) ||
           (kernel_table[kernel].most_m != 0 && kernel_table[kernel].most_m < rows)) {
        kernel++;
    }
    return kernel;
}

void gemm_describe(describe_line *line, gemm_kernel_set kernels)
{
    static const char prefix[] = "halfbyte_sm90_";
    const char *separator = " kernels=";
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (gemm_set_has(kernels, i)) {
            describe_add(line, "%s%s", separator, kernel_table[i].name + sizeof prefix - 1);
            separator = ",";
            if (kernel_table[i].most_m != 0) {
                describe_add(line, "(m<=%u)", (unsigned)kernel_table[i].most_m);
            }
        }
    }
}
