/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gpu_quantize.h"

#include "api/error.h"
#include "api/quantize_launch.h"

cuda_status gpu_quantize_load(gpu *device)
{
    cuda_status status = cuda_ok();
    for (int i = KERNEL_COUNT; i < KERNEL_ALL && status.status == HALFBYTE_SUCCESS; i++) {
        cuda_function function;
        status = gpu_kernel(device, i, &function);
    }
    return status;
}

static cuda_status launches_run(gpu *device, quantize_launches *launches, halfbyte_stream stream)
{
    cuda_status status = gpu_enter(device);
    if (status.status != HALFBYTE_SUCCESS) {
        return status;
    }
    if (launches->clears_scale) {
        status = gpu_clear(device, launches->launch[0].params.scale, sizeof(float), stream);
    }
    for (int i = 0; i < launches->count && status.status == HALFBYTE_SUCCESS; i++) {
        quantize_launch *one = &launches->launch[i];
        const gpu_launch launch = {device->kernels[one->kernel].function,
                                   one->blocks,
                                   one->threads,
                                   kernel_table[one->kernel].smem_bytes,
                                   1,
                                   0,
                                   stream};
        status = gpu_launch_kernel(device, &launch, &one->params);
    }
    gpu_leave(device);
    return status;
}

halfbyte_status gpu_quantize_activations(gpu *device,
                                         const halfbyte_activation_quantization *arguments,
                                         halfbyte_stream stream)
{
    quantize_launches launches;
    CHECK_STATUS(quantize_launches_make(arguments, device->sm_count, &launches));
    const cuda_status status = launches_run(device, &launches, stream);
    return status.status == HALFBYTE_SUCCESS ? HALFBYTE_SUCCESS
                                             : status_fail(status.status, "%s", status.text);
}
