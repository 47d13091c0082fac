/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_w4a8_turns_m16n64k512s8
#define GEMM_TILE_TOKENS 16
#define GEMM_STAGE_BLOCKS 4
#define GEMM_TURN_STAGES 1
#define GEMM_STAGES 8
#define GEMM_SCALES_AHEAD 2
#include "kernels/gemm_w4a8_turns.h"
