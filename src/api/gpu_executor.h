/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and runs on a GPU. */
#ifndef HALFBYTE_API_GPU_EXECUTOR_H
#define HALFBYTE_API_GPU_EXECUTOR_H

#include "api/gemm_select.h"
#include "api/plan.h"
#include "cuda/gpu.h"
#include "halfbyte.h"

/*
 * The kernels that serve the (valid, resolved) problem; loads them and those that run before and
 * behind them, so that runs only launch.  ERR_UNSUPPORTED says what the kernels of this version
 * serve.
 */
halfbyte_status gpu_plan_select(gpu *device, const halfbyte_problem *problem,
                                gemm_kernel_set *kernels);

/*
 * Enqueues the product.  Operands are checked, m and n not 0, the workspace is large enough.
 * Allocates nothing, waits for nothing.
 */
halfbyte_status gpu_plan_run(const halfbyte_plan *plan, const halfbyte_operands *operands,
                             void *workspace, halfbyte_stream stream);

#endif
