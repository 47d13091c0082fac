/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_narrow_m64n128k128s9
#define GEMM_TILE_M 64
#define GEMM_TILE_N 128
#define GEMM_SET 1
#define GEMM_STAGES 9
#include "kernels/gemm_fp8_narrow.h"
