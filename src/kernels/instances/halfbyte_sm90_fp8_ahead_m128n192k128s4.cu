/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_ahead_m128n192k128s4
#define GEMM_CHAIN_N 96
#define GEMM_STAGES 4
#define GEMM_RUNS 1
#define GEMM_D_STAGED 1
#include "kernels/gemm_fp8_ahead.h"
