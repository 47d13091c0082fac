/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_w4a8_turns_m64n64k256s7
#define GEMM_TILE_TOKENS 64
#define GEMM_STAGE_BLOCKS 2
#define GEMM_TURN_STAGES 2
#define GEMM_STAGES 7
#define GEMM_SCALES_AHEAD 4
#include "kernels/gemm_w4a8_turns.h"
