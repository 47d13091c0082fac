/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every constant and layout of src/cuda/driver_types.h against <cuda.h>.  Built where that is
 * installed; what can be wrong at compile time stops the build.
 */
#include <cuda.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cuda/driver_types.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define FIELD(ours, theirs)                                                                        \
    _Static_assert(offsetof(cuda_launch_config, ours) == offsetof(CUlaunchConfig, theirs) &&       \
                       sizeof(((cuda_launch_config *)0)->ours) ==                                  \
                           sizeof(((CUlaunchConfig *)0)->theirs),                                  \
                   #ours)

SAME(0, CUDA_SUCCESS);
SAME(CUDA_ERROR_NO_DEVICE_, CUDA_ERROR_NO_DEVICE);
SAME(CUDA_ATTRIBUTE_SM_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUDA_ATTRIBUTE_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CUDA_ATTRIBUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUDA_ATTRIBUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUDA_ATTRIBUTE_SMEM_BYTES, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CUDA_FUNCTION_MAX_DYNAMIC_SMEM, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CUDA_LAUNCH_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(CUDA_LAUNCH_PROGRAMMATIC, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CUDA_TENSOR_UINT8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME(CUDA_TENSOR_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(CUDA_TENSOR_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(CUDA_TENSOR_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(CUDA_TENSOR_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE);
SAME(CUDA_TENSOR_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_32B);
SAME(CUDA_TENSOR_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_64B);
SAME(CUDA_TENSOR_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(CUDA_TENSOR_L2_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME(CUDA_TENSOR_FILL_ZERO, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

SIZE(cuda_result, CUresult);
SIZE(cuda_device, CUdevice);
SIZE(cuda_pointer, CUdeviceptr);
SIZE(cuda_context, CUcontext);
SIZE(cuda_module, CUmodule);
SIZE(cuda_function, CUfunction);
SIZE(cuda_stream, CUstream);
SIZE(tensor_map, CUtensorMap);
/* What cuTensorMapEncodeTiled() asks for.  The type of CUDA 13's header is aligned to 128. */
_Static_assert(_Alignof(tensor_map) == 64, "alignment of tensor_map");

SIZE(cuda_launch_attribute, CUlaunchAttribute);
_Static_assert(offsetof(cuda_launch_attribute, value) == offsetof(CUlaunchAttribute, value),
               "value");
_Static_assert(sizeof(((cuda_launch_attribute *)0)->value) == sizeof(CUlaunchAttributeValue),
               "attribute value");
_Static_assert(offsetof(cuda_launch_attribute, value.cluster.y) ==
                   offsetof(CUlaunchAttribute, value.clusterDim.y),
               "cluster");
_Static_assert(offsetof(cuda_launch_attribute, value.programmatic) ==
                   offsetof(CUlaunchAttribute, value.programmaticStreamSerializationAllowed),
               "programmatic");

SIZE(cuda_launch_config, CUlaunchConfig);
FIELD(grid_x, gridDimX);
FIELD(grid_y, gridDimY);
FIELD(grid_z, gridDimZ);
FIELD(block_x, blockDimX);
FIELD(block_y, blockDimY);
FIELD(block_z, blockDimZ);
FIELD(smem_bytes, sharedMemBytes);
FIELD(stream, hStream);
FIELD(attributes, attrs);
FIELD(num_attributes, numAttrs);

/* The functions: cuda.h maps the plain names to these versions. */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

typedef struct symbol_row {
    const char *ours, *theirs;
} symbol_row;

/* cuda.h maps a plain name to the version that its signature belongs to. */
static const symbol_row symbols[] = {
#define OURS_(member, symbol, parameters) {#member, symbol},
    CUDA_DRIVER_FUNCTIONS(OURS_)
#undef OURS_
};

static const symbol_row expected[] = {
    {"init", TEXT(cuInit)},
    {"driver_version", TEXT(cuDriverGetVersion)},
    {"error_name", TEXT(cuGetErrorName)},
    {"device_count", TEXT(cuDeviceGetCount)},
    {"device_get", TEXT(cuDeviceGet)},
    {"device_name", TEXT(cuDeviceGetName)},
    {"device_attribute", TEXT(cuDeviceGetAttribute)},
    {"context_retain", TEXT(cuDevicePrimaryCtxRetain)},
    {"context_release", TEXT(cuDevicePrimaryCtxRelease)},
    {"context_push", TEXT(cuCtxPushCurrent)},
    {"context_pop", TEXT(cuCtxPopCurrent)},
    {"module_load", TEXT(cuModuleLoadData)},
    {"module_unload", TEXT(cuModuleUnload)},
    {"module_function", TEXT(cuModuleGetFunction)},
    {"function_set", TEXT(cuFuncSetAttribute)},
    {"launch", TEXT(cuLaunchKernelEx)},
    {"tensor_map_encode", TEXT(cuTensorMapEncodeTiled)},
    {"stream_synchronize", TEXT(cuStreamSynchronize)},
    {"stream_is_capturing", TEXT(cuStreamIsCapturing)},
    {"copy_to_host", TEXT(cuMemcpyDtoHAsync)},
    {"memset_rows", TEXT(cuMemsetD2D8Async)},
};

int main(void)
{
    const size_t count = sizeof symbols / sizeof symbols[0];
    int different = count != sizeof expected / sizeof expected[0];
    for (size_t i = 0; i < count && !different; i++) {
        if (strcmp(symbols[i].ours, expected[i].ours) != 0 ||
            strcmp(symbols[i].theirs, expected[i].theirs) != 0) {
            printf("%s is %s, in cuda.h %s\n", symbols[i].ours, symbols[i].theirs,
                   expected[i].theirs);
            different = 1;
        }
    }
    printf("%zu functions compared; constants and layouts when this was compiled\n", count);
    return different;
}
