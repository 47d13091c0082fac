/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and runs on a GPU: choice of the kernels, their parameters, their launch. */
#ifndef HALFBYTE_API_GPU_EXECUTOR_H
#define HALFBYTE_API_GPU_EXECUTOR_H

#include "api/describe.h"
#include "cuda/gpu.h"
#include "halfbyte.h"

/* Bit i: row i of kernels.def serves the plan's problem. */
typedef uint64_t gpu_kernel_set;

/*
 * The kernels that serve the (valid, resolved) problem; loads them, so that runs only launch.
 * ERR_UNSUPPORTED says what the kernels of this version serve.
 *
 * Kernels whose names contain a word of the comma-separated environment variable
 * HALFBYTE_SKIP_KERNELS are passed over: for tests and measurements of the others.
 */
halfbyte_status gpu_plan_select(gpu *device, const halfbyte_problem *problem,
                                gpu_kernel_set *kernels);

/* Adds " kernels=NAME(m<=M),NAME" in the order in which runs choose. */
void gpu_plan_describe(describe_line *line, gpu_kernel_set kernels);

/*
 * Enqueues the product with the first kernel that is made for operands->m.  Operands are checked, m
 * and n not 0.  Allocates nothing, waits for nothing.
 */
halfbyte_status gpu_plan_run(gpu *device, gpu_kernel_set kernels, const halfbyte_problem *problem,
                             const halfbyte_operands *operands, halfbyte_stream stream);

#endif
