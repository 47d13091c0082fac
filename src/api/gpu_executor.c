/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gpu_executor.h"

#include "api/error.h"
#include "api/gemm_launch.h"

static halfbyte_status fail(const cuda_status *status)
{
    return status_fail(status->status, "%s", status->text);
}

static halfbyte_status check(const cuda_status status)
{
    return status.status == HALFBYTE_SUCCESS ? HALFBYTE_SUCCESS : fail(&status);
}

static gemm_kernel_set built_kernels(void)
{
    gemm_kernel_set built = 0;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        built |= kernel_table[i].image != NULL ? (gemm_kernel_set)1 << i : 0;
    }
    return built;
}

static halfbyte_status kernel_load(gpu *device, int index)
{
    cuda_function function;
    return check(gpu_kernel(device, index, &function));
}

halfbyte_status gpu_plan_select(gpu *device, const halfbyte_problem *problem,
                                gemm_kernel_set *kernels)
{
    const gemm_kernel_set found = gemm_select(problem, built_kernels());
    if (found == 0) {
        return gemm_select_failed(problem);
    }
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (gemm_set_has(found, i)) {
            CHECK_STATUS(kernel_load(device, i));
        }
    }
    for (int i = KERNEL_GROUPS_FROM; i < KERNEL_GROUPS_END; i++) {
        CHECK_STATUS(kernel_load(device, i));
    }
    *kernels = found;
    return HALFBYTE_SUCCESS;
}

/* The map as an earlier run of the plan had it, or a new one. */
static halfbyte_status encode(const void *context, const gemm_map *from, tensor_map *map)
{
    const halfbyte_plan *plan = context;
    if (plan->maps != NULL && map_cache_find(plan->maps, from, map)) {
        return HALFBYTE_SUCCESS;
    }
    CHECK_STATUS(check(gpu_tensor_map_encode(plan->device->gpu, from, map)));
    if (plan->maps != NULL) {
        map_cache_keep(plan->maps, from, map);
    }
    return HALFBYTE_SUCCESS;
}

static halfbyte_status launches_run(gpu *device, gemm_launches *launches, halfbyte_stream stream)
{
    cuda_status status = gpu_enter(device);
    if (status.status != HALFBYTE_SUCCESS) {
        return fail(&status);
    }
    if (launches->clear_bytes > 0) {
        status = gpu_clear(device, launches->clear, launches->clear_bytes, stream);
    }
    for (int i = 0; i < launches->count && status.status == HALFBYTE_SUCCESS; i++) {
        gemm_launch *one = &launches->launch[i];
        const kernel_row *row = &kernel_table[one->kernel];
        const gpu_launch launch = {device->kernels[one->kernel].function,
                                   one->blocks,
                                   row->threads,
                                   row->smem_bytes,
                                   one->cluster,
                                   one->programmatic,
                                   stream};
        status = gpu_launch_kernel(device, &launch, &one->params);
    }
    gpu_leave(device);
    return check(status);
}

halfbyte_status gpu_plan_run(const halfbyte_plan *plan, const halfbyte_operands *operands,
                             void *workspace, halfbyte_stream stream)
{
    gpu *device = plan->device->gpu;
    const halfbyte_problem *problem = &plan->problem;
    const gemm_machine machine = {device->sm_count, encode, plan};
    const gemm_choice choice = gemm_choice_for(plan->kernels, plan->device->tune, problem, operands,
                                               gemm_sms(&machine, problem));
    gemm_launches launches;
    CHECK_STATUS(gemm_launches_make(&machine, &choice, problem, operands, workspace, &launches));
    return launches_run(device, &launches, stream);
}
