/* SPDX-License-Identifier: Apache-2.0 */
/* The quantiser of activations on a GPU. */
#ifndef HALFBYTE_API_GPU_QUANTIZE_H
#define HALFBYTE_API_GPU_QUANTIZE_H

#include "cuda/gpu.h"
#include "halfbyte.h"

/* Loads its kernels.  Done once when a device is opened: quantising has no plan, and its calls must
 * not take device memory. */
cuda_status gpu_quantize_load(gpu *device);

/* Enqueues the work.  Arguments are checked and epsilon resolved.  Allocates nothing, waits for
 * nothing. */
halfbyte_status gpu_quantize_activations(gpu *device,
                                         const halfbyte_activation_quantization *arguments,
                                         halfbyte_stream stream);

#endif
