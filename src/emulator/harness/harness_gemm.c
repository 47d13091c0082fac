/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels whose parameters are gemm_params: any problem of the public API, through the very host
 * code that the GPU executor uses (api/gemm_launch.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/gemm_launch.h"
#include "api/problem_check.h"
#include "emulator/harness/gemm_case.h"
#include "emulator/harness/harness.h"

#define KERNEL_ROW(name, ...) void name(const void *params);
#include "api/kernels.def"
#undef KERNEL_ROW
#define GROUP_ROW(name, ...) void name(const void *params);
#include "api/group_kernels.def"
#undef GROUP_ROW

/* By index into kernel_table. */
static void (*const entries[])(const void *params) = {
#define KERNEL_ROW(name, ...) [KERNEL_INDEX_##name] = name,
#include "api/kernels.def"
#undef KERNEL_ROW
#define GROUP_ROW(name, ...) [KERNEL_INDEX_##name] = name,
#include "api/group_kernels.def"
#undef GROUP_ROW
};

enum { SWIZZLE_OF_TILES = 1 /* SWIZZLE_128B */ };

struct harness_instance {
    const harness_kernel *kernel;
    gemm_case data;
    unsigned char *wanted;
    void *workspace;
    size_t workspace_bytes;
    emu_memory *memory;
    gemm_launches launches;
};

/* ---- making ---------------------------------------------------------------------------------- */

static halfbyte_status encode(const void *context, const gemm_map *from, tensor_map *map)
{
    (void)context;
    const emu_tensor tensor = {
        .data = from->data,
        .element_bytes = 1,
        .rank = from->planes == 0 ? 2 : 3,
        .dims = {from->columns, from->rows, from->planes},
        .strides_bytes = {0, from->row_bytes, from->plane_bytes},
        .box = {GEMM_MAP_BOX_BYTES, from->box_rows, 1},
        .swizzle = SWIZZLE_OF_TILES,
    };
    return emu_tensor_map_encode(map, &tensor) ? HALFBYTE_SUCCESS : HALFBYTE_ERR_INTERNAL;
}

/* The kernels may touch the tensors and the workspace, and nothing else. */
static bool register_all(harness_instance *made)
{
    bool good = true;
    for (int i = 0; i < made->data.parts; i++) {
        const gemm_case_part *part = &made->data.part[i];
        good &= part->bytes == 0 ||
                emu_memory_add(made->memory, made->data.arena + part->offset, part->bytes,
                               part->name, part->is_output ? EMU_READ_WRITE : EMU_READ_ONLY);
    }
    good &= made->workspace_bytes == 0 ||
            emu_memory_add(made->memory, made->workspace, made->workspace_bytes, "workspace",
                           EMU_READ_WRITE);
    return good;
}

static bool launches_make(harness_instance *made, uint32_t blocks)
{
    halfbyte_problem problem = made->data.problem;
    problem_resolve(&problem, HALFBYTE_PROFILE_SM90);
    made->workspace_bytes = gemm_workspace_bytes(&problem);
    made->workspace = aligned_alloc(256, (made->workspace_bytes + 511) / 256 * 256);
    if (made->workspace == NULL || !register_all(made)) {
        return false;
    }
    const gemm_machine machine = {(int)blocks, encode, NULL};
    return gemm_launches_make(&machine, made->kernel->index, &problem, &made->data.operands,
                              made->workspace, &made->launches) == HALFBYTE_SUCCESS;
}

/* ---- interface ------------------------------------------------------------------------------- */

static bool accepts_fp8(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_FP8;
}

static halfbyte_problem state_problem(const harness_problem *p)
{
    halfbyte_problem problem = halfbyte_problem_init();
    problem.family = HALFBYTE_FAMILY_FP8;
    problem.groups = 1;
    problem.m_max = p->m;
    problem.n = p->n;
    problem.k = p->k;
    problem.d_type = HALFBYTE_TYPE_BF16;
    problem.a_scale.mode = HALFBYTE_SCALE_1X128;
    problem.b_scale.mode = HALFBYTE_SCALE_128X128;
    problem.b_scale.layout = HALFBYTE_SCALE_K_MAJOR;
    return problem;
}

static void destroy(harness_instance *instance)
{
    if (instance != NULL) {
        emu_memory_destroy(instance->memory);
        gemm_case_free(&instance->data);
        free(instance->wanted);
        free(instance->workspace);
        free(instance);
    }
}

static harness_instance *create(const harness_kernel *kernel, const harness_problem *problem,
                                uint64_t seed)
{
    harness_instance *made = aligned_alloc(64, (sizeof *made + 63) / 64 * 64);
    if (made == NULL) {
        return NULL;
    }
    memset(made, 0, sizeof *made);
    made->kernel = kernel;
    const halfbyte_problem stated = state_problem(problem);
    made->memory = emu_memory_create();
    if (made->memory == NULL || !gemm_case_make(&made->data, &stated, seed) ||
        (made->wanted = gemm_case_wanted(&made->data)) == NULL ||
        !launches_make(made, problem->blocks)) {
        destroy(made);
        return NULL;
    }
    return made;
}

/* Registers a thread that __launch_bounds__(threads, 1) leaves. */
static uint32_t registers_of(uint32_t threads)
{
    const uint32_t most = 65536 / threads / 8 * 8;
    return most < 255 ? most : 255;
}

static emu_status run(harness_instance *instance, const emu_config *config, emu_report *report,
                      uint64_t *mismatches)
{
    gemm_launches *launches = &instance->launches;
    gemm_case_poison(&instance->data);
    memset(instance->workspace, 0xa5, instance->workspace_bytes);
    if (launches->clear_bytes > 0) {
        memset(launches->clear, 0, launches->clear_bytes);
    }
    emu_status status = EMU_OK;
    for (int i = 0; i < launches->count && status == EMU_OK; i++) {
        const gemm_launch *one = &launches->launch[i];
        const kernel_row *row = &kernel_table[one->kernel];
        const emu_launch launch = {
            .name = row->name,
            .kernel = entries[one->kernel],
            .params = &one->params,
            .params_bytes = one->params_bytes,
            .blocks = one->blocks,
            .cluster = one->cluster,
            .threads = row->threads,
            .smem_bytes = row->smem_bytes,
            .registers = registers_of(row->threads),
        };
        status = emu_run(config, instance->memory, &launch, 1, report);
    }
    *mismatches = 0;
    for (size_t i = 0; i < instance->data.arena_bytes; i++) {
        *mismatches += instance->data.arena[i] != instance->wanted[i];
    }
    return status;
}

const harness_family family_of_accepts_fp8 = {
    .accepts = accepts_fp8,
    .state = state_problem,
    .create = create,
    .run = run,
    .destroy = destroy,
};
