/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 256 experts whose loads are uneven, at a model's extents, by every kernel that serves them and
 * against the GPU oracle: all tokens at one expert, one token each, Zipf.  And two kernels that
 * share a product's groups by size, captured once and replayed with other loads.
 */
#include <stdio.h>

#include "api/gemm_select.h"
#include "api/problem_check.h"
#include "bench/expert_loads.h"
#include "gpu/gemm_run.h"
#include "gpu/tests.h"

enum { EXPERTS = 256, TOKENS = 2048, TOP = 8, LOADS = 3 };

static const char *const load_names[LOADS] = {"one", "each", "zipf"};

/* Rows of each expert; returns their sum. */
static int64_t load_make(int load, uint64_t seed, int64_t rows[EXPERTS])
{
    int64_t sum = 0;
    if (load == 2) {
        expert_loads_zipf(TOKENS, TOP, EXPERTS, seed, rows);
    }
    for (int e = 0; e < EXPERTS; e++) {
        rows[e] = load == 0 ? (e == 97 ? TOKENS : 0) : load == 1 ? 1 : rows[e];
        sum += rows[e];
    }
    return sum;
}

static void memory_free(const session *s, const void *memory)
{
    session_free(s, (cuda_pointer)(uintptr_t)memory);
}

static void data_free(const session *s, const gemm_device_data *data)
{
    if (data->oracle.b.data != data->operands.b.data) {
        memory_free(s, data->oracle.b.data);
    }
    memory_free(s, data->operands.a.data);
    memory_free(s, data->operands.b.data);
    memory_free(s, data->operands.d.data);
}

static void shape_run(session *s, const oracle_kernels *kernels, halfbyte_device *on_gpu,
                      const gemm_shape *shape, const char *name)
{
    gemm_device_data data;
    int served = 0;
    session_doing(name);
    gemm_data_make(s, kernels, shape, s->seed, FILL_NORMAL, &data);
    const cuda_pointer expected = gemm_oracle(s, kernels, &data);
    for (int kernel = GEMM_ANY_KERNEL; kernel < KERNEL_COUNT; kernel++) {
        const bool any = kernel == GEMM_ANY_KERNEL;
        if (!any && !gemm_serves(kernel, &data.problem)) {
            continue;
        }
        gemm_choose(kernel);
        gemm_poison(s, &data);
        if (gemm_run_once(s, on_gpu, &data.problem, &data.operands)) {
            gemm_compare(s, kernels, any ? name : kernel_table[kernel].name, &data, expected);
        }
        served++;
    }
    session_figure(s, name, served);
    session_free(s, expected);
    data_free(s, &data);
}

/* quick: narrower, with as many experts. */
static void uneven_run(session *s, halfbyte_family family)
{
    static const int64_t extents[2][2] = {{4096, 7168}, {7168, 2048}};
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    for (int i = 0; i < 2 * LOADS; i++) {
        int64_t rows[EXPERTS];
        const int64_t *extent = extents[i / LOADS];
        const gemm_shape shape = {.family = family,
                                  .m = load_make(i % LOADS, s->seed, rows),
                                  .n = s->quick ? extent[0] / 64 : extent[0],
                                  .k = s->quick ? extent[1] / 32 : extent[1],
                                  .grouping = HALFBYTE_GROUPING_RANGES,
                                  .groups = EXPERTS,
                                  .rows = rows,
                                  .token_scales = family == HALFBYTE_FAMILY_W4A8};
        char name[64];
        snprintf(name, sizeof name, "%s_n%lld_k%lld", load_names[i % LOADS], (long long)extent[0],
                 (long long)extent[1]);
        shape_run(s, &kernels, on_gpu, &shape, name);
    }
    halfbyte_device_close(on_gpu);
}

void gpu_test_gemm_uneven(session *s)
{
    uneven_run(s, HALFBYTE_FAMILY_FP8);
}

void gpu_test_gemm_w4a8_uneven(session *s)
{
    uneven_run(s, HALFBYTE_FAMILY_W4A8);
}

/* ---- by size --------------------------------------------------------------------------------- */

enum { ROWS = TOKENS * TOP, REPLAYS = 5 };

/* Loads of ROWS rows. */
static void replay_load(int replay, uint64_t seed, int64_t rows[EXPERTS])
{
    if (replay % 2 == 0) {
        expert_loads_zipf(TOKENS, TOP, EXPERTS, seed + (uint64_t)replay, rows);
        return;
    }
    for (int e = 0; e < EXPERTS; e++) {
        rows[e] = replay == 1 ? (e == 200 ? ROWS : 0) : ROWS / EXPERTS;
    }
}

/* Into the arrays that the run and the oracle read. */
static void load_write(const session *s, const gemm_device_data *data, const int64_t rows[EXPERTS])
{
    int32_t ends[EXPERTS];
    int32_t *group_of = session_host(ROWS * sizeof *group_of);
    int32_t at = 0;
    for (int e = 0; e < EXPERTS; e++) {
        for (int64_t row = 0; row < rows[e]; row++) {
            group_of[at++] = e;
        }
        ends[e] = at;
    }
    session_check(
        s, s->to_device((cuda_pointer)(uintptr_t)data->operands.groups.ends, ends, sizeof ends),
        "cuMemcpyHtoD");
    session_check(s,
                  s->to_device((cuda_pointer)(uintptr_t)data->oracle.row_group, group_of,
                               ROWS * sizeof *group_of),
                  "cuMemcpyHtoD");
    session_host_free(group_of);
}

/* Do two kernels share the groups? */
static bool is_shared(const gemm_device_data *data)
{
    enum { SMS = 132 };
    halfbyte_problem resolved = data->problem;
    problem_resolve(&resolved, HALFBYTE_PROFILE_SM90);
    const gemm_kernel_set all = gemm_select(&resolved, ((gemm_kernel_set)1 << KERNEL_COUNT) - 1);
    return gemm_choice_for(all, NULL, &resolved, &data->operands, SMS).large != GEMM_NO_KERNEL;
}

static gpu_graph_exec captured(session *s, const halfbyte_plan *plan, const gemm_device_data *data,
                               cuda_stream stream)
{
    enum { CAPTURE_RELAXED = 2 };
    gpu_graph graph = NULL;
    gpu_graph_exec exec = NULL;
    session_check(s, s->capture_begin(stream, CAPTURE_RELAXED), "cuStreamBeginCapture");
    const halfbyte_status status = halfbyte_run(plan, &data->operands, NULL, 0, stream);
    session_check(s, s->capture_end(stream, &graph), "cuStreamEndCapture");
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    session_check(s, s->graph_instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags");
    session_check(s, s->graph_destroy(graph), "cuGraphDestroy");
    return exec;
}

/* quick: a product so short that one kernel has all groups.  FP8 products are never shared.
 */
void gpu_test_gemm_w4a8_by_size(session *s)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    int64_t rows[EXPERTS];
    replay_load(0, s->seed, rows);
    const gemm_shape shape = {.family = HALFBYTE_FAMILY_W4A8,
                              .m = ROWS,
                              .n = s->quick ? 64 : 4096,
                              .k = s->quick ? 128 : 2048,
                              .grouping = HALFBYTE_GROUPING_RANGES,
                              .groups = EXPERTS,
                              .rows = rows,
                              .token_scales = true};
    gemm_device_data data;
    halfbyte_plan *plan = NULL;
    cuda_stream stream = NULL;
    gemm_choose(GEMM_ANY_KERNEL);
    gemm_data_make(s, &kernels, &shape, s->seed, FILL_NORMAL, &data);
    session_expect(s, "two kernels have the groups between them", is_shared(&data) == !s->quick);
    if (halfbyte_plan_create(&plan, &data.problem, on_gpu) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    session_check(s, s->stream_create(&stream, 1), "cuStreamCreate");
    const gpu_graph_exec exec = captured(s, plan, &data, stream);
    for (int replay = 0; replay < REPLAYS; replay++) {
        replay_load(replay, s->seed, rows);
        load_write(s, &data, rows);
        const cuda_pointer expected = gemm_oracle(s, &kernels, &data);
        gemm_poison(s, &data); /* waits */
        session_check(s, s->graph_launch(exec, stream), "cuGraphLaunch");
        session_wait(s);
        gemm_compare(s, &kernels, "replayed", &data, expected);
        session_free(s, expected);
    }
    session_check(s, s->graph_exec_destroy(exec), "cuGraphExecDestroy");
    session_check(s, s->stream_destroy(stream), "cuStreamDestroy");
    halfbyte_plan_destroy(plan);
    data_free(s, &data);
    halfbyte_device_close(on_gpu);
}
