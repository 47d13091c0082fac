/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_GPU_DRIVER_H
#define HALFBYTE_CLI_GPU_DRIVER_H

/*
 * The CUDA driver for the commands that work on a GPU: memory, copies, events, graphs and the probe
 * kernels.  Loaded when a command needs it, so that the tool runs without one.  (The library loads
 * the driver for itself; both use the device's primary context.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halfbyte.h"

typedef uint64_t gpu_address;
typedef struct gpu_event_handle *gpu_event;
typedef struct gpu_module_handle *gpu_module;
typedef struct gpu_function_handle *gpu_function;
typedef struct gpu_graph_handle *gpu_graph;
typedef struct gpu_node_handle *gpu_node;
typedef struct gpu_graph_exec_handle *gpu_graph_exec;
typedef struct gpu_context_handle *gpu_context;

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct gpu_kernel_node {
    gpu_function function;
    unsigned grid[3], block[3], smem_bytes;
    void **params, **extra;
    void *kernel, *context;
} gpu_kernel_node;

enum {
    GPU_SM_COUNT = 16,
    GPU_MAJOR = 75,
    GPU_MAX_DYNAMIC_SMEM = 8,
    GPU_STREAM_NON_BLOCKING = 1,
    GPU_CAPTURE_RELAXED = 2,
    GPU_KERNEL_NODE = 0
};

/* X(member, symbol, parameters), by the names that the driver exports; 0 is success. */
#define GPU_DRIVER_FUNCTIONS(X)                                                                    \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(error_name, "cuGetErrorName", (int result, const char **name))                               \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                       \
    X(device_name, "cuDeviceGetName", (char *name, int bytes, int device))                         \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))           \
    X(context_retain, "cuDevicePrimaryCtxRetain", (gpu_context * context, int device))             \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                               \
    X(context_set, "cuCtxSetCurrent", (gpu_context context))                                       \
    X(memory_take, "cuMemAlloc_v2", (gpu_address * address, size_t bytes))                         \
    X(memory_give, "cuMemFree_v2", (gpu_address address))                                          \
    X(copy_in, "cuMemcpyHtoD_v2", (gpu_address to, const void *from, size_t bytes))                \
    X(copy_out, "cuMemcpyDtoH_v2", (void *to, gpu_address from, size_t bytes))                     \
    X(fill_bytes, "cuMemsetD8Async",                                                               \
      (gpu_address to, unsigned char value, size_t bytes, halfbyte_stream stream))                 \
    X(fill_words, "cuMemsetD32Async",                                                              \
      (gpu_address to, unsigned value, size_t words, halfbyte_stream stream))                      \
    X(stream_create, "cuStreamCreate", (halfbyte_stream * stream, unsigned flags))                 \
    X(stream_destroy, "cuStreamDestroy_v2", (halfbyte_stream stream))                              \
    X(stream_wait, "cuStreamSynchronize", (halfbyte_stream stream))                                \
    X(capture_begin, "cuStreamBeginCapture_v2", (halfbyte_stream stream, int mode))                \
    X(capture_end, "cuStreamEndCapture", (halfbyte_stream stream, gpu_graph * graph))              \
    X(graph_nodes, "cuGraphGetNodes", (gpu_graph graph, gpu_node * nodes, size_t * count))         \
    X(node_type, "cuGraphNodeGetType", (gpu_node node, int *type))                                 \
    X(node_kernel, "cuGraphKernelNodeGetParams_v2", (gpu_node node, gpu_kernel_node * params))     \
    X(function_name, "cuFuncGetName", (const char **name, gpu_function function))                  \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (gpu_graph_exec * exec, gpu_graph graph, unsigned long long flags))                          \
    X(graph_launch, "cuGraphLaunch", (gpu_graph_exec exec, halfbyte_stream stream))                \
    X(graph_exec_destroy, "cuGraphExecDestroy", (gpu_graph_exec exec))                             \
    X(graph_destroy, "cuGraphDestroy", (gpu_graph graph))                                          \
    X(event_create, "cuEventCreate", (gpu_event * event, unsigned flags))                          \
    X(event_destroy, "cuEventDestroy_v2", (gpu_event event))                                       \
    X(event_record, "cuEventRecord", (gpu_event event, halfbyte_stream stream))                    \
    X(event_ms, "cuEventElapsedTime", (float *ms, gpu_event begin, gpu_event end))                 \
    X(module_load, "cuModuleLoadData", (gpu_module * module, const void *image))                   \
    X(module_unload, "cuModuleUnload", (gpu_module module))                                        \
    X(module_function, "cuModuleGetFunction",                                                      \
      (gpu_function * function, gpu_module module, const char *name))                              \
    X(function_set, "cuFuncSetAttribute", (gpu_function function, int attribute, int value))       \
    X(launch, "cuLaunchKernel",                                                                    \
      (gpu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
       unsigned block_y, unsigned block_z, unsigned smem_bytes, halfbyte_stream stream,            \
       void **params, void **extra))

/* One GPU as a command uses it: the context is current for the thread, work goes to `stream`. */
typedef struct gpu_driver {
#define GPU_DRIVER_MEMBER_(member, symbol, parameters) int(*member) parameters;
    GPU_DRIVER_FUNCTIONS(GPU_DRIVER_MEMBER_)
#undef GPU_DRIVER_MEMBER_
    void *library;
    int device;
    gpu_context context;
    halfbyte_stream stream;
    int sms;
    int cuda;         /* 13000 for CUDA 13.0 */
    char name[96];    /* of the device */
    char version[32]; /* of the driver, as in 580.159.04; "" where unknown */
} gpu_driver;

/* Loads the driver and opens the device.  Prints what fails and returns the exit code; to be given
 * to gpu_driver_close in every case. */
int gpu_driver_open(gpu_driver *gpu, int ordinal);
void gpu_driver_close(gpu_driver *gpu);

/* CLI_OK, or a sentence with the driver's name of the error and CLI_ENVIRONMENT. */
int gpu_check(const gpu_driver *gpu, int result, const char *call);

/* gpu_check of a call of the table: GPU_CALL(gpu, stream_wait, (gpu->stream)). */
#define GPU_CALL(gpu, member, arguments) gpu_check(gpu, (gpu)->member arguments, #member)

/* Memory of at least 16 bytes; *address is 0 on failure. */
int gpu_take(const gpu_driver *gpu, uint64_t bytes, gpu_address *address);
void gpu_give(const gpu_driver *gpu, gpu_address address);

static inline void *gpu_pointer(gpu_address address)
{
    return (void *)(uintptr_t)address;
}

#endif
