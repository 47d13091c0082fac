/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_narrow_m8n64k256s11
#define GEMM_TILE_M 8
#define GEMM_TILE_N 64
#define GEMM_SET 2
#define GEMM_STAGES 11
#include "kernels/gemm_fp8_narrow.h"
