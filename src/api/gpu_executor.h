/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and runs on a GPU: choice of the kernel, its parameters, its launch. */
#ifndef HALFBYTE_API_GPU_EXECUTOR_H
#define HALFBYTE_API_GPU_EXECUTOR_H

#include "cuda/gpu.h"
#include "halfbyte.h"

/*
 * The first kernel of kernels.def that serves the (valid, resolved) problem; loads it, so that runs
 * only launch.  ERR_UNSUPPORTED says what the kernels of this version serve.
 */
halfbyte_status gpu_plan_select(gpu *device, const halfbyte_problem *problem, int *kernel);

/* Enqueues the product.  Operands are checked, m and n not 0.  Allocates nothing, waits for
 * nothing. */
halfbyte_status gpu_plan_run(gpu *device, int kernel, const halfbyte_problem *problem,
                             const halfbyte_operands *operands, halfbyte_stream stream);

#endif
