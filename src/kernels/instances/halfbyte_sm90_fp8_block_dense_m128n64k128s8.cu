/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_block_dense_m128n64k128s8
#define GEMM_CHAIN_N 32
#define GEMM_STAGES 8
#include "kernels/gemm_fp8_pipelined.h"
