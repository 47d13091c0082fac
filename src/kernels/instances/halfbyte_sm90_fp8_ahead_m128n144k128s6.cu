/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_ahead_m128n144k128s6
#define GEMM_CHAIN_N 72
#define GEMM_STAGES 6
#include "kernels/gemm_fp8_ahead.h"
