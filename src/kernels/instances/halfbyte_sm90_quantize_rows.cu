/* SPDX-License-Identifier: Apache-2.0 */
#define QUANTIZE_NAME halfbyte_sm90_quantize_rows
#define QUANTIZE_BODY quantize_rows
#define QUANTIZE_MOST_THREADS QUANTIZE_ROWS_THREADS
#define QUANTIZE_SHARING 2
#include "kernels/quantize_activations.h"
