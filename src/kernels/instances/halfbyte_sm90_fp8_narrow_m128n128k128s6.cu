/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_narrow_m128n128k128s6
#define GEMM_TILE_M 128
#define GEMM_TILE_N 128
#define GEMM_SET 1
#define GEMM_STAGES 6
#include "kernels/gemm_fp8_narrow.h"
