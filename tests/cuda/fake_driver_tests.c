/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The further functions that gpu_test asks its driver for.
 */
#define _POSIX_C_SOURCE 200809L /* posix_memalign */

#include <stdlib.h>
#include <string.h>

#include "gpu/session.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE_(member, symbol, parameters) cuda_result fake_##member parameters __asm__(symbol);
SESSION_FUNCTIONS(DECLARE_)

EXPORT cuda_result fake_mem_alloc(cuda_pointer *memory, size_t bytes)
{
    void *host = NULL;
    if (posix_memalign(&host, 256, bytes) != 0) {
        return 2;
    }
    *memory = (cuda_pointer)(uintptr_t)host;
    return 0;
}

EXPORT cuda_result fake_mem_free(cuda_pointer memory)
{
    free((void *)(uintptr_t)memory);
    return 0;
}

EXPORT cuda_result fake_to_device(cuda_pointer dst, const void *src, size_t bytes)
{
    memcpy((void *)(uintptr_t)dst, src, bytes);
    return 0;
}

EXPORT cuda_result fake_to_host(void *dst, cuda_pointer src, size_t bytes)
{
    memcpy(dst, (const void *)(uintptr_t)src, bytes);
    return 0;
}

EXPORT cuda_result fake_copy_async(cuda_pointer dst, cuda_pointer src, size_t bytes,
                                   cuda_stream stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes);
    return 0;
}

EXPORT cuda_result fake_set_bytes(cuda_pointer dst, unsigned char value, size_t bytes)
{
    memset((void *)(uintptr_t)dst, value, bytes);
    return 0;
}

EXPORT cuda_result fake_synchronize(void)
{
    return 0;
}

/* Objects that need an address and nothing else. */
static int object;

#define FAKE_OBJECT(name, type)                                                                    \
    EXPORT cuda_result fake_##name##_create(type *created, unsigned flags)                         \
    {                                                                                              \
        (void)flags;                                                                               \
        *created = (type)(void *)&object;                                                          \
        return 0;                                                                                  \
    }                                                                                              \
    EXPORT cuda_result fake_##name##_destroy(type gone)                                            \
    {                                                                                              \
        return gone == NULL;                                                                       \
    }

FAKE_OBJECT(stream, cuda_stream)
FAKE_OBJECT(event, gpu_event)

EXPORT cuda_result fake_event_record(gpu_event event, cuda_stream stream)
{
    (void)stream;
    return event == NULL;
}

EXPORT cuda_result fake_event_synchronize(gpu_event event)
{
    return event == NULL;
}

EXPORT cuda_result fake_event_elapsed(float *ms, gpu_event from, gpu_event to)
{
    *ms = 1;
    return from == NULL || to == NULL;
}

EXPORT cuda_result fake_capture_begin(cuda_stream stream, int mode)
{
    return stream == NULL || mode < 0;
}

EXPORT cuda_result fake_capture_end(cuda_stream stream, gpu_graph *graph)
{
    *graph = (gpu_graph)(void *)&object;
    return stream == NULL;
}

EXPORT cuda_result fake_graph_instantiate(gpu_graph_exec *exec, gpu_graph graph,
                                          unsigned long long flags)
{
    (void)flags;
    *exec = (gpu_graph_exec)(void *)&object;
    return graph == NULL;
}

EXPORT cuda_result fake_graph_launch(gpu_graph_exec exec, cuda_stream stream)
{
    return exec == NULL || stream == NULL;
}

EXPORT cuda_result fake_graph_exec_destroy(gpu_graph_exec exec)
{
    return exec == NULL;
}

EXPORT cuda_result fake_graph_destroy(gpu_graph graph)
{
    return graph == NULL;
}
