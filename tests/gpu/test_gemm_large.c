/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels on large problems and in the long run, against the GPU oracle: 10^9 outputs, a
 * thousand repeats, any number of SMs, replayed by a graph.
 */
#include <stdio.h>

#include "gpu/gemm_run.h"
#include "gpu/tests.h"

/* Milliseconds of one run of the plan, and its wait. */
static double timed_run(session *s, const halfbyte_plan *plan, const halfbyte_operands *operands)
{
    gpu_event from = NULL;
    gpu_event to = NULL;
    float ms = 0;
    session_check(s, s->event_create(&from, 0), "cuEventCreate");
    session_check(s, s->event_create(&to, 0), "cuEventCreate");
    session_check(s, s->event_record(from, NULL), "cuEventRecord");
    const halfbyte_status status = halfbyte_run(plan, operands, NULL, 0, NULL);
    session_check(s, s->event_record(to, NULL), "cuEventRecord");
    session_check(s, s->event_synchronize(to), "cuEventSynchronize");
    session_check(s, s->event_elapsed(&ms, from, to), "cuEventElapsedTime");
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    session_check(s, s->event_destroy(from), "cuEventDestroy");
    session_check(s, s->event_destroy(to), "cuEventDestroy");
    return (double)ms;
}

static halfbyte_plan *plan_make(const halfbyte_problem *problem, halfbyte_device *device)
{
    halfbyte_plan *plan = NULL;
    if (halfbyte_plan_create(&plan, problem, device) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    return plan;
}

/* Large problems by every kernel that serves any m. */
void gpu_test_gemm_billion(session *s)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    const int64_t size = s->quick ? 4096 : 32768;
    for (uint64_t run = 0; run < 2; run++) {
        const int64_t k = run == 0 ? 256 : 200;
        char name[32];
        const gemm_device_data data =
            gemm_data_make(s, &kernels, size, size - (int64_t)run * 77, k,
                           run == 0 ? HALFBYTE_SCALE_MN_MAJOR : HALFBYTE_SCALE_K_MAJOR,
                           s->seed + run, run == 0 ? FILL_NORMAL : FILL_FINITE);
        const cuda_pointer expected = gemm_oracle(s, &kernels, &data);
        for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
            gemm_choose(kernel);
            halfbyte_plan *plan = plan_make(&data.problem, on_gpu);
            gemm_poison(s, &data);
            const double ms = timed_run(s, plan, &data.operands);
            gemm_compare(s, &kernels, kernel_table[kernel].name, &data, expected);
            snprintf(name, sizeof name, "ms_kernel%d_k%d", kernel, (int)k);
            session_figure(s, name, ms);
            halfbyte_plan_destroy(plan);
        }
        session_free(s, expected);
        session_free(s, (cuda_pointer)(uintptr_t)data.operands.d.data);
    }
    halfbyte_device_close(on_gpu);
}

/* One problem again and again by each kernel. */
void gpu_test_gemm_repeat(session *s)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    const int repeats = s->quick ? 50 : 1000;
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        char name[32];
        double ms = 0;
        const gemm_device_data data =
            gemm_data_make(s, &kernels, 777, 2113, 3584, HALFBYTE_SCALE_MN_MAJOR,
                           s->seed + (uint64_t)kernel, FILL_NORMAL);
        gemm_choose(kernel);
        halfbyte_plan *plan = plan_make(&data.problem, on_gpu);
        const cuda_pointer expected = gemm_oracle(s, &kernels, &data);
        for (int i = 0; i < repeats; i++) {
            session_reset(s);
            gemm_poison(s, &data);
            ms += timed_run(s, plan, &data.operands);
            gemm_compare(s, &kernels, kernel_table[kernel].name, &data, expected);
        }
        snprintf(name, sizeof name, "mean_ms_kernel%d", kernel);
        session_figure(s, name, ms / repeats);
        halfbyte_plan_destroy(plan);
    }
    session_figure(s, "repeats", repeats);
    halfbyte_device_close(on_gpu);
}

void gpu_test_gemm_num_sms(session *s)
{
    static const int32_t caps[] = {0, 1, 2, 7, 33, 64, 131, 132, 133, 1000};
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        gemm_device_data data = gemm_data_make(s, &kernels, 1500, 1801, 1000,
                                               HALFBYTE_SCALE_K_MAJOR, s->seed + 5, FILL_NORMAL);
        const cuda_pointer expected = gemm_oracle(s, &kernels, &data);
        gemm_choose(kernel);
        for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
            data.problem.num_sms = caps[i];
            gemm_poison(s, &data);
            if (gemm_run_once(s, on_gpu, &data.problem, &data.operands)) {
                gemm_compare(s, &kernels, kernel_table[kernel].name, &data, expected);
            }
        }
    }
    halfbyte_device_close(on_gpu);
}

/* One run recorded into a graph, which is then replayed. */
void gpu_test_gemm_graph(session *s)
{
    enum { CAPTURE_RELAXED = 2 };
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    const gemm_device_data data = gemm_data_make(s, &kernels, 300, 500, 700,
                                                 HALFBYTE_SCALE_MN_MAJOR, s->seed + 9, FILL_NORMAL);
    halfbyte_plan *plan = plan_make(&data.problem, on_gpu);
    const cuda_pointer expected = gemm_oracle(s, &kernels, &data);
    cuda_stream stream = NULL;
    gpu_graph graph = NULL;
    gpu_graph_exec exec = NULL;
    session_check(s, s->stream_create(&stream, 1), "cuStreamCreate");
    session_check(s, s->capture_begin(stream, CAPTURE_RELAXED), "cuStreamBeginCapture");
    const halfbyte_status status = halfbyte_run(plan, &data.operands, NULL, 0, stream);
    session_check(s, s->capture_end(stream, &graph), "cuStreamEndCapture");
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    session_check(s, s->graph_instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags");
    for (int i = 0; i < 20; i++) {
        gemm_poison(s, &data);
        session_wait(s); /* a non-blocking stream does not wait for the poison */
        session_check(s, s->graph_launch(exec, stream), "cuGraphLaunch");
        session_wait(s);
        gemm_compare(s, &kernels, "replayed", &data, expected);
    }
    session_check(s, s->graph_exec_destroy(exec), "cuGraphExecDestroy");
    session_check(s, s->graph_destroy(graph), "cuGraphDestroy");
    session_check(s, s->stream_destroy(stream), "cuStreamDestroy");
    halfbyte_plan_destroy(plan);
    halfbyte_device_close(on_gpu);
}
