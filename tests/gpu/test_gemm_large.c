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

/* Frees what is large. */
static void data_free(const session *s, const gemm_device_data *data, cuda_pointer expected)
{
    session_free(s, expected);
    session_free(s, (cuda_pointer)(uintptr_t)data->operands.d.data);
    session_free(s, (cuda_pointer)(uintptr_t)data->operands.a.data);
    session_free(s, (cuda_pointer)(uintptr_t)data->operands.b.data);
}

/* One large problem by every kernel that serves it, but for those that have had it with scales of A
 * along k. */
static void large_run(session *s, const oracle_kernels *kernels, halfbyte_device *on_gpu,
                      const gemm_shape *shape, int kind, const char *name)
{
    gemm_shape along_k = *shape;
    gemm_device_data data;
    char figure[96];
    session_doing(name);
    gemm_data_make(s, kernels, shape, s->seed, kind, &data);
    along_k.token_scales = false;
    const cuda_pointer expected = gemm_oracle(s, kernels, &data);
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        if (!gemm_serves(kernel, &data.problem) ||
            (shape->token_scales && gemm_serves_shape(kernel, &along_k))) {
            continue;
        }
        gemm_choose(kernel);
        halfbyte_plan *plan = plan_make(&data.problem, on_gpu);
        gemm_poison(s, &data);
        const double ms = timed_run(s, plan, &data.operands);
        gemm_compare(s, kernels, kernel_table[kernel].name, &data, expected);
        snprintf(figure, sizeof figure, "ms_%s_%s", gemm_kernel_name(kernel), name);
        session_figure(s, figure, ms);
        halfbyte_plan_destroy(plan);
    }
    data_free(s, &data, expected);
}

/* More than 10^9 outputs, then as many with ragged n and k. */
static void billions_run(session *s, halfbyte_family family)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    const int64_t size = s->quick ? 4096 : 32768;
    const bool int4 = family == HALFBYTE_FAMILY_W4A8; /* n % 8, k % 32 */
    const gemm_shape even = {.family = family, .m = size, .n = size, .k = 256};
    const gemm_shape ragged = {.family = family,
                               .m = size - 1,
                               .n = size - (int4 ? 72 : 77),
                               .k = int4 ? 224 : 200,
                               .layout = HALFBYTE_SCALE_K_MAJOR};
    large_run(s, &kernels, on_gpu, &even, FILL_NORMAL, "even");
    large_run(s, &kernels, on_gpu, &ragged, FILL_FINITE, "ragged");
    if (int4) {
        gemm_shape tokens = even;
        tokens.token_scales = true;
        large_run(s, &kernels, on_gpu, &tokens, FILL_NORMAL, "even");
        tokens = ragged;
        tokens.token_scales = true;
        large_run(s, &kernels, on_gpu, &tokens, FILL_FINITE, "ragged");
    }
    halfbyte_device_close(on_gpu);
}

void gpu_test_gemm_billion(session *s)
{
    billions_run(s, HALFBYTE_FAMILY_FP8);
}

void gpu_test_gemm_w4a8_billion(session *s)
{
    billions_run(s, HALFBYTE_FAMILY_W4A8);
}

/* Each operand and D in turn beyond 2^31 elements (B: bytes), in one matrix, in ranges and in
 * planes. */
static const struct {
    const char *name;
    gemm_shape shape;
} far_shapes[] = {
    {"d_dense", {.m = 66000, .n = 33000, .k = 96, .d_type = HALFBYTE_TYPE_F32}},
    {"d_ranges",
     {.m = 66000,
      .n = 33000,
      .k = 64,
      .d_type = HALFBYTE_TYPE_F32,
      .grouping = HALFBYTE_GROUPING_RANGES,
      .groups = 9}},
    {"d_masked",
     {.m = 16384, .n = 8192, .k = 64, .grouping = HALFBYTE_GROUPING_MASKED, .groups = 17}},
    {"a_dense", {.m = 1100000, .n = 64, .k = 2048}},
    {"a_masked",
     {.m = 7168, .n = 64, .k = 7680, .grouping = HALFBYTE_GROUPING_MASKED, .groups = 40}},
    {"b_dense", {.m = 60, .n = 300000, .k = 7520, .layout = HALFBYTE_SCALE_K_MAJOR}},
    {"b_ranges",
     {.m = 300, .n = 7168, .k = 7680, .grouping = HALFBYTE_GROUPING_RANGES, .groups = 40}},
    {"b_masked",
     {.m = 7, .n = 7168, .k = 7680, .grouping = HALFBYTE_GROUPING_MASKED, .groups = 40}},
};

static void far_run(session *s, halfbyte_family family)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    for (size_t i = 0; i < sizeof far_shapes / sizeof far_shapes[0]; i++) {
        gemm_shape shape = far_shapes[i].shape;
        shape.family = family;
        if (family == HALFBYTE_FAMILY_W4A8 && far_shapes[i].name[0] == 'b') {
            shape.k *= 2; /* as many bytes */
        }
        if (s->quick) { /* as a check of the test: nothing is far then */
            shape.m = (shape.m + 63) / 64;
            shape.n = (shape.n + 511) / 512 * 8;
        }
        large_run(s, &kernels, on_gpu, &shape, FILL_NORMAL, far_shapes[i].name);
        if (family == HALFBYTE_FAMILY_W4A8) {
            shape.token_scales = true;
            large_run(s, &kernels, on_gpu, &shape, FILL_NORMAL, far_shapes[i].name);
        }
    }
    halfbyte_device_close(on_gpu);
}

void gpu_test_gemm_far(session *s)
{
    far_run(s, HALFBYTE_FAMILY_FP8);
}

void gpu_test_gemm_w4a8_far(session *s)
{
    far_run(s, HALFBYTE_FAMILY_W4A8);
}

/* One problem again and again by each kernel. */
static void repeats_run(session *s, halfbyte_family family)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    const gemm_shape any = {.family = family, .m = 777, .n = 2112, .k = 3584};
    const int repeats = s->quick ? 50 : 1000;
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        char name[96];
        double ms = 0;
        gemm_device_data data;
        const gemm_shape shape = gemm_shape_for(kernel, &any);
        gemm_data_make(s, &kernels, &shape, s->seed + (uint64_t)kernel, FILL_NORMAL, &data);
        if (!gemm_serves(kernel, &data.problem)) {
            continue;
        }
        gemm_choose(kernel);
        halfbyte_plan *plan = plan_make(&data.problem, on_gpu);
        const cuda_pointer expected = gemm_oracle(s, &kernels, &data);
        for (int i = 0; i < repeats; i++) {
            session_reset(s);
            gemm_poison(s, &data);
            ms += timed_run(s, plan, &data.operands);
            gemm_compare(s, &kernels, kernel_table[kernel].name, &data, expected);
        }
        snprintf(name, sizeof name, "mean_ms_%s", gemm_kernel_name(kernel));
        session_figure(s, name, ms / repeats);
        halfbyte_plan_destroy(plan);
    }
    session_figure(s, "repeats", repeats);
    halfbyte_device_close(on_gpu);
}

void gpu_test_gemm_repeat(session *s)
{
    repeats_run(s, HALFBYTE_FAMILY_FP8);
}

void gpu_test_gemm_w4a8_repeat(session *s)
{
    repeats_run(s, HALFBYTE_FAMILY_W4A8);
}

/* By every kernel but those that have had it with scales of A along k. */
static void num_sms_shape(session *s, const oracle_kernels *kernels, halfbyte_device *on_gpu,
                          const gemm_shape *shape)
{
    static const int32_t caps[] = {0, 1, 2, 7, 33, 64, 131, 132, 133, 1000};
    gemm_shape along_k = *shape;
    gemm_device_data data;
    along_k.token_scales = false;
    gemm_data_make(s, kernels, shape, s->seed + 5, FILL_NORMAL, &data);
    const cuda_pointer expected = gemm_oracle(s, kernels, &data);
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        if (!gemm_serves(kernel, &data.problem) ||
            (shape->token_scales && gemm_serves_shape(kernel, &along_k))) {
            continue;
        }
        gemm_choose(kernel);
        for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
            data.problem.num_sms = caps[i];
            gemm_poison(s, &data);
            if (gemm_run_once(s, on_gpu, &data.problem, &data.operands)) {
                gemm_compare(s, kernels, kernel_table[kernel].name, &data, expected);
            }
        }
    }
}

static void num_sms_run(session *s, halfbyte_family family)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    gemm_shape shape = {.family = family,
                        .m = 1500,
                        .n = family == HALFBYTE_FAMILY_FP8 ? 1801 : 1800,
                        .k = 992,
                        .layout = HALFBYTE_SCALE_K_MAJOR};
    num_sms_shape(s, &kernels, on_gpu, &shape);
    if (family == HALFBYTE_FAMILY_W4A8) {
        shape.token_scales = true;
        num_sms_shape(s, &kernels, on_gpu, &shape);
    }
    halfbyte_device_close(on_gpu);
}

void gpu_test_gemm_num_sms(session *s)
{
    num_sms_run(s, HALFBYTE_FAMILY_FP8);
}

void gpu_test_gemm_w4a8_num_sms(session *s)
{
    num_sms_run(s, HALFBYTE_FAMILY_W4A8);
}

/* One run recorded into a graph, which is then replayed. */
void gpu_test_gemm_graph(session *s)
{
    enum { CAPTURE_RELAXED = 2 };
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    const gemm_shape shape = {.m = 300, .n = 500, .k = 700};
    gemm_device_data data;
    gemm_data_make(s, &kernels, &shape, s->seed + 9, FILL_NORMAL, &data);
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
