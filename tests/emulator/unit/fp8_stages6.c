/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first kernel as it is shipped.
 */
#include "emulator/unit/fp8_case.h"

#include "kernels/instances/halfbyte_sm90_fp8_any_m128n128k128s6.cu"

const fp8_kernel fp8_kernel_6 = {halfbyte_sm90_fp8_any_m128n128k128s6, GEMM_STAGES, GEMM_THREADS,
                                 GEMM_SMEM_BYTES, 168};
