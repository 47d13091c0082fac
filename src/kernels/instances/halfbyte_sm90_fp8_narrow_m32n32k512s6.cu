/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_narrow_m32n32k512s6
#define GEMM_TILE_M 32
#define GEMM_TILE_N 32
#define GEMM_SET 4
#define GEMM_STAGES 6
#include "kernels/gemm_fp8_narrow.h"
