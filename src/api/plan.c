/* SPDX-License-Identifier: Apache-2.0 */
#include "api/plan.h"

#include <stdlib.h>

#include "api/error.h"
#include "api/gemm_launch.h"
#include "api/gpu_executor.h"
#include "api/problem_check.h"
#include "api/struct_copy.h"

/* The maps lie behind the plan. */
_Static_assert(_Alignof(map_cache) <= _Alignof(halfbyte_plan), "as malloc() aligns a plan");

halfbyte_status halfbyte_plan_create(halfbyte_plan **plan, const halfbyte_problem *problem,
                                     halfbyte_device *device)
{
    CHECK_ARGUMENT(plan != NULL, "plan = NULL: must point to where the plan is stored");
    CHECK_ARGUMENT(device != NULL, "device = NULL: must be an open device");
    halfbyte_problem copy;
    CHECK_STATUS(struct_copy(&copy, problem, "problem", halfbyte_problem));
    CHECK_STATUS(problem_check(&copy, device->profile));
    problem_resolve(&copy, device->profile);

    gemm_kernel_set kernels = 0;
    size_t workspace_bytes = 0;
    if (device->executor == HALFBYTE_EXECUTOR_GPU) {
        workspace_bytes = gemm_workspace_bytes(&copy);
        CHECK(workspace_bytes != SIZE_MAX, HALFBYTE_ERR_UNSUPPORTED,
              "k_splits = %lld, m_max = %lld, n = %lld: no memory holds the sums of the splits",
              (long long)copy.k_splits, (long long)copy.m_max, (long long)copy.n);
        CHECK_STATUS(gpu_plan_select(device->gpu, &copy, &kernels));
    }
    const bool on_gpu = device->executor == HALFBYTE_EXECUTOR_GPU;
    const size_t bytes = sizeof(halfbyte_plan) + (on_gpu ? sizeof(map_cache) : 0);
    halfbyte_plan *made = malloc(bytes);
    CHECK(made != NULL, HALFBYTE_ERR_OUT_OF_MEMORY, "out of memory making a plan (%zu bytes)",
          bytes);
    made->problem = copy;
    made->device = device;
    made->workspace_bytes = workspace_bytes;
    made->kernels = kernels;
    made->maps = NULL;
    if (on_gpu) {
        made->maps = (map_cache *)(made + 1);
        map_cache_init(made->maps);
    }
    *plan = made;
    return HALFBYTE_SUCCESS;
}

void halfbyte_plan_destroy(halfbyte_plan *plan)
{
    free(plan);
}

size_t halfbyte_plan_workspace_bytes(const halfbyte_plan *plan)
{
    return plan == NULL ? 0 : plan->workspace_bytes;
}
