/* SPDX-License-Identifier: Apache-2.0 */
/* From a problem and its operands to what a kernel is given. */
#include <string.h>

#include "api/gemm_launch.h"
#include "api/problem_check.h"

_Static_assert(ELEMENT_NONE == (int)HALFBYTE_TYPE_NONE && ELEMENT_F32 == (int)HALFBYTE_TYPE_F32 &&
                   ELEMENT_BF16 == (int)HALFBYTE_TYPE_BF16 &&
                   ELEMENT_F16 == (int)HALFBYTE_TYPE_F16 && ELEMENT_E4M3 == (int)HALFBYTE_TYPE_E4M3,
               "kernels number the types as the public header does");

static bool is_outside_k(halfbyte_scale_mode mode)
{
    return mode == HALFBYTE_SCALE_TENSOR || mode == HALFBYTE_SCALE_OUTER;
}

/* Scales along k; absent ones stay NULL. */
static void scales_fill(const halfbyte_scale_spec *spec, const halfbyte_scale_in *scale,
                        gemm_scales *to)
{
    if (spec->mode != HALFBYTE_SCALE_1X128 && spec->mode != HALFBYTE_SCALE_128X128 &&
        spec->mode != HALFBYTE_SCALE_K_GROUP) {
        return;
    }
    to->data = scale->data;
    to->group_stride = scale->group_stride;
    to->mn_shift = spec->mode == HALFBYTE_SCALE_128X128 ? 7 : 0;
    to->type = (int32_t)spec->type;
    switch (spec->layout) {
    case HALFBYTE_SCALE_MN_MAJOR:
        to->stride_mn = 1;
        to->stride_k = scale->stride_k;
        to->stride_k4 = 4 * scale->stride_k;
        break;
    case HALFBYTE_SCALE_K_MAJOR:
        to->stride_mn = scale->stride_mn;
        to->stride_k = 1;
        to->stride_k4 = 4;
        break;
    case HALFBYTE_SCALE_INTERLEAVED4:
        to->stride_mn = 4;
        to->stride_k = 1;
        to->stride_k4 = scale->stride_k;
        break;
    }
}

/* A scale of the epilogue: of a row, of a column, of all. */
static void outer_scale_fill(const halfbyte_scale_spec *spec, const halfbyte_scale_in *scale,
                             gemm_vector *to)
{
    if (is_outside_k(spec->mode)) {
        to->data = scale->data;
        to->group_stride = scale->group_stride;
        to->stride = spec->mode == HALFBYTE_SCALE_OUTER;
        to->type = (int32_t)spec->type;
    }
}

static void vector_fill(halfbyte_type type, const halfbyte_vector_in *vector, gemm_vector *to)
{
    if (type != HALFBYTE_TYPE_NONE) {
        to->data = vector->data;
        to->group_stride = vector->group_stride;
        to->stride = 1;
        to->type = (int32_t)type;
    }
}

/* How wide D may be stored: gemm_matrix.vectors. */
static int32_t vectors_of(const gemm_matrix *d, int64_t n)
{
    const uint64_t bytes = d->type == ELEMENT_F32 ? 4 : 2;
    const uint64_t together =
        (uintptr_t)d->data | (uint64_t)d->ld * bytes | (uint64_t)d->plane_stride * bytes;
    if (together % 16 == 0 && n % 8 == 0) {
        return 2;
    }
    return together % (2 * bytes) == 0;
}

static void epilogue_fill(const halfbyte_problem *problem, const halfbyte_operands *operands,
                          gemm_epilogue *to)
{
    const bool masked = problem->grouping == HALFBYTE_GROUPING_MASKED;
    to->d.data = operands->d.data;
    to->d.ld = operands->d.ld;
    to->d.plane_stride = masked ? operands->d.group_stride : 0;
    to->d.type = (int32_t)problem->d_type;
    to->d.vectors = vectors_of(&to->d, problem->n);
    if (problem->c_type != HALFBYTE_TYPE_NONE && operands->beta != 0.0f) {
        to->c.data = (void *)(uintptr_t)operands->c.data;
        to->c.ld = operands->c.ld;
        to->c.plane_stride = masked ? operands->c.group_stride : 0;
        to->c.type = (int32_t)problem->c_type;
        to->beta = operands->beta;
    }
    outer_scale_fill(&problem->a_scale, &operands->a_scale, &to->row_scale);
    to->row_scale_by_group = problem->a_scale.mode == HALFBYTE_SCALE_TENSOR;
    outer_scale_fill(&problem->b_scale, &operands->b_scale, &to->column_scale);
    vector_fill(problem->channel_scale_type, &operands->channel_scale, &to->channel_scale);
    vector_fill(problem->bias_type, &operands->bias, &to->bias);
    to->has_alpha = problem->alpha_mode != HALFBYTE_ALPHA_NONE;
    to->alpha = operands->alpha;
    to->alpha_pointer =
        problem->alpha_mode == HALFBYTE_ALPHA_DEVICE ? operands->alpha_pointer : NULL;
    to->has_terms = to->row_scale.data != NULL || to->column_scale.data != NULL ||
                    to->channel_scale.data != NULL || to->bias.data != NULL || to->has_alpha ||
                    to->c.data != NULL;
}

static int64_t stride_or_one(int64_t stride)
{
    return stride == 0 ? 1 : stride;
}

static void groups_fill(const halfbyte_problem *problem, const halfbyte_groups *groups,
                        gemm_groups *to)
{
    to->count = (int32_t)problem->groups;
    to->rows_least = 0;
    to->rows_most = INT32_MAX;
    if (problem->grouping == HALFBYTE_GROUPING_DENSE) {
        to->kind = GEMM_DENSE;
        return;
    }
    to->kind = problem->grouping == HALFBYTE_GROUPING_MASKED ? GEMM_MASKED : GEMM_RANGES;
    to->starts = groups->starts;
    to->ends = groups->ends;
    to->counts = groups->counts;
    to->labels = groups->labels;
    to->starts_stride = stride_or_one(groups->starts_stride);
    to->ends_stride = stride_or_one(groups->ends_stride);
    to->counts_stride = stride_or_one(groups->counts_stride);
    to->is_int64 = problem->index_type == HALFBYTE_INDEX_INT64;
}

static int32_t flags_of(const halfbyte_problem *problem, const halfbyte_operands *operands)
{
    const bool minus8 = problem->b_layout == HALFBYTE_B_PACKED &&
                        (operands->b_header->flags & HALFBYTE_PACKED_HOLDS_MINUS8) != 0;
    return ((problem->flags & HALFBYTE_WEIGHTS_CONSTANT) != 0 ? GEMM_WEIGHTS_EARLY : 0) |
           ((problem->flags & HALFBYTE_LAUNCH_DEPENDENTS) != 0 ? GEMM_LAUNCH_DEPENDENTS : 0) |
           (minus8 ? GEMM_HOLDS_MINUS8 : 0);
}

/* GEMM_D_PLAIN, GEMM_D_SCALED */
static int32_t plain_flags(const halfbyte_problem *problem, const gemm_epilogue *epilogue)
{
    if (problem->k_splits != 1 || problem->grouping == HALFBYTE_GROUPING_LABELS ||
        epilogue->d.type != ELEMENT_BF16 || epilogue->d.vectors != 2) {
        return 0;
    }
    const bool scaled = epilogue->column_scale.data == NULL &&
                        epilogue->channel_scale.data == NULL && epilogue->bias.data == NULL &&
                        !epilogue->has_alpha && epilogue->c.data == NULL;
    return (scaled ? GEMM_D_SCALED : 0) | (epilogue->has_terms ? 0 : GEMM_D_PLAIN);
}

/* GEMM_SCALES_BY_FOUR, GEMM_SCALES_BY_WORD: W4A8's scales of type `to->type` from `to->data` on. */
static int32_t scale_flags(const halfbyte_problem *problem, const gemm_scales *to)
{
    const int64_t groups = problem->groups;
    if (problem->family != HALFBYTE_FAMILY_W4A8 || to->data == NULL) {
        return 0;
    }
    /* ELEMENT_* have the values of halfbyte_type */
    const int64_t bytes = type_bytes((halfbyte_type)to->type);
    const bool by_four = to->stride_k == 1 && to->stride_k4 % 4 == 0 && to->stride_mn % 4 == 0 &&
                         (groups <= 1 || to->group_stride % 4 == 0) &&
                         (uintptr_t)to->data % (uintptr_t)(4 * bytes) == 0;
    /* n is a multiple of eight, so a word that holds a row's scale holds only rows'. */
    const bool by_word = (bytes == 4 || to->stride_mn == 1) && (uintptr_t)to->data % 4 == 0 &&
                         to->stride_k * bytes % 4 == 0 && to->stride_k4 == 4 * to->stride_k &&
                         (groups <= 1 || to->group_stride * bytes % 4 == 0);
    return (by_four ? GEMM_SCALES_BY_FOUR : 0) | (by_word ? GEMM_SCALES_BY_WORD : 0);
}

void gemm_params_fill(const halfbyte_problem *problem, const halfbyte_operands *operands,
                      gemm_params *params)
{
    memset(params, 0, sizeof *params);
    params->b_packed = operands->b.data;
    if (problem->k > 0) {
        scales_fill(&problem->a_scale, &operands->a_scale, &params->a_scale);
        scales_fill(&problem->b_scale, &operands->b_scale, &params->b_scale);
    }
    if (problem->weight_group_size == 0 && problem->b_scale.mode == HALFBYTE_SCALE_K_GROUP) {
        params->b_scale.stride_k = 0; /* one group: every block has its scale */
        params->b_scale.stride_k4 = 0;
    }
    if (problem->grouping != HALFBYTE_GROUPING_MASKED) {
        params->a_scale.group_stride = 0;
    }
    groups_fill(problem, &operands->groups, &params->groups);
    epilogue_fill(problem, operands, &params->epilogue);
    params->m = (int32_t)operands->m;
    params->n = (int32_t)problem->n;
    params->k_offset = (int32_t)problem->group_k_offset;
    params->k_blocks =
        problem->k == 0 ? 0 : (int32_t)((problem->k + problem->group_k_offset + 127) / 128);
    params->block_k = problem->weight_group_size == 32 || problem->weight_group_size == 64
                          ? (int32_t)problem->weight_group_size
                          : 128;
    params->k_groups =
        problem->k == 0 ? 0
                        : (int32_t)((problem->k + problem->group_k_offset + params->block_k - 1) /
                                    params->block_k);
    params->k_splits = 1;
    params->flags = flags_of(problem, operands);
    params->flags |= plain_flags(problem, &params->epilogue);
    params->flags |= scale_flags(problem, &params->b_scale);
}
