/* SPDX-License-Identifier: Apache-2.0 */
/* Timing on a GPU, and the probes that say what the machine gives. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/kernels/bench_params.h"
#include "common.h"

enum { WARM_LAUNCHES = 2, PROBE_REPEATS = 7, MMA_LAUNCHES = 12, MMA_MS = 60, NUM_WAYS = 8 };

static const uint64_t flush_bytes = UINT64_C(256) << 20;

/* In the build with nvcc alone. */
#if defined(HALFBYTE_HAS_KERNELS)
extern const unsigned char kernel_image_bench_read[] __attribute__((visibility("hidden")));
extern const unsigned char kernel_image_bench_mma[] __attribute__((visibility("hidden")));
static const unsigned char *const read_image = kernel_image_bench_read;
static const unsigned char *const mma_image = kernel_image_bench_mma;
#else
static const unsigned char *const read_image = NULL;
static const unsigned char *const mma_image = NULL;
#endif

/* ---- life ------------------------------------------------------------------------------------ */

static int load_probe(bench_gpu *bench, int at, const unsigned char *image, const char *name,
                      gpu_function *function)
{
    const gpu_driver *gpu = &bench->gpu;
    int code = GPU_CALL(gpu, module_load, (&bench->probe_modules[at], image));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, module_function, (function, bench->probe_modules[at], name));
    return code;
}

int bench_gpu_open(bench_gpu *bench, int ordinal, bool probes)
{
    memset(bench, 0, sizeof *bench);
    const gpu_driver *gpu = &bench->gpu;
    int code = gpu_driver_open(&bench->gpu, ordinal);
    if (code == CLI_OK)
        code = gpu_take(gpu, flush_bytes, &bench->flush);
    if (code == CLI_OK)
        code = gpu_take(gpu, 256, &bench->sink);
    if (code != CLI_OK || !probes || read_image == NULL)
        return code;
    code = load_probe(bench, 0, read_image, "bench_read", &bench->read_kernel);
    if (code == CLI_OK)
        code = load_probe(bench, 1, mma_image, "bench_mma", &bench->mma_kernel);
    if (code == CLI_OK)
        code =
            GPU_CALL(gpu, function_set, (bench->mma_kernel, GPU_MAX_DYNAMIC_SMEM, BENCH_MMA_SMEM));
    return code;
}

void bench_gpu_close(bench_gpu *bench)
{
    const gpu_driver *gpu = &bench->gpu;
    if (gpu->stream != NULL)
        gpu->stream_wait(gpu->stream);
    for (int i = 0; i < bench->events; ++i) {
        gpu->event_destroy(bench->begin[i]);
        gpu->event_destroy(bench->end[i]);
    }
    for (int i = 0; i < 2; ++i) {
        if (bench->probe_modules[i] != NULL)
            gpu->module_unload(bench->probe_modules[i]);
    }
    gpu_give(gpu, bench->flush);
    gpu_give(gpu, bench->sink);
    gpu_driver_close(&bench->gpu);
}

/* ---- times ----------------------------------------------------------------------------------- */

static int make_events(bench_gpu *bench, int count)
{
    const gpu_driver *gpu = &bench->gpu;
    while (bench->events < count) {
        int at = bench->events;
        int code = GPU_CALL(gpu, event_create, (&bench->begin[at], 0));
        if (code == CLI_OK && (code = GPU_CALL(gpu, event_create, (&bench->end[at], 0))) != CLI_OK)
            gpu->event_destroy(bench->begin[at]);
        if (code != CLI_OK)
            return code;
        bench->events++;
    }
    return CLI_OK;
}

static int by_value(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static int time_one(bench_gpu *bench, bench_enqueue *enqueue, void *context, int at)
{
    const gpu_driver *gpu = &bench->gpu;
    int code = GPU_CALL(gpu, fill_words,
                        (bench->flush, 0x01010101u, (size_t)(flush_bytes / 4), gpu->stream));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, event_record, (bench->begin[at], gpu->stream));
    if (code == CLI_OK)
        code = enqueue(context);
    return code == CLI_OK ? GPU_CALL(gpu, event_record, (bench->end[at], gpu->stream)) : code;
}

int bench_time(bench_gpu *bench, bench_enqueue *enqueue, void *context, int repeats,
               bench_times *times)
{
    const gpu_driver *gpu = &bench->gpu;
    double us[BENCH_MOST_REPEATS];
    int code = make_events(bench, repeats);
    for (int i = 0; code == CLI_OK && i < WARM_LAUNCHES; ++i)
        code = enqueue(context);
    for (int i = 0; code == CLI_OK && i < repeats; ++i)
        code = time_one(bench, enqueue, context, i);
    if (code == CLI_OK)
        code = GPU_CALL(gpu, stream_wait, (gpu->stream));
    for (int i = 0; code == CLI_OK && i < repeats; ++i) {
        float ms = 0;
        code = GPU_CALL(gpu, event_ms, (&ms, bench->begin[i], bench->end[i]));
        us[i] = (double)ms * 1e3;
    }
    if (code != CLI_OK)
        return code;
    qsort(us, (size_t)repeats, sizeof us[0], by_value);
    double upper = us[repeats / 2], lower = us[(repeats - 1) / 2];
    *times = (bench_times){(upper + lower) / 2, us[0], us[repeats - 1]};
    return CLI_OK;
}

/* ---- which kernels --------------------------------------------------------------------------- */

static void add_name(const char *name, char *names, size_t bytes)
{
    static const char prefix[] = "halfbyte_sm90_";
    size_t used = strlen(names);
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    snprintf(names + used, bytes - used, "%s%s", used > 0 ? "+" : "", name);
}

static int read_nodes(const gpu_driver *gpu, gpu_graph graph, char *names, size_t bytes)
{
    gpu_node nodes[16];
    size_t count = sizeof nodes / sizeof nodes[0];
    int code = GPU_CALL(gpu, graph_nodes, (graph, nodes, &count));
    for (size_t i = 0; code == CLI_OK && i < count; ++i) {
        gpu_kernel_node node;
        const char *name = NULL;
        int type = 0;
        memset(&node, 0, sizeof node);
        code = GPU_CALL(gpu, node_type, (nodes[i], &type));
        if (code != CLI_OK || type != GPU_KERNEL_NODE)
            continue;
        code = GPU_CALL(gpu, node_kernel, (nodes[i], &node));
        if (code == CLI_OK)
            code = GPU_CALL(gpu, function_name, (&name, node.function));
        if (code == CLI_OK)
            add_name(name, names, bytes);
    }
    return code;
}

int bench_capture(bench_gpu *bench, const gpu_tensors *tensors, char *names, size_t bytes,
                  gpu_graph_exec *exec)
{
    const gpu_driver *gpu = &bench->gpu;
    gpu_graph graph = NULL;
    names[0] = '\0';
    int code = GPU_CALL(gpu, capture_begin, (gpu->stream, GPU_CAPTURE_RELAXED));
    if (code != CLI_OK)
        return code;
    halfbyte_status status = gpu_tensors_run(tensors, gpu->stream);
    code = GPU_CALL(gpu, capture_end, (gpu->stream, &graph));
    if (status != HALFBYTE_SUCCESS)
        code = cli_fail_status(status, NULL);
    if (code == CLI_OK)
        code = read_nodes(gpu, graph, names, bytes);
    if (code == CLI_OK && exec != NULL)
        code = GPU_CALL(gpu, graph_instantiate, (exec, graph, 0));
    if (graph != NULL)
        gpu->graph_destroy(graph);
    return code;
}

/* ---- probes ---------------------------------------------------------------------------------- */

typedef struct reading {
    const bench_gpu *bench;
    bench_read_params params;
    unsigned blocks;
} reading;

static int enqueue_read(void *context)
{
    reading *read = context;
    const gpu_driver *gpu = &read->bench->gpu;
    void *params[] = {&read->params};
    return GPU_CALL(gpu, launch,
                    (read->bench->read_kernel, read->blocks, 1, 1, BENCH_READ_THREADS, 1, 1, 0,
                     gpu->stream, params, NULL));
}

/* Way 0 .. NUM_WAYS - 1: blocks an SM and cache policy. */
static void set_way(reading *read, int way)
{
    static const unsigned shares[NUM_WAYS / 2] = {1, 2, 4, 16};
    read->blocks = (unsigned)read->bench->gpu.sms * shares[way / 2];
    read->params.policy = way % 2 == 0 ? BENCH_EVICT_NORMAL : BENCH_EVICT_FIRST;
}

static int fastest_way(bench_gpu *bench, reading *read, int *way)
{
    double best = 0;
    int code = CLI_OK;
    for (int i = 0; code == CLI_OK && i < NUM_WAYS; ++i) {
        bench_times times;
        set_way(read, i);
        code = bench_time(bench, enqueue_read, read, PROBE_REPEATS, &times);
        if (code == CLI_OK && (i == 0 || times.median_us < best)) {
            best = times.median_us;
            *way = i;
        }
    }
    return code;
}

/* Sizes within a quarter of a power of two read alike. */
static int size_class(uint64_t bytes)
{
    int bits = 0;
    while (bits < 63 && bytes >> bits > 7)
        ++bits;
    return bits * 8 + (int)(bytes >> bits);
}

int bench_read_us(bench_gpu *bench, gpu_address weights, uint64_t weight_bytes,
                  gpu_address activations, uint64_t activation_bytes, int repeats, double *us)
{
    *us = 0;
    if (bench->read_kernel == NULL)
        return CLI_OK;
    reading read = {.bench = bench};
    read.params.weights = gpu_pointer(weights);
    read.params.weight_bytes = weight_bytes;
    read.params.activations = gpu_pointer(activations);
    read.params.activation_bytes = activation_bytes;
    read.params.sink = gpu_pointer(bench->sink);
    int size = size_class(weight_bytes + activation_bytes);
    int known = 0, way = 0, code = CLI_OK;
    while (known < bench->ways_known && bench->ways[known].size != size)
        ++known;
    if (known < bench->ways_known) {
        way = bench->ways[known].way;
    } else {
        code = fastest_way(bench, &read, &way);
        if (code == CLI_OK && known < (int)(sizeof bench->ways / sizeof bench->ways[0])) {
            bench->ways[known].size = size;
            bench->ways[known].way = way;
            bench->ways_known++;
        }
    }
    bench_times times = {0, 0, 0};
    set_way(&read, way);
    if (code == CLI_OK)
        code = bench_time(bench, enqueue_read, &read, repeats, &times);
    *us = times.median_us;
    return code;
}

int bench_mma_tflops(bench_gpu *bench, double *tflops)
{
    const gpu_driver *gpu = &bench->gpu;
    const int warpgroups = BENCH_MMA_THREADS / 128 * gpu->sms;
    const double flops = BENCH_MMA_CHAIN * BENCH_MMA_FLOPS * warpgroups;
    bench_mma_params params = {(uint32_t)(MMA_MS * 1e-3 * 1.7e15 / flops / MMA_LAUNCHES), 1,
                               gpu_pointer(bench->sink)};
    void *list[] = {&params};
    float ms = 0;
    *tflops = 0;
    if (bench->mma_kernel == NULL)
        return CLI_OK;
    int code = make_events(bench, 1);
    for (int i = 0; code == CLI_OK && i <= MMA_LAUNCHES; ++i) {
        if (i == 1)
            code = GPU_CALL(gpu, event_record, (bench->begin[0], gpu->stream));
        if (code == CLI_OK)
            code = GPU_CALL(gpu, launch,
                            (bench->mma_kernel, (unsigned)gpu->sms, 1, 1, BENCH_MMA_THREADS, 1, 1,
                             BENCH_MMA_SMEM, gpu->stream, list, NULL));
    }
    if (code == CLI_OK)
        code = GPU_CALL(gpu, event_record, (bench->end[0], gpu->stream));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, stream_wait, (gpu->stream));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, event_ms, (&ms, bench->begin[0], bench->end[0]));
    if (code == CLI_OK && ms > 0)
        *tflops = flops * params.chains * MMA_LAUNCHES / (double)ms * 1e-9;
    return code;
}
