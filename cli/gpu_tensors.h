/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_GPU_TENSORS_H
#define HALFBYTE_CLI_GPU_TENSORS_H

/*
 * An instance on the GPU: copies of the tensors that its operands name, a plan of the GPU and its
 * workspace.  The instance on the host stays as it is.
 */

#include "gpu_driver.h"
#include "instance.h"

typedef struct gpu_tensors {
    const gpu_driver *gpu;
    halfbyte_operands operands; /* those of the instance, with addresses of the device */
    gpu_address taken[INSTANCE_TENSORS];
    gpu_address workspace;
    halfbyte_plan *plan;
    size_t workspace_bytes;
    gpu_address d;
    uint64_t d_bytes;
} gpu_tensors;

/* Makes the plan, takes the memory, copies the tensors.  Prints what fails and returns the exit
 * code; to be given to gpu_tensors_free in every case. */
int gpu_tensors_create(gpu_tensors *made, const gpu_driver *gpu, halfbyte_device *device,
                       const instance *from);
void gpu_tensors_free(gpu_tensors *made);

/* Another plan of the same problem, such as one that chooses among other kernels. */
int gpu_tensors_replan(gpu_tensors *made, halfbyte_device *device, const halfbyte_problem *problem);

/* Enqueues the product. */
halfbyte_status gpu_tensors_run(const gpu_tensors *made, halfbyte_stream stream);

/* Enqueues 0xff bytes over D, as instance_run does. */
int gpu_tensors_poison(const gpu_tensors *made);

/* Waits, and copies D to `to`, d_bytes bytes. */
int gpu_tensors_fetch(const gpu_tensors *made, void *to);

/* What instance_run does, on the GPU: poisons D, runs, copies D into the instance.  `seconds` of
 * the run by events. */
int gpu_tensors_multiply(const gpu_tensors *made, instance *into, char *description,
                         double *seconds);

#endif
