/* SPDX-License-Identifier: Apache-2.0 */
#include "api/error.h"
#include "api/gpu_executor.h"
#include "api/operands.h"
#include "api/plan.h"
#include "api/struct_copy.h"
#include "model/gemm.h"

enum { WORKSPACE_ALIGNMENT = 256 };

static halfbyte_status workspace_check(const halfbyte_plan *plan, const void *workspace,
                                       size_t workspace_bytes)
{
    CHECK(workspace_bytes >= plan->workspace_bytes, HALFBYTE_ERR_BUFFER_TOO_SMALL,
          "workspace_bytes = %zu: this plan needs %zu", workspace_bytes, plan->workspace_bytes);
    CHECK_ARGUMENT(workspace != NULL || workspace_bytes == 0,
                   "workspace = NULL: must point to workspace_bytes = %zu bytes", workspace_bytes);
    CHECK((uintptr_t)workspace % WORKSPACE_ALIGNMENT == 0, HALFBYTE_ERR_MISALIGNED,
          "workspace = %p: must be a multiple of %d bytes", workspace, WORKSPACE_ALIGNMENT);
    return HALFBYTE_SUCCESS;
}

halfbyte_status halfbyte_run(const halfbyte_plan *plan, const halfbyte_operands *operands,
                             void *workspace, size_t workspace_bytes, halfbyte_stream stream)
{
    CHECK_ARGUMENT(plan != NULL, "plan = NULL: must be a plan");
    halfbyte_operands copy;
    CHECK_STATUS(struct_copy(&copy, operands, "operands", halfbyte_operands));
    CHECK_STATUS(workspace_check(plan, workspace, workspace_bytes));
    const bool on_gpu = plan->device->executor == HALFBYTE_EXECUTOR_GPU;
    CHECK_STATUS(on_gpu ? HALFBYTE_SUCCESS : cpu_check(plan->device, stream));
    CHECK_STATUS(operands_m_check(&plan->problem, &copy));
    CHECK_ARGUMENT(copy.expected_m >= 0, "operands.expected_m = %lld: must be at least 0",
                   (long long)copy.expected_m);
    if (copy.m == 0 || plan->problem.n == 0) {
        return HALFBYTE_SUCCESS;
    }
    CHECK_STATUS(operands_check(&plan->problem, &copy));
    if (on_gpu) {
        return gpu_plan_run(plan, &copy, workspace, stream);
    }
    gemm_run(&plan->problem, &copy, plan->device->chain, plan->device->pool);
    return HALFBYTE_SUCCESS;
}
