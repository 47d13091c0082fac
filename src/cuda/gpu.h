/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GPU: its primary context, its properties and the kernels that have been loaded on it.
 */
#ifndef HALFBYTE_CUDA_GPU_H
#define HALFBYTE_CUDA_GPU_H

#include <pthread.h>

#include "cuda/driver.h"
#include "cuda/gemm_map.h"
#include "cuda/kernel_table.h"

typedef struct gpu {
    const cuda_driver *driver;
    cuda_device device;
    cuda_context context; /* the primary one, which torch and the CUDA runtime use too */
    int sm_count;
    int smem_bytes; /* most that a block may ask for */
    char name[96];
    pthread_mutex_t lock; /* guards `kernels` while one is loaded */
    struct {
        cuda_module module;
        cuda_function function; /* NULL until loaded */
    } kernels[KERNEL_ALL + 1];
} gpu;

/*
 * Opens CUDA device `ordinal`.  *opened belongs to the caller; gpu_close() ends it.
 * ERR_NO_DEVICE: no driver, no such ordinal, or not compute capability 9.0; ERR_OUT_OF_MEMORY;
 * ERR_CUDA.
 */
cuda_status gpu_open(gpu **opened, int ordinal);

/* Unloads the kernels and gives the context back.  NULL is fine. */
void gpu_close(gpu *device);

/*
 * The function of kernel `index` of the table, loaded on first use.  Thread-safe.  Loading takes
 * device memory and time, so plans do it; a launch then only reads a pointer.
 */
cuda_status gpu_kernel(gpu *device, int index, cuda_function *function);

/* Encodes a map with 128-byte swizzle and zeros outside.  A host computation; no context is needed.
 */
cuda_status gpu_tensor_map_encode(const gpu *device, const gemm_map *from, tensor_map *map);

typedef struct gpu_launch {
    cuda_function function;
    unsigned blocks;
    unsigned threads;
    unsigned smem_bytes;
    unsigned cluster; /* blocks; 0 or 1: none */
    int programmatic; /* may start before the stream's previous kernel has ended */
    cuda_stream stream;
} gpu_launch;

/* Enqueues a kernel with one parameter struct, passed by value.  The context must be current. */
cuda_status gpu_launch_kernel(const gpu *device, const gpu_launch *launch, void *params);

/* Enqueues `bytes` zero bytes.  The context must be current. */
cuda_status gpu_clear(const gpu *device, void *memory, size_t bytes, cuda_stream stream);

/* Copies `bytes` bytes to the host behind the stream's work, and waits.  The context must be
 * current. */
cuda_status gpu_fetch(const gpu *device, void *to, const void *from, size_t bytes,
                      cuda_stream stream);

/* Enqueues one byte.  The context must be current. */
cuda_status gpu_set_byte(const gpu *device, void *memory, unsigned char value, cuda_stream stream);

/* Are calls on the stream recorded into a graph?  The context must be current. */
cuda_status gpu_is_capturing(const gpu *device, cuda_stream stream, int *capturing);

/* Makes the context current, and takes it away again, for the calling thread. */
cuda_status gpu_enter(const gpu *device);
void gpu_leave(const gpu *device);

#endif
