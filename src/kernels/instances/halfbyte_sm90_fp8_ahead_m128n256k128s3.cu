/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_ahead_m128n256k128s3
#define GEMM_CHAIN_N 88
#define GEMM_LAST_CHAIN_N 80
#define GEMM_STAGES 3
#define GEMM_D_STAGED 1
#include "kernels/gemm_fp8_ahead.h"
