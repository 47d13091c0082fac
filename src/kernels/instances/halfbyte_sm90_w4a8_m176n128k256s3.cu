/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_w4a8_m176n128k256s3
#define GEMM_TILE_TOKENS 176
#define GEMM_TILE_ROWS 128
#define GEMM_STAGE_BLOCKS 2
#define GEMM_STAGES 3
#define GEMM_STORE_TOKENS 144
#define GEMM_PARTIALS 1
#define GEMM_GROUPS 1
#define GEMM_TOKEN_SCALES 0
#include "kernels/gemm_w4a8.h"
