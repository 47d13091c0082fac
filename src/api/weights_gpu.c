/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing and unpacking on a GPU.
 *
 * Which form the words take depends on all weights, and the header is the host's.  So packing looks
 * through the weights first and waits for the answer.  The answer needs a word of GPU memory, and
 * none but the caller's is there: it is the first word of the packed tensor.  In place that word
 * holds weights, which the host keeps meanwhile.
 */
#include <string.h>

#include "api/weights.h"
#include "cuda/gpu.h"

/* Fails out of the enclosing function with a status of src/cuda. */
#define CHECK_CUDA(call)                                                                           \
    do {                                                                                           \
        const cuda_status status_of_cuda_ = (call);                                                \
        CHECK(status_of_cuda_.status == HALFBYTE_SUCCESS, status_of_cuda_.status, "%s",            \
              status_of_cuda_.text);                                                               \
    } while (0)

static halfbyte_status launch_run(gpu *device, pack_launch *launch, halfbyte_stream stream)
{
    const gpu_launch with = {device->kernels[launch->kernel].function,
                             launch->blocks,
                             kernel_table[launch->kernel].threads,
                             launch->smem_bytes,
                             launch->cluster,
                             0,
                             stream};
    if (launch->blocks == 0) {
        return HALFBYTE_SUCCESS;
    }
    CHECK_CUDA(gpu_launch_kernel(device, &with, &launch->params));
    return HALFBYTE_SUCCESS;
}

/* Is one of the eight weights of a word -8? */
static bool word_holds_minus8(uint32_t word, enum int4_form form)
{
    bool holds = false;

    int4_rows_hold_minus8(&word, form, sizeof word, 1, 8, &holds);
    return holds;
}

/* Raises the flag in the first word of packed, whatever that held, and fetches it. */
static halfbyte_status flag_find(gpu *device, const pack_tensors *tensors, uint32_t *found,
                                 halfbyte_stream stream)
{
    uint32_t *const flag = (uint32_t *)(void *)tensors->packed;
    pack_launch scan;

    CHECK_STATUS(pack_launch_scan(tensors, flag, &scan));
    CHECK_CUDA(gpu_clear(device, flag, sizeof *flag, stream));
    CHECK_STATUS(launch_run(device, &scan, stream));
    CHECK_CUDA(gpu_fetch(device, found, flag, sizeof *found, stream));
    return HALFBYTE_SUCCESS;
}

/* The same where that word holds weights: they are put back whatever happens. */
static halfbyte_status flag_find_in_place(gpu *device, const pack_tensors *tensors, uint32_t *found,
                                          halfbyte_stream stream)
{
    unsigned char first[sizeof *found];
    uint32_t word;

    CHECK_CUDA(gpu_fetch(device, first, tensors->packed, sizeof first, stream));
    const halfbyte_status status = flag_find(device, tensors, found, stream);
    for (size_t i = 0; i < sizeof first; i++) {
        CHECK_CUDA(gpu_set_byte(device, tensors->packed + i, first[i], stream));
    }
    memcpy(&word, first, sizeof word);
    *found |= word_holds_minus8(word, tensors->form);
    return status;
}

static halfbyte_status pack(gpu *device, pack_tensors *tensors, halfbyte_stream stream)
{
    const bool in_place = tensors->packed == tensors->plain;
    pack_launch launch;
    uint32_t found = 0;
    int capturing = 0;

    CHECK_CUDA(gpu_is_capturing(device, stream, &capturing));
    CHECK(!capturing, HALFBYTE_ERR_UNSUPPORTED,
          "stream = %p: is being captured into a graph; weights are packed before, once",
          (void *)stream);
    CHECK_STATUS(pack_launch_make(tensors, false, &launch)); /* refusals come first */
    if (tensors->shape.k > 0) {
        CHECK_STATUS(in_place ? flag_find_in_place(device, tensors, &found, stream)
                              : flag_find(device, tensors, &found, stream));
    }
    if (found != 0) {
        tensors->shape.flags |= INT4_PACKED_HOLDS_MINUS8;
    }
    CHECK_STATUS(pack_launch_make(tensors, false, &launch));
    return launch_run(device, &launch, stream);
}

halfbyte_status weights_pack_gpu(struct gpu *device, pack_tensors *tensors, halfbyte_stream stream)
{
    CHECK_CUDA(gpu_enter(device));
    const halfbyte_status status = pack(device, tensors, stream);
    gpu_leave(device);
    return status;
}

halfbyte_status weights_unpack_gpu(struct gpu *device, const pack_tensors *tensors,
                                   halfbyte_stream stream)
{
    pack_launch launch;

    CHECK_STATUS(pack_launch_make(tensors, true, &launch));
    CHECK_CUDA(gpu_enter(device));
    const halfbyte_status status = launch_run(device, &launch, stream);
    gpu_leave(device);
    return status;
}
