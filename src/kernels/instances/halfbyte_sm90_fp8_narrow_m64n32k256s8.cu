/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_narrow_m64n32k256s8
#define GEMM_TILE_M 64
#define GEMM_TILE_N 32
#define GEMM_SET 2
#define GEMM_STAGES 8
#include "kernels/gemm_fp8_narrow.h"
