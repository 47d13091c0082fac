/* SPDX-License-Identifier: Apache-2.0 */
#define GEMM_NAME halfbyte_sm90_fp8_any_m128n128k128s6
#define GEMM_STAGES 6
#include "kernels/gemm_fp8_any.h"
