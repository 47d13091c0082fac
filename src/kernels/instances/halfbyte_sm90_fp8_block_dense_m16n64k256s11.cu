/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_block_dense_m16n64k256s11
#define GEMM_TILE_TOKENS 16
#define GEMM_STAGES 11
#include "kernels/gemm_fp8_swapped.h"
