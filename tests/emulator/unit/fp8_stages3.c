/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first kernel with three stages, so that few k blocks go round the ring.
 */
#include "emulator/unit/fp8_case.h"

#define GEMM_NAME gemm_stages3
#define GEMM_STAGES 3
#include "kernels/gemm_fp8_any.h"

const fp8_kernel fp8_kernel_3 = {gemm_stages3, GEMM_STAGES, GEMM_THREADS, GEMM_SMEM_BYTES, 168};
