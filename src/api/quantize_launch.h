/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels quantise given activations, with which parameters: the part that a GPU and the
 * emulator share.  Nothing here touches a device.
 */
#ifndef HALFBYTE_API_QUANTIZE_LAUNCH_H
#define HALFBYTE_API_QUANTIZE_LAUNCH_H

#include <stdbool.h>

#include "cuda/kernel_table.h"
#include "halfbyte.h"
#include "kernels/quantize_params.h"

typedef struct quantize_launch {
    int kernel; /* KERNEL_INDEX_halfbyte_sm90_quantize_* */
    uint32_t blocks;
    uint32_t threads;
    quantize_params params;
} quantize_launch;

/* In stream order: first 4 bytes of zeros at the scale if clears_scale, then the launches. */
typedef struct quantize_launches {
    bool clears_scale;
    int count;
    quantize_launch launch[2];
} quantize_launches;

/*
 * For validated arguments with epsilon resolved.  No launch at all where there is nothing to do.
 * sm_count: of the device, for kernels that stay on it.
 * ERR_UNSUPPORTED: more tiles than a grid has blocks, which no memory holds.
 */
halfbyte_status quantize_launches_make(const halfbyte_activation_quantization *arguments,
                                       int sm_count, quantize_launches *launches);

#endif
