/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_w4a8_turns_m32n64k512s6
#define GEMM_TILE_TOKENS 32
#define GEMM_STAGE_BLOCKS 4
#define GEMM_TURN_STAGES 1
#define GEMM_STAGES 6
#define GEMM_SCALES_AHEAD 4
#include "kernels/gemm_w4a8_turns.h"
