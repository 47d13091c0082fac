/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/harness/harness.h"

#include <string.h>

#include "api/gemm_select.h"
#include "api/problem_check.h"
#include "cuda/kernel_table.h"
#include "kernels/pack_weights_params.h"

#define KERNEL_ROW(name, ...) void name(const void *params);
#include "api/kernels.def"
#undef KERNEL_ROW
#define GROUP_ROW(name, ...) void name(const void *params);
#include "api/group_kernels.def"
#undef GROUP_ROW
#define PACKER_ROW(name, ...) void name(const void *params);
#include "api/pack_kernels.def"
#undef PACKER_ROW

/* In the order of kernel_table. */
static const harness_kernel kernels[] = {
#define KERNEL_ROW(name, threads, smem_bytes, tile_m, tile_n, cluster_m, cluster_n, ...)           \
    {#name, name, KERNEL_INDEX_##name, true, threads, smem_bytes, (cluster_m) * (cluster_n)},
#include "api/kernels.def"
#undef KERNEL_ROW
#define GROUP_ROW(name, threads, smem_bytes)                                                       \
    {#name, name, KERNEL_INDEX_##name, false, threads, smem_bytes, 1},
#include "api/group_kernels.def"
#undef GROUP_ROW
};
_Static_assert(sizeof kernels / sizeof kernels[0] == KERNEL_GROUPS_END,
               "one kernel a row, found by the row's index");

/* Those that pack weights run ahead of products alone: they wait for nothing that could be missing,
 * and tests/emulator/test_pack_kernels.c is about them. */
static const harness_kernel packers[] = {
#define PACKER_ROW(name, threads, smem_bytes)                                                      \
    {#name, name, KERNEL_INDEX_##name, false, threads, smem_bytes, 1},
#include "api/pack_kernels.def"
#undef PACKER_ROW
};

const harness_kernel *harness_at(int index)
{
    return index < KERNEL_GROUPS_END ? &kernels[index] : &packers[index - packers[0].index];
}

const harness_kernel *harness_all(size_t *count)
{
    *count = sizeof kernels / sizeof kernels[0];
    return kernels;
}

const harness_kernel *harness_find(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].name, name) == 0) {
            return &kernels[i];
        }
    }
    return NULL;
}

/* Some GEMM serves the problem. */
static bool is_served(const halfbyte_problem *problem)
{
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (gemm_kernel_accepts(i, problem)) {
            return true;
        }
    }
    return false;
}

bool harness_accepts(const harness_kernel *kernel, const halfbyte_problem *problem)
{
    halfbyte_problem p = *problem;
    if (problem_check(problem, HALFBYTE_PROFILE_SM90) != HALFBYTE_SUCCESS || p.m_max == 0 ||
        p.n == 0) {
        return false;
    }
    const bool grouped = p.grouping != HALFBYTE_GROUPING_DENSE;
    problem_resolve(&p, HALFBYTE_PROFILE_SM90);
    switch (kernel->index) {
    case KERNEL_INDEX_halfbyte_sm90_group_bounds:
        return p.grouping == HALFBYTE_GROUPING_LABELS && is_served(&p);
    case KERNEL_INDEX_halfbyte_sm90_zero_padding:
        return grouped && (p.flags & HALFBYTE_ZERO_FILL_PADDING) != 0 && is_served(&p);
    case KERNEL_INDEX_halfbyte_sm90_add_splits: return p.k_splits > 1 && is_served(&p);
    default: return gemm_kernel_accepts(kernel->index, &p);
    }
}
