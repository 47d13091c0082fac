/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_w4a8_expand_m256n128k128s4
#define GEMM_CHAIN_N 88
#define GEMM_LAST_CHAIN_N 80
#define GEMM_STAGES 4
#include "kernels/gemm_w4a8_expand.h"
