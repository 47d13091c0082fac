/* SPDX-License-Identifier: Apache-2.0 */
#define QUANTIZE_NAME halfbyte_sm90_quantize_blocks
#define QUANTIZE_BODY quantize_blocks
#define QUANTIZE_MOST_THREADS QUANTIZE_THREADS
#define QUANTIZE_SHARING 6
#include "kernels/quantize_activations.h"
