/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device of the library asks the driver for, counted: its table of driver functions is
 * replaced by one that counts and passes on.  Calls that no run may make are refused.
 */
#ifndef HALFBYTE_TESTS_GPU_DRIVER_CALLS_H
#define HALFBYTE_TESTS_GPU_DRIVER_CALLS_H

#include "cuda/gpu.h"
#include "halfbyte.h"
#include "kernels/gemm_params.h"

typedef struct driver_calls {
    int encodes, pushes, pops, clears, launches;
    int others; /* refused */

    /* The last launch. */
    cuda_launch_config config;
    cuda_launch_attribute attributes[2];
    cuda_function function;
    gemm_params params;
} driver_calls;

/* From zero.  One device at a time. */
void driver_calls_begin(halfbyte_device *device);

/* Gives the device its own table back. */
driver_calls driver_calls_end(halfbyte_device *device);

#endif
