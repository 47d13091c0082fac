/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group sizes of a GPU, brought to the host for halfbyte_check_groups().
 */
#ifndef HALFBYTE_API_GPU_GROUPS_H
#define HALFBYTE_API_GPU_GROUPS_H

#include "cuda/gpu.h"
#include "halfbyte.h"

typedef struct gpu_groups {
    halfbyte_groups groups; /* as the operands' own, with arrays that the host can read */
    void *memory[4];
} gpu_groups;

/*
 * Copies the arrays of checked operands, strides and all, and waits for the stream.  *fetched is to
 * be freed with gpu_groups_free() on success only.  ERR_OUT_OF_MEMORY, ERR_CUDA.
 */
halfbyte_status gpu_groups_fetch(gpu *device, const halfbyte_problem *problem,
                                 const halfbyte_operands *operands, halfbyte_stream stream,
                                 gpu_groups *fetched);

void gpu_groups_free(gpu_groups *fetched);

#endif
