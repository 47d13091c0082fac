/* SPDX-License-Identifier: Apache-2.0 */
/* Measures one shape of `halfbyte bench`, on the CPU model or on a GPU. */
#include <stdlib.h>
#include <string.h>

#include "bench_work.h"
#include "common.h"

/* ---- the CPU model --------------------------------------------------------------------------- */

static int by_seconds(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int bench_time_model(const bench_work *work, instance *made, bench_row *row)
{
    double us[BENCH_MOST_REPEATS];
    char description[HALFBYTE_TEXT_BYTES];
    int count = (int)work->repeats, code = CLI_OK;
    for (int i = 0; code == CLI_OK && i < count; ++i) {
        code = instance_run(made, work->model, description, &us[i]);
        us[i] *= 1e6;
    }
    if (code != CLI_OK)
        return code;
    qsort(us, (size_t)count, sizeof us[0], by_seconds);
    row->event = (bench_times){(us[count / 2] + us[(count - 1) / 2]) / 2, us[0], us[count - 1]};
    const char *path = strstr(description, "isa=");
    snprintf(row->kernel, sizeof row->kernel, "model-%.*s",
             path != NULL ? (int)strcspn(path + 4, " ") : 0, path != NULL ? path + 4 : "");
    return CLI_OK;
}

/* ---- a GPU ----------------------------------------------------------------------------------- */

static int enqueue_run(void *context)
{
    const gpu_tensors *tensors = context;
    halfbyte_status status = gpu_tensors_run(tensors, tensors->gpu->stream);
    return status == HALFBYTE_SUCCESS ? CLI_OK : cli_fail_status(status, NULL);
}

typedef struct replay {
    const gpu_driver *gpu;
    gpu_graph_exec exec;
} replay;

static int enqueue_graph(void *context)
{
    const replay *graph = context;
    return GPU_CALL(graph->gpu, graph_launch, (graph->exec, graph->gpu->stream));
}

/* D once more, by run or by graph: is it `first`?  `again` holds it. */
static int run_again(const gpu_tensors *tensors, bench_enqueue *enqueue, void *context,
                     const void *first, void *again, bool *equal)
{
    int code = gpu_tensors_poison(tensors);
    if (code == CLI_OK)
        code = enqueue(context);
    if (code == CLI_OK)
        code = gpu_tensors_fetch(tensors, again);
    if (code == CLI_OK && first != NULL)
        *equal = *equal && memcmp(first, again, (size_t)tensors->d_bytes) == 0;
    return code;
}

/* The first D against the model's rows and against those of later launches. */
static int check_bits(const bench_work *work, instance *made, gpu_tensors *tensors, replay *graph,
                      bench_row *row)
{
    void *first = cli_alloc(tensors->d_bytes, 1);
    if (first == NULL)
        return cli_fail_memory(tensors->d_bytes);
    row->checked = row->repeats_equal = true;
    int code = run_again(tensors, enqueue_run, tensors, NULL, first, NULL);
    if (code == CLI_OK)
        code = run_again(tensors, enqueue_run, tensors, first, made->d, &row->repeats_equal);
    if (code == CLI_OK)
        code = run_again(tensors, enqueue_graph, graph, first, made->d, &row->repeats_equal);
    if (code == CLI_OK)
        code = bench_check_rows(made, work->model, first, &row->compared, &row->different);
    free(first);
    return code;
}

static int time_beside(const bench_work *work, const instance *made, const gpu_tensors *tensors,
                       bench_row *row)
{
    const halfbyte_operands *operands = &tensors->operands;
    host_tensor list[INSTANCE_TENSORS];
    uint64_t weights = 0, activations = 0;
    bench_times times;
    int code = CLI_OK, repeats = (int)work->repeats;
    instance_tensors(made, list);
    for (int i = 0; i < INSTANCE_TENSORS; ++i) {
        weights = list[i].data == made->operands.b.data ? list[i].bytes : weights;
        activations = list[i].data == made->operands.a.data ? list[i].bytes : activations;
    }
    weights = weights / (uint64_t)made->groups * (uint64_t)row->used_groups;
    row->mma_tflops = work->mma_tflops;
    code = bench_read_us(work->gpu, (gpu_address)(uintptr_t)operands->b.data, weights,
                         (gpu_address)(uintptr_t)operands->a.data, activations, repeats,
                         &row->read_us);
    if (code != CLI_OK || work->vendor == NULL ||
        !bench_vendor_prepare(work->vendor, tensors, made))
        return code;
    code = bench_time(work->gpu, bench_vendor_enqueue, work->vendor, repeats, &times);
    row->baseline_us = times.median_us;
    return code;
}

static int time_tensors(const bench_work *work, instance *made, gpu_tensors *tensors,
                        bench_row *row)
{
    const gpu_driver *gpu = &work->gpu->gpu;
    replay graph = {gpu, NULL};
    bench_times times = {0, 0, 0};
    int repeats = (int)work->repeats;
    int code = bench_capture(work->gpu, tensors, row->kernel, sizeof row->kernel, &graph.exec);
    if (code == CLI_OK)
        code = bench_time(work->gpu, enqueue_run, tensors, repeats, &row->event);
    if (code == CLI_OK)
        code = bench_time(work->gpu, enqueue_graph, &graph, repeats, &times);
    row->graph_us = times.median_us;
    if (code == CLI_OK && !work->no_check)
        code = check_bits(work, made, tensors, &graph, row);
    if (code == CLI_OK)
        code = time_beside(work, made, tensors, row);
    if (graph.exec != NULL)
        gpu->graph_exec_destroy(graph.exec);
    return code;
}

int bench_time_gpu(const bench_work *work, instance *made, bench_row *row)
{
    gpu_tensors tensors;
    int code = gpu_tensors_create(&tensors, &work->gpu->gpu, work->gpu_device, made);
    if (code == CLI_OK)
        code = time_tensors(work, made, &tensors, row);
    gpu_tensors_free(&tensors);
    return code;
}
