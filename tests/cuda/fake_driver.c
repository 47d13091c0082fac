/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 without a GPU.  It holds "device" memory in host memory, counts what is taken and
 * given back, and computes nothing: kernels are launched into the void.  The environment variable
 * FAKE_CUDA names what fails; FAKE_LACKS (a macro) makes a driver that lacks a function.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver_types.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE_(member, symbol, parameters) cuda_result fake_##member parameters __asm__(symbol);
CUDA_DRIVER_FUNCTIONS(DECLARE_)

static int contexts, pushes, modules;

static int fails(const char *what)
{
    const char *failing = getenv("FAKE_CUDA");
    return failing != NULL && strcmp(failing, what) == 0;
}

/* What is still held: 0 if everything was given back. */
EXPORT int fake_balance(void);
int fake_balance(void)
{
    return abs(contexts) * 10000 + abs(pushes) * 100 + abs(modules);
}

EXPORT cuda_result fake_init(unsigned flags)
{
    (void)flags;
    return fails("init") ? 999 : fails("no_device") ? 100 : 0;
}

EXPORT cuda_result fake_driver_version(int *version)
{
    *version = fails("old") ? 12020 : 13000;
    return 0;
}

EXPORT cuda_result fake_error_name(cuda_result result, const char **name)
{
    switch (result) {
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 200: *name = "CUDA_ERROR_INVALID_IMAGE"; return 0;
    case 500: *name = "CUDA_ERROR_NOT_FOUND"; return 0;
    case 701: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; return 0;
    case 999: *name = "CUDA_ERROR_UNKNOWN"; return 0;
    default: *name = NULL; return 1;
    }
}

EXPORT cuda_result fake_device_count(int *count)
{
    *count = fails("count") ? 0 : 1;
    return 0;
}

EXPORT cuda_result fake_device_get(cuda_device *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

EXPORT cuda_result fake_device_name(char *name, int bytes, cuda_device device)
{
    (void)device;
    strncpy(name, "Void 9000", (size_t)bytes);
    return 0;
}

EXPORT cuda_result fake_device_attribute(int *value, int attribute, cuda_device device)
{
    (void)device;
    switch (attribute) {
    case CUDA_ATTRIBUTE_MAJOR: *value = fails("ada") ? 8 : fails("blackwell") ? 10 : 9; break;
    case CUDA_ATTRIBUTE_MINOR: *value = fails("ada") ? 9 : 0; break;
    case CUDA_ATTRIBUTE_SM_COUNT: *value = 132; break;
    case CUDA_ATTRIBUTE_SMEM_BYTES: *value = 232448; break;
    default: *value = 0; break;
    }
    return 0;
}

EXPORT cuda_result fake_context_retain(cuda_context *context, cuda_device device)
{
    (void)device;
    if (fails("context")) {
        return 2;
    }
    contexts++;
    *context = (cuda_context)(void *)&contexts;
    return 0;
}

EXPORT cuda_result fake_context_release(cuda_device device)
{
    (void)device;
    contexts--;
    return 0;
}

EXPORT cuda_result fake_context_push(cuda_context context)
{
    (void)context;
    pushes++;
    return 0;
}

EXPORT cuda_result fake_context_pop(cuda_context *context)
{
    *context = NULL;
    pushes--;
    return 0;
}

EXPORT cuda_result fake_module_load(cuda_module *module, const void *image)
{
    (void)image;
    if (fails("module")) {
        return 200;
    }
    modules++;
    *module = (cuda_module)(void *)&modules;
    return 0;
}

EXPORT cuda_result fake_module_unload(cuda_module module)
{
    (void)module;
    modules--;
    return 0;
}

EXPORT cuda_result fake_module_function(cuda_function *function, cuda_module module,
                                        const char *name)
{
    (void)module;
    *function = (cuda_function)(void *)&modules;
    return fails("function") || name == NULL ? 500 : 0;
}

EXPORT cuda_result fake_function_set(cuda_function function, int attribute, int value)
{
    (void)function;
    return attribute == CUDA_FUNCTION_MAX_DYNAMIC_SMEM && value <= 232448 && !fails("smem") ? 0 : 1;
}

EXPORT cuda_result fake_launch(const cuda_launch_config *config, cuda_function function,
                               void **parameters, void **extra)
{
    (void)extra;
    return fails("launch") || config->grid_x == 0 || function == NULL || parameters == NULL ? 701
                                                                                            : 0;
}

#if !defined(FAKE_LACKS)
EXPORT cuda_result fake_tensor_map_encode(tensor_map *map, int type, uint32_t rank, void *base,
                                          const uint64_t *dims, const uint64_t *strides_bytes,
                                          const uint32_t *box, const uint32_t *element_strides,
                                          int interleave, int swizzle, int l2_promotion, int fill)
{
    memset(map, type + interleave + swizzle + l2_promotion + fill, sizeof *map);
    return fails("map") || rank < 2 || (uintptr_t)base % 16 != 0 || dims[0] == 0 ||
                   strides_bytes[0] % 16 != 0 || box[0] == 0 || element_strides[0] != 1
               ? 1
               : 0;
}
#endif

EXPORT cuda_result fake_stream_synchronize(cuda_stream stream)
{
    (void)stream;
    return 0;
}

EXPORT cuda_result fake_stream_is_capturing(cuda_stream stream, int *status)
{
    (void)stream;
    *status = 0;
    return 0;
}

EXPORT cuda_result fake_copy_to_host(void *dst, cuda_pointer src, size_t bytes, cuda_stream stream)
{
    (void)stream;
    memcpy(dst, (const void *)(uintptr_t)src, bytes);
    return 0;
}

EXPORT cuda_result fake_memset_rows(cuda_pointer dst, size_t pitch, unsigned char value,
                                    size_t width, size_t height, cuda_stream stream)
{
    (void)stream;
    for (size_t row = 0; row < height; row++) {
        memset((char *)(uintptr_t)dst + row * pitch, value, width);
    }
    return 0;
}
