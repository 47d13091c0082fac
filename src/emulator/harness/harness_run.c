/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "api/gemm_launch.h"
#include "api/problem_check.h"
#include "cuda/kernel_table.h"
#include "emulator/harness/feeder.h"
#include "emulator/harness/gemm_case.h"
#include "emulator/harness/harness.h"

enum { SWIZZLE_OF_TILES = 1 /* SWIZZLE_128B */, POISON = 0xa5 };

struct harness_instance {
    const harness_kernel *kernel;
    uint64_t draw;
    gemm_case data;
    unsigned char *wanted; /* the arena as the model leaves it */
    unsigned char *workspace;
    size_t workspace_bytes;
    unsigned char *before; /* HARNESS_BEHIND: arena, then workspace, as the kernel finds them */
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
        .rank = 3,
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
    const bool fed = (made->draw & HARNESS_BEHIND) != 0;
    bool good = true;
    for (int i = 0; i < made->data.parts; i++) {
        const gemm_case_part *part = &made->data.part[i];
        if (part->bytes > 0 && gemm_case_reads(&made->data, part)) {
            good &=
                emu_memory_add(made->memory, made->data.arena + part->offset, part->bytes,
                               part->name, part->is_output || fed ? EMU_READ_WRITE : EMU_READ_ONLY);
        }
    }
    good &= made->workspace_bytes == 0 ||
            emu_memory_add(made->memory, made->workspace, made->workspace_bytes, "workspace",
                           EMU_READ_WRITE);
    return good;
}

/* The GEMM that the product is made with: the kernel, or the one that serves all. */
static int gemm_of(const harness_kernel *kernel, const halfbyte_problem *problem)
{
    int index = KERNEL_COUNT - 1;
    if (kernel->is_gemm) {
        return kernel->index;
    }
    while (index > 0 && !gemm_kernel_accepts(index, problem)) {
        index--;
    }
    return index;
}

static bool launches_make(harness_instance *made, uint32_t blocks)
{
    halfbyte_problem problem = made->data.problem;
    problem_resolve(&problem, HALFBYTE_PROFILE_SM90);
    made->workspace_bytes = gemm_workspace_bytes(&problem);
    made->workspace = aligned_alloc(256, (made->workspace_bytes + 511) / 256 * 256);
    made->before = malloc(made->data.arena_bytes + made->workspace_bytes);
    if (made->workspace == NULL || made->before == NULL || !register_all(made)) {
        return false;
    }
    const gemm_machine machine = {(int)blocks, encode, NULL};
    gemm_choice choice = gemm_choice_of(gemm_of(made->kernel, &problem));
    if ((made->draw & HARNESS_BY_SIZE) == HARNESS_BY_SIZE && problem.k_splits == 1 &&
        problem.grouping != HALFBYTE_GROUPING_DENSE) {
        choice.large = choice.kernel;
        choice.rows_most = (int32_t)(made->data.operands.m / problem.groups);
    }
    return gemm_launches_make(&machine, &choice, &problem, &made->data.operands, made->workspace,
                              &made->launches) == HALFBYTE_SUCCESS;
}

void harness_destroy(harness_instance *instance)
{
    if (instance != NULL) {
        emu_memory_destroy(instance->memory);
        gemm_case_free(&instance->data);
        free(instance->wanted);
        free(instance->workspace);
        free(instance->before);
        free(instance);
    }
}

harness_instance *harness_create(const harness_kernel *kernel, const harness_problem *problem)
{
    harness_instance *made = aligned_alloc(64, (sizeof *made + 63) / 64 * 64);
    if (made == NULL) {
        return NULL;
    }
    memset(made, 0, sizeof *made);
    made->kernel = kernel;
    made->draw = problem->draw;
    made->memory = emu_memory_create();
    if (made->memory == NULL || !gemm_case_make(&made->data, &problem->problem, problem->draw) ||
        (made->wanted = gemm_case_wanted(&made->data)) == NULL ||
        !launches_make(made, problem->blocks)) {
        harness_destroy(made);
        return NULL;
    }
    return made;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Registers a thread that __launch_bounds__(threads, 1) leaves. */
static uint32_t registers_of(uint32_t threads)
{
    const uint32_t most = 65536 / threads / 8 * 8;
    return most < 255 ? most : 255;
}

static emu_launch launch_of(const gemm_launch *one)
{
    const harness_kernel *kernel = harness_at(one->kernel);
    return (emu_launch){
        .name = kernel->name,
        .kernel = kernel->entry,
        .params = &one->params,
        .params_bytes = one->params_bytes,
        .blocks = one->blocks,
        .cluster = one->cluster,
        .threads = kernel->threads,
        .smem_bytes = kernel->smem_bytes,
        .registers = registers_of(kernel->threads),
    };
}

static void piece_add(feeder_params *feeder, unsigned char *to, unsigned char *from, size_t bytes)
{
    memcpy(from, to, bytes);
    memset(to, POISON, bytes);
    feeder->piece[feeder->pieces++] = (feeder_piece){to, from, bytes};
}

/* Behind a grid that writes what the kernel finds now. */
static emu_status run_behind(harness_instance *instance, const emu_launch *launch,
                             const emu_config *config, emu_report *report)
{
    gemm_case *data = &instance->data;
    const bool constant = (data->problem.flags & HALFBYTE_WEIGHTS_CONSTANT) != 0;
    feeder_params feeder = {.pieces = 0};
    for (int i = 0; i < data->parts; i++) {
        const gemm_case_part *part = &data->part[i];
        const bool weight = strcmp(part->name, "b") == 0 || strcmp(part->name, "b_scale") == 0;
        if (!(weight && constant) && gemm_case_reads(data, part)) {
            piece_add(&feeder, data->arena + part->offset, instance->before + part->offset,
                      part->bytes);
        }
    }
    piece_add(&feeder, instance->workspace, instance->before + data->arena_bytes,
              instance->workspace_bytes);
    const emu_launch pair[2] = {{.name = "harness_feeder",
                                 .kernel = harness_feeder,
                                 .params = &feeder,
                                 .params_bytes = sizeof feeder,
                                 .blocks = 1,
                                 .cluster = 1,
                                 .threads = FEEDER_THREADS},
                                *launch};
    return emu_run(config, instance->memory, pair, 2, report);
}

static void prepare(harness_instance *instance)
{
    gemm_case_restore(&instance->data);
    memset(instance->workspace, POISON, instance->workspace_bytes);
    if (instance->launches.clear_bytes > 0) {
        memset(instance->launches.clear, 0, instance->launches.clear_bytes);
    }
}

emu_status harness_run(harness_instance *instance, const emu_config *config, emu_report *report,
                       uint64_t *mismatches)
{
    const emu_config plain = emu_config_default();
    emu_status status = EMU_OK;
    prepare(instance);
    for (int i = 0; i < instance->launches.count && status == EMU_OK; i++) {
        const gemm_launch *one = &instance->launches.launch[i];
        const emu_launch launch = launch_of(one);
        if (one->kernel != instance->kernel->index) {
            status = emu_run(&plain, instance->memory, &launch, 1, report);
        } else if (instance->draw & HARNESS_BEHIND) {
            status = run_behind(instance, &launch, config, report);
        } else if (i + 1 < instance->launches.count && one[1].programmatic) {
            const emu_launch pair[2] = {launch, launch_of(one + 1)}; /* the second starts early */
            status = emu_run(config, instance->memory, pair, 2, report);
            i++;
        } else {
            status = emu_run(config, instance->memory, &launch, 1, report);
        }
    }
    *mismatches = 0;
    for (size_t i = 0; i < instance->data.arena_bytes; i++) {
        *mismatches += instance->data.arena[i] != instance->wanted[i];
    }
    return status;
}

emu_status harness_meet_sites(harness_instance *instance, emu_report *report)
{
    const emu_config config = emu_config_default();
    emu_status status = EMU_OK;
    prepare(instance);
    for (int i = 0; i < instance->launches.count && status == EMU_OK; i++) {
        const gemm_launch *one = &instance->launches.launch[i];
        if (one->kernel == instance->kernel->index) {
            const emu_launch launch = launch_of(one);
            status = emu_run(&config, instance->memory, &launch, 1, report);
        }
    }
    return status;
}
