/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The further functions that the command line tool asks a CUDA driver for, beside those of
 * tests/cuda/fake_driver.c: memory is host memory, kernels compute nothing, every event is 1 ms
 * behind the one before.  FAKE_CUDA names what fails, FAKE_KERNEL the kernel that a captured run
 * seems to launch.  What is not given back is told when the program ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cli/gpu_driver.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE_(member, symbol, parameters) int fake_cli_##member parameters __asm__(symbol);
GPU_DRIVER_FUNCTIONS(DECLARE_)

int fake_balance(void);

static int memories, events, streams, graphs, execs;

static int fails(const char *what)
{
    const char *failing = getenv("FAKE_CUDA");
    return failing != NULL && strcmp(failing, what) == 0;
}

__attribute__((destructor)) static void tell_balance(void)
{
    const int kept = fake_balance();
    if (memories != 0 || events != 0 || streams != 0 || graphs != 0 || execs != 0 || kept != 0)
        fprintf(stderr,
                "fake driver: %d memories, %d events, %d streams, %d graphs, %d executable graphs "
                "and %d others were not given back\n",
                memories, events, streams, graphs, execs, kept);
}

EXPORT int fake_cli_context_set(gpu_context context)
{
    (void)context;
    return 0;
}

EXPORT int fake_cli_memory_take(gpu_address *address, size_t bytes)
{
    void *memory = fails("memory") ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
    *address = (gpu_address)(uintptr_t)memory;
    memories += memory != NULL;
    return memory != NULL ? 0 : 2;
}

EXPORT int fake_cli_memory_give(gpu_address address)
{
    memories--;
    free(gpu_pointer(address));
    return 0;
}

EXPORT int fake_cli_copy_in(gpu_address to, const void *from, size_t bytes)
{
    memcpy(gpu_pointer(to), from, bytes);
    return fails("copy_in") ? 999 : 0;
}

EXPORT int fake_cli_copy_out(void *to, gpu_address from, size_t bytes)
{
    memcpy(to, gpu_pointer(from), bytes);
    return fails("copy_out") ? 999 : 0;
}

EXPORT int fake_cli_fill_bytes(gpu_address to, unsigned char value, size_t bytes,
                               halfbyte_stream stream)
{
    (void)stream;
    memset(gpu_pointer(to), value, bytes);
    return 0;
}

EXPORT int fake_cli_fill_words(gpu_address to, unsigned value, size_t words, halfbyte_stream stream)
{
    (void)stream;
    memcpy(gpu_pointer(to), &value, words > 0 ? sizeof value : 0);
    return fails("fill") ? 999 : 0;
}

EXPORT int fake_cli_stream_create(halfbyte_stream *stream, unsigned flags)
{
    if (fails("stream"))
        return 2;
    streams++;
    *stream = (halfbyte_stream)(void *)&streams;
    return flags == GPU_STREAM_NON_BLOCKING ? 0 : 1;
}

EXPORT int fake_cli_stream_destroy(halfbyte_stream stream)
{
    (void)stream;
    streams--;
    return 0;
}

EXPORT int fake_cli_capture_begin(halfbyte_stream stream, int mode)
{
    return stream != NULL && mode == GPU_CAPTURE_RELAXED && !fails("capture") ? 0 : 1;
}

EXPORT int fake_cli_capture_end(halfbyte_stream stream, gpu_graph *graph)
{
    (void)stream;
    graphs++;
    *graph = (gpu_graph)(void *)&graphs;
    return 0;
}

EXPORT int fake_cli_graph_nodes(gpu_graph graph, gpu_node *nodes, size_t *count)
{
    (void)graph;
    *count = getenv("FAKE_KERNEL") != NULL && *count > 0 ? 1 : 0;
    if (*count == 1)
        nodes[0] = (gpu_node)(void *)&graphs;
    return fails("nodes") ? 1 : 0;
}

EXPORT int fake_cli_node_type(gpu_node node, int *type)
{
    (void)node;
    *type = GPU_KERNEL_NODE;
    return 0;
}

EXPORT int fake_cli_node_kernel(gpu_node node, gpu_kernel_node *params)
{
    (void)node;
    params->function = (gpu_function)(void *)&graphs;
    return 0;
}

EXPORT int fake_cli_function_name(const char **name, gpu_function function)
{
    *name = getenv("FAKE_KERNEL");
    return function != NULL ? 0 : 1;
}

EXPORT int fake_cli_graph_instantiate(gpu_graph_exec *exec, gpu_graph graph,
                                      unsigned long long flags)
{
    (void)graph;
    (void)flags;
    if (fails("instantiate"))
        return 1;
    execs++;
    *exec = (gpu_graph_exec)(void *)&execs;
    return 0;
}

EXPORT int fake_cli_graph_launch(gpu_graph_exec exec, halfbyte_stream stream)
{
    return exec != NULL && stream != NULL && !fails("graph_launch") ? 0 : 1;
}

EXPORT int fake_cli_graph_exec_destroy(gpu_graph_exec exec)
{
    (void)exec;
    execs--;
    return 0;
}

EXPORT int fake_cli_graph_destroy(gpu_graph graph)
{
    (void)graph;
    graphs--;
    return 0;
}

EXPORT int fake_cli_event_create(gpu_event *event, unsigned flags)
{
    (void)flags;
    if (fails("event") && events == 3)
        return 2;
    events++;
    *event = (gpu_event)(void *)&events;
    return 0;
}

EXPORT int fake_cli_event_destroy(gpu_event event)
{
    (void)event;
    events--;
    return 0;
}

EXPORT int fake_cli_event_record(gpu_event event, halfbyte_stream stream)
{
    return event != NULL && stream != NULL ? 0 : 1;
}

EXPORT int fake_cli_event_ms(float *ms, gpu_event begin, gpu_event end)
{
    *ms = 1.0f;
    return begin != NULL && end != NULL ? 0 : 1;
}

/* The probes. */
EXPORT int fake_cli_launch(gpu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned smem_bytes, halfbyte_stream stream, void **params, void **extra)
{
    (void)smem_bytes;
    (void)extra;
    return function != NULL && grid_x * grid_y * grid_z > 0 && block_x * block_y * block_z > 0 &&
                   stream != NULL && params != NULL && !fails("probe")
               ? 0
               : 1;
}
