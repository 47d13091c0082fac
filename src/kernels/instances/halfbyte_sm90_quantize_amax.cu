/* SPDX-License-Identifier: Apache-2.0 */
#define QUANTIZE_NAME halfbyte_sm90_quantize_amax
#define QUANTIZE_BODY quantize_amax
#define QUANTIZE_MOST_THREADS QUANTIZE_THREADS
#define QUANTIZE_SHARING 8
#include "kernels/quantize_activations.h"
