/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        const cuda_result result_ = driver->name(__VA_ARGS__);                                     \
        if (result_ != 0) {                                                                        \
            return cuda_call_failed(driver, cuda_symbols.name, result_);                           \
        }                                                                                          \
    } while (0)

static cuda_status properties_read(gpu *device)
{
    const cuda_driver *driver = device->driver;
    int major = 0;
    int minor = 0;
    CALL(device_attribute, &major, CUDA_ATTRIBUTE_MAJOR, device->device);
    CALL(device_attribute, &minor, CUDA_ATTRIBUTE_MINOR, device->device);
    CALL(device_attribute, &device->sm_count, CUDA_ATTRIBUTE_SM_COUNT, device->device);
    CALL(device_attribute, &device->smem_bytes, CUDA_ATTRIBUTE_SMEM_BYTES, device->device);
    CALL(device_name, device->name, (int)sizeof device->name, device->device);
    /* Kernels are sm_90a code, which runs on 9.0 and on nothing else. */
    if (major != 9 || minor != 0) {
        return cuda_fail(HALFBYTE_ERR_NO_DEVICE,
                         "%s has compute capability %d.%d: 9.0 (Hopper) is needed", device->name,
                         major, minor);
    }
    return cuda_ok();
}

static cuda_status device_find(gpu *device, int ordinal)
{
    const cuda_driver *driver = device->driver;
    int count = 0;
    CALL(device_count, &count);
    if (count == 0) {
        return cuda_fail(HALFBYTE_ERR_NO_DEVICE, "no CUDA device on this machine");
    }
    if (ordinal < 0 || ordinal >= count) {
        return cuda_fail(HALFBYTE_ERR_NO_DEVICE,
                         "ordinal = %d: this machine has CUDA devices 0 .. %d", ordinal, count - 1);
    }
    CALL(device_get, &device->device, ordinal);
    return properties_read(device);
}

cuda_status gpu_open(gpu **opened, int ordinal)
{
    const cuda_driver *driver;
    cuda_status status = cuda_driver_get(&driver);
    if (status.status != HALFBYTE_SUCCESS) {
        return status;
    }
    gpu *device = calloc(1, sizeof *device);
    if (device == NULL) {
        return cuda_fail(HALFBYTE_ERR_OUT_OF_MEMORY, "no memory for a device");
    }
    device->driver = driver;
    status = device_find(device, ordinal);
    if (status.status == HALFBYTE_SUCCESS) {
        const cuda_result result = driver->context_retain(&device->context, device->device);
        if (result != 0) {
            status = cuda_call_failed(driver, "cuDevicePrimaryCtxRetain", result);
        }
    }
    if (status.status != HALFBYTE_SUCCESS) {
        free(device);
        return status;
    }
    pthread_mutex_init(&device->lock, NULL);
    *opened = device;
    return status;
}

void gpu_close(gpu *device)
{
    if (device == NULL) {
        return;
    }
    const cuda_driver *driver = device->driver;
    if (driver->context_push(device->context) == 0) {
        for (int i = 0; i < KERNEL_ALL; i++) {
            if (device->kernels[i].module != NULL) {
                driver->module_unload(device->kernels[i].module);
            }
        }
        gpu_leave(device);
    }
    driver->context_release(device->device);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

cuda_status gpu_enter(const gpu *device)
{
    const cuda_driver *driver = device->driver;
    CALL(context_push, device->context);
    return cuda_ok();
}

void gpu_leave(const gpu *device)
{
    cuda_context popped;
    device->driver->context_pop(&popped);
}

static cuda_status kernel_load(const gpu *device, int index, cuda_module *module,
                               cuda_function *function)
{
    const cuda_driver *driver = device->driver;
    const kernel_row *row = &kernel_table[index];
    CALL(module_load, module, row->image);
    CALL(module_function, function, *module, row->name);
    CALL(function_set, *function, CUDA_FUNCTION_MAX_DYNAMIC_SMEM, (int)row->smem_bytes);
    return cuda_ok();
}

cuda_status gpu_kernel(gpu *device, int index, cuda_function *function)
{
    cuda_status status = gpu_enter(device);
    if (status.status != HALFBYTE_SUCCESS) {
        return status;
    }
    pthread_mutex_lock(&device->lock);
    if (device->kernels[index].function == NULL) {
        cuda_module module = NULL;
        cuda_function loaded = NULL;
        status = kernel_load(device, index, &module, &loaded);
        if (status.status == HALFBYTE_SUCCESS) {
            device->kernels[index].module = module;
            device->kernels[index].function = loaded;
        } else if (module != NULL) {
            device->driver->module_unload(module);
        }
    }
    *function = device->kernels[index].function;
    pthread_mutex_unlock(&device->lock);
    gpu_leave(device);
    return status;
}

cuda_status gpu_tensor_map_encode(const gpu *device, const gemm_map *from, tensor_map *map)
{
    const cuda_driver *driver = device->driver;
    const uint64_t dims[3] = {from->columns, from->rows, from->planes};
    const uint64_t strides[2] = {from->row_bytes, from->plane_bytes};
    const uint32_t box[3] = {GEMM_MAP_BOX_BYTES, from->box_rows, 1};
    const uint32_t element_strides[3] = {1, 1, 1};
    CALL(tensor_map_encode, map, CUDA_TENSOR_UINT8, 3, (void *)(uintptr_t)from->data, dims, strides,
         box, element_strides, CUDA_TENSOR_INTERLEAVE_NONE, CUDA_TENSOR_SWIZZLE_128B,
         CUDA_TENSOR_L2_256B, CUDA_TENSOR_FILL_ZERO);
    return cuda_ok();
}

cuda_status gpu_launch_kernel(const gpu *device, const gpu_launch *launch, void *params)
{
    const cuda_driver *driver = device->driver;
    cuda_launch_attribute attributes[2];
    unsigned count = 0;
    memset(attributes, 0, sizeof attributes);
    if (launch->cluster > 1) {
        attributes[count].id = CUDA_LAUNCH_CLUSTER;
        attributes[count].value.cluster.x = launch->cluster;
        attributes[count].value.cluster.y = 1;
        attributes[count].value.cluster.z = 1;
        count++;
    }
    if (launch->programmatic) {
        attributes[count].id = CUDA_LAUNCH_PROGRAMMATIC;
        attributes[count].value.programmatic = 1;
        count++;
    }
    cuda_launch_config config = {
        launch->blocks, 1,          1,    launch->threads, 1, 1, launch->smem_bytes,
        launch->stream, attributes, count};
    void *parameters[1] = {params};
    CALL(launch, &config, launch->function, parameters, NULL);
    return cuda_ok();
}

cuda_status gpu_clear(const gpu *device, void *memory, size_t bytes, cuda_stream stream)
{
    const cuda_driver *driver = device->driver;
    CALL(memset_rows, (cuda_pointer)(uintptr_t)memory, bytes, 0, bytes, 1, stream);
    return cuda_ok();
}

cuda_status gpu_fetch(const gpu *device, void *to, const void *from, size_t bytes,
                      cuda_stream stream)
{
    const cuda_driver *driver = device->driver;
    CALL(copy_to_host, to, (cuda_pointer)(uintptr_t)from, bytes, stream);
    CALL(stream_synchronize, stream);
    return cuda_ok();
}

cuda_status gpu_set_byte(const gpu *device, void *memory, unsigned char value, cuda_stream stream)
{
    const cuda_driver *driver = device->driver;
    CALL(memset_rows, (cuda_pointer)(uintptr_t)memory, 1, value, 1, 1, stream);
    return cuda_ok();
}

cuda_status gpu_is_capturing(const gpu *device, cuda_stream stream, int *capturing)
{
    const cuda_driver *driver = device->driver;
    CALL(stream_is_capturing, stream, capturing);
    return cuda_ok();
}
