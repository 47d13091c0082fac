/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels serve a problem, and which of them a run takes.  Nothing here touches a device: the
 * GPU executor and the emulator share it.
 */
#ifndef HALFBYTE_API_GEMM_SELECT_H
#define HALFBYTE_API_GEMM_SELECT_H

#include <stdbool.h>

#include "api/describe.h"
#include "api/tune.h"
#include "cuda/kernel_table.h"
#include "halfbyte.h"

/* Bit i: row i of kernels.def serves the plan's problem. */
typedef uint64_t gemm_kernel_set;

/* May kernel `index` serve the (valid, resolved) problem? */
bool gemm_kernel_accepts(int index, const halfbyte_problem *problem);

/*
 * The kernels among which runs of the (valid, resolved) problem choose; `built`: those that there
 * are.  0 if none serves it.
 *
 * Kernels whose names contain a word of the comma-separated environment variable
 * HALFBYTE_SKIP_KERNELS are passed over: for tests and measurements of the others.
 */
gemm_kernel_set gemm_select(const halfbyte_problem *problem, gemm_kernel_set built);

/* ERR_UNSUPPORTED, with a sentence that says what the kernels of this version serve. */
halfbyte_status gemm_select_failed(const halfbyte_problem *problem);

/* The one that a run takes, on so many SMs: that of the tune file (may be NULL), else that with the
 * least expected time. */
int gemm_kernel_for(gemm_kernel_set kernels, const tune_table *tune,
                    const halfbyte_problem *problem, const halfbyte_operands *operands, int sms);

/* Adds " kernels=NAME,NAME", those among which runs choose. */
void gemm_describe(describe_line *line, gemm_kernel_set kernels);

static inline bool gemm_set_has(gemm_kernel_set kernels, int kernel)
{
    return (kernels >> kernel & 1) != 0;
}

#endif
