/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA driver's binary interface that halfbyte uses, so that the library builds on
 * machines without the CUDA headers.  tests/cuda compares every value and layout with <cuda.h>
 * where that is installed.
 */
#ifndef HALFBYTE_CUDA_DRIVER_TYPES_H
#define HALFBYTE_CUDA_DRIVER_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/hopper/types.h"

typedef int cuda_result;                 /* CUresult; 0 is success */
typedef int cuda_device;                 /* CUdevice */
typedef unsigned long long cuda_pointer; /* CUdeviceptr */
typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUstream_st *cuda_stream;

enum {
    CUDA_ERROR_NO_DEVICE_ = 100,

    CUDA_ATTRIBUTE_SM_COUNT = 16,
    CUDA_ATTRIBUTE_L2_BYTES = 38,
    CUDA_ATTRIBUTE_MAJOR = 75,
    CUDA_ATTRIBUTE_MINOR = 76,
    CUDA_ATTRIBUTE_SMEM_BYTES = 97, /* most that a block may ask for */

    CUDA_FUNCTION_MAX_DYNAMIC_SMEM = 8,

    CUDA_LAUNCH_CLUSTER = 4,
    CUDA_LAUNCH_PROGRAMMATIC = 6,

    CUDA_TENSOR_UINT8 = 0,
    CUDA_TENSOR_FLOAT32 = 7,
    CUDA_TENSOR_BFLOAT16 = 9,
    CUDA_TENSOR_INTERLEAVE_NONE = 0,
    CUDA_TENSOR_SWIZZLE_NONE = 0,
    CUDA_TENSOR_SWIZZLE_32B = 1,
    CUDA_TENSOR_SWIZZLE_64B = 2,
    CUDA_TENSOR_SWIZZLE_128B = 3,
    CUDA_TENSOR_L2_256B = 3,
    CUDA_TENSOR_FILL_ZERO = 0
};

/* CUlaunchAttribute: an identity, padding to 8 bytes, a 64-byte union. */
typedef struct cuda_launch_attribute {
    int id;
    char pad[4];
    union {
        char bytes[64];
        struct {
            unsigned x, y, z;
        } cluster;
        int programmatic;
    } value;
} cuda_launch_attribute;

/* CUlaunchConfig */
typedef struct cuda_launch_config {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned smem_bytes;
    cuda_stream stream;
    cuda_launch_attribute *attributes;
    unsigned num_attributes;
} cuda_launch_config;

/* X(member, symbol, parameters): the functions, by the names that the driver exports. */
#define CUDA_DRIVER_FUNCTIONS(X)                                                                   \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(error_name, "cuGetErrorName", (cuda_result result, const char **name))                       \
    X(device_count, "cuDeviceGetCount", (int *count))                                              \
    X(device_get, "cuDeviceGet", (cuda_device * device, int ordinal))                              \
    X(device_name, "cuDeviceGetName", (char *name, int bytes, cuda_device device))                 \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, cuda_device device))   \
    X(context_retain, "cuDevicePrimaryCtxRetain", (cuda_context * context, cuda_device device))    \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (cuda_device device))                       \
    X(context_push, "cuCtxPushCurrent_v2", (cuda_context context))                                 \
    X(context_pop, "cuCtxPopCurrent_v2", (cuda_context * context))                                 \
    X(module_load, "cuModuleLoadData", (cuda_module * module, const void *image))                  \
    X(module_unload, "cuModuleUnload", (cuda_module module))                                       \
    X(module_function, "cuModuleGetFunction",                                                      \
      (cuda_function * function, cuda_module module, const char *name))                            \
    X(function_set, "cuFuncSetAttribute", (cuda_function function, int attribute, int value))      \
    X(launch, "cuLaunchKernelEx",                                                                  \
      (const cuda_launch_config *config, cuda_function function, void **parameters, void **extra)) \
    X(tensor_map_encode, "cuTensorMapEncodeTiled",                                                 \
      (tensor_map * map, int type, uint32_t rank, void *base, const uint64_t *dims,                \
       const uint64_t *strides_bytes, const uint32_t *box, const uint32_t *element_strides,        \
       int interleave, int swizzle, int l2_promotion, int fill))                                   \
    X(stream_synchronize, "cuStreamSynchronize", (cuda_stream stream))                             \
    X(stream_is_capturing, "cuStreamIsCapturing", (cuda_stream stream, int *status))               \
    X(copy_to_host, "cuMemcpyDtoHAsync_v2",                                                        \
      (void *dst, cuda_pointer src, size_t bytes, cuda_stream stream))                             \
    X(memset_rows, "cuMemsetD2D8Async",                                                            \
      (cuda_pointer dst, size_t pitch, unsigned char value, size_t width, size_t height,           \
       cuda_stream stream))

typedef struct cuda_driver {
    void *library;
    int version; /* 13000 for CUDA 13.0 */
#define CUDA_DRIVER_MEMBER_(member, symbol, parameters) cuda_result(*member) parameters;
    CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_MEMBER_)
#undef CUDA_DRIVER_MEMBER_
} cuda_driver;

#endif
