/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test's hold on the GPU: driver, memory, modules, launches, and the count of what it compared.
 *
 * Whatever goes wrong with the driver ends the process (each test runs in one of its own) with the
 * sentence that says what; the parent counts it as a failure.
 */
#ifndef HALFBYTE_TESTS_GPU_SESSION_H
#define HALFBYTE_TESTS_GPU_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/gpu.h"
#include "halfbyte.h"
#include "model/parallel.h"

typedef struct CUevent_st *gpu_event;
typedef struct CUgraph_st *gpu_graph;
typedef struct CUgraphExec_st *gpu_graph_exec;

/* Functions of the driver that the library does without.  X(member, symbol, parameters) */
#define SESSION_FUNCTIONS(X)                                                                       \
    X(mem_alloc, "cuMemAlloc_v2", (cuda_pointer * memory, size_t bytes))                           \
    X(mem_free, "cuMemFree_v2", (cuda_pointer memory))                                             \
    X(to_device, "cuMemcpyHtoD_v2", (cuda_pointer dst, const void *src, size_t bytes))             \
    X(to_host, "cuMemcpyDtoH_v2", (void *dst, cuda_pointer src, size_t bytes))                     \
    X(copy_async, "cuMemcpyDtoDAsync_v2",                                                          \
      (cuda_pointer dst, cuda_pointer src, size_t bytes, cuda_stream stream))                      \
    X(set_bytes, "cuMemsetD8_v2", (cuda_pointer dst, unsigned char value, size_t bytes))           \
    X(synchronize, "cuCtxSynchronize", (void))                                                     \
    X(stream_create, "cuStreamCreate", (cuda_stream * stream, unsigned flags))                     \
    X(stream_destroy, "cuStreamDestroy_v2", (cuda_stream stream))                                  \
    X(event_create, "cuEventCreate", (gpu_event * event, unsigned flags))                          \
    X(event_record, "cuEventRecord", (gpu_event event, cuda_stream stream))                        \
    X(event_synchronize, "cuEventSynchronize", (gpu_event event))                                  \
    X(event_elapsed, "cuEventElapsedTime", (float *ms, gpu_event from, gpu_event to))              \
    X(event_destroy, "cuEventDestroy_v2", (gpu_event event))                                       \
    X(capture_begin, "cuStreamBeginCapture_v2", (cuda_stream stream, int mode))                    \
    X(capture_end, "cuStreamEndCapture", (cuda_stream stream, gpu_graph * graph))                  \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (gpu_graph_exec * exec, gpu_graph graph, unsigned long long flags))                          \
    X(graph_launch, "cuGraphLaunch", (gpu_graph_exec exec, cuda_stream stream))                    \
    X(graph_exec_destroy, "cuGraphExecDestroy", (gpu_graph_exec exec))                             \
    X(graph_destroy, "cuGraphDestroy", (gpu_graph graph))

typedef struct session {
    /* asked for */
    bool quick;
    uint64_t seed;

    /* counted by the test */
    int64_t compared, different;
    char figures[16384]; /* ", \"name\": value" pairs for the JSON line */

    gpu *device;
    const cuda_driver *driver;
    parallel_pool *pool; /* for the CPU's side of comparisons */
#define SESSION_MEMBER_(member, symbol, parameters) cuda_result(*member) parameters;
    SESSION_FUNCTIONS(SESSION_MEMBER_)
#undef SESSION_MEMBER_

    cuda_pointer arena; /* handed out by session_memory() */
    size_t arena_bytes, arena_used;
} session;

enum { SESSION_ARENA_BYTES = 256 << 20 };

/* Opens CUDA device 0 and makes its context current. */
void session_open(session *s);

/* Ends the process if a call of the driver failed. */
void session_check(const session *s, cuda_result result, const char *what);
/* What a failure from here on belongs to. */
void session_doing(const char *what);
_Noreturn void session_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* 256-byte aligned memory of the arena, until session_reset(); holds what was there before. */
cuda_pointer session_memory(session *s, size_t bytes);
cuda_pointer session_upload(session *s, const void *data, size_t bytes);
void session_reset(session *s);

void session_download(const session *s, void *dst, cuda_pointer src, size_t bytes);

/* Memory outside the arena. */
cuda_pointer session_allocate(const session *s, size_t bytes);
void session_free(const session *s, cuda_pointer memory);

/* A kernel of a cubin; modules stay loaded until the process ends. */
cuda_module session_module(const session *s, const void *image);
cuda_function session_function(const session *s, cuda_module module, const char *name,
                               unsigned smem_bytes);

/* One parameter struct, one-dimensional grid; waits and checks. */
void session_launch(const session *s, cuda_function function, unsigned blocks, unsigned threads,
                    unsigned smem_bytes, unsigned cluster, void *params);
/* Any parameters; does not wait. */
void session_start(const session *s, cuda_function function, unsigned blocks, unsigned threads,
                   void **parameters);
void session_wait(const session *s);

/* Counts `count` elements of `bytes` bytes each; prints the first few that differ, by index. */
void session_compare(session *s, const char *what, const void *got, const void *expected,
                     size_t bytes, size_t count);
void session_expect(session *s, const char *what, bool holds);

/* Adds a figure to the JSON line and to the printed one. */
void session_figure(session *s, const char *name, double value);

/* Zeroed host memory; freed here or by the process' end: a test is a process. */
void *session_host(size_t bytes);
void session_host_free(void *memory);

/* A device address as the parameter structs want it. */
static inline void *session_pointer(cuda_pointer memory)
{
    return (void *)(uintptr_t)memory;
}

#endif
