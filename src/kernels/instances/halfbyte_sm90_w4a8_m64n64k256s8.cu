/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_w4a8_m64n64k256s8
#define GEMM_TILE_TOKENS 64
#define GEMM_TILE_ROWS 64
#define GEMM_STAGE_BLOCKS 2
#define GEMM_STAGES 8
#define GEMM_TEAMS 2
#define GEMM_PARTIALS 2
#define GEMM_GROUPS 1
#define GEMM_TOKEN_SCALES 2
#define GEMM_SCALES_AHEAD 4
#include "kernels/gemm_w4a8.h"
