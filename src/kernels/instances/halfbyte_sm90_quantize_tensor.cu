/* SPDX-License-Identifier: Apache-2.0 */
#define QUANTIZE_NAME halfbyte_sm90_quantize_tensor
#define QUANTIZE_BODY quantize_tensor
#define QUANTIZE_MOST_THREADS QUANTIZE_THREADS
#define QUANTIZE_SHARING 6
#include "kernels/quantize_activations.h"
