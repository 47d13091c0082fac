/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_ahead_m128n112k128s7
#define GEMM_CHAIN_N 112
#define GEMM_CHAINS 1
#define GEMM_STAGES 7
#include "kernels/gemm_fp8_ahead.h"
