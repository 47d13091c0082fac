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

/* Rows that a group can be expected to have, and how many groups have any. */
typedef struct gemm_expected_groups {
    int64_t rows;
    int64_t count;
} gemm_expected_groups;

gemm_expected_groups gemm_groups_expected(const halfbyte_problem *problem,
                                          const halfbyte_operands *operands);

/* Bytes of those groups' weights. */
int64_t gemm_expected_weight_bytes(const halfbyte_problem *problem,
                                   const gemm_expected_groups *groups);

/* The one that a run takes, on so many SMs: that of the tune file (may be NULL), else that with the
 * least expected time. */
int gemm_kernel_for(gemm_kernel_set kernels, const tune_table *tune,
                    const halfbyte_problem *problem, const halfbyte_operands *operands, int sms);

/* What computes a product: a kernel alone, or two, of which one takes the large groups. */
typedef struct gemm_choice {
    int kernel;        /* all groups, or those with at most rows_most rows */
    int large;         /* the others; GEMM_NO_KERNEL: there are none */
    int32_t rows_most; /* without `large` INT32_MAX */
} gemm_choice;

enum { GEMM_NO_KERNEL = -1 };

/* A kernel alone. */
gemm_choice gemm_choice_of(int kernel);

/*
 * gemm_kernel_for(), and of W4A8 where uneven groups would take long a kernel for the large ones:
 * the sizes are known to the device alone, and one whose tiles suit the mean takes up to four times
 * as long for a group that has all rows.  Only for products so long that a launch with nothing to
 * do does not count, and whose tiles could take longer than the memory does.  A tuned kernel runs
 * alone, as it was measured.
 */
gemm_choice gemm_choice_for(gemm_kernel_set kernels, const tune_table *tune,
                            const halfbyte_problem *problem, const halfbyte_operands *operands,
                            int sms);

/* Adds " kernels=NAME,NAME", those among which runs choose. */
void gemm_describe(describe_line *line, gemm_kernel_set kernels);

static inline bool gemm_set_has(gemm_kernel_set kernels, int kernel)
{
    return (kernels >> kernel & 1) != 0;
}

#endif
