/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_narrow_m32n64k256s8
#define GEMM_TILE_M 32
#define GEMM_TILE_N 64
#define GEMM_SET 2
#define GEMM_STAGES 8
#include "kernels/gemm_fp8_narrow.h"
