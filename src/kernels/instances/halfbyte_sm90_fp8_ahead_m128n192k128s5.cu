/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_ahead_m128n192k128s5
#define GEMM_CHAIN_N 96
#define GEMM_STAGES 5
#include "kernels/gemm_fp8_ahead.h"
