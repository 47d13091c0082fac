/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_w4a8_turns3_m16n64k512s8
#define GEMM_TILE_TOKENS 16
#define GEMM_CONSUMERS 3
#define GEMM_STAGE_BLOCKS 4
#define GEMM_TURN_STAGES 1
#define GEMM_STAGES 8
#define GEMM_SCALES_AHEAD 4
#include "kernels/gemm_w4a8_turns.h"
