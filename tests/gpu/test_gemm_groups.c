/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grouped products whose sizes only the device knows: one call captured into a graph and replayed
 * with other sizes, some of them out of range; one call a thousand times.
 */
#include <stdio.h>
#include <string.h>

#include "api/gemm_select.h"
#include "api/plan.h"
#include "gpu/gemm_run.h"
#include "gpu/gpu_case.h"
#include "gpu/tests.h"
#include "oracle/operand.h"

/* ---- other sizes, in the case's own arrays --------------------------------------------------- */

/* The case's memory is the test's, though operands only read it. */
static void index_write(const struct gemm_case *c, const void *array, int64_t stride, int64_t at,
                        int64_t value)
{
    const bool wide = c->problem.index_type == HALFBYTE_INDEX_INT64;
    const int32_t narrow = (int32_t)value;
    uint8_t *to = (uint8_t *)(uintptr_t)array +
                  (size_t)(at * (stride == 0 ? 1 : stride)) * (wide ? sizeof value : sizeof narrow);
    memcpy(to, wide ? (const void *)&value : &narrow, wide ? sizeof value : sizeof narrow);
}

/* What no group may have; only where it cannot make groups overlap. */
static int64_t hostile(struct random *r, int64_t value)
{
    static const int64_t odd[] = {-1, INT32_MIN, INT32_MAX, 1 << 20, -77};
    return random_percent(r, 12) ? odd[random_below(r, 5)] : value;
}

static void ranges_redraw(struct random *r, struct gemm_case *c)
{
    const halfbyte_groups *g = &c->operands.groups;
    const int64_t groups = oracle_groups(&c->problem);
    const bool by_counts = g->starts == NULL && g->counts != NULL;
    int64_t at = g->starts != NULL ? random_below(r, c->operands.m + 1) / 3 : 0;
    for (int64_t i = 0; i < groups; i++) {
        const int64_t left = c->operands.m - at;
        const int64_t rows = random_percent(r, 25) ? 0 : random_between(r, 0, left);
        if (g->starts != NULL) {
            index_write(c, g->starts, g->starts_stride, i, at);
        }
        if (g->ends != NULL) {
            index_write(c, g->ends, g->ends_stride, i, at + rows);
        }
        if (g->counts != NULL) {
            index_write(c, g->counts, g->counts_stride, i, by_counts ? hostile(r, rows) : rows);
        }
        at += rows;
    }
}

static void labels_redraw(struct random *r, struct gemm_case *c)
{
    int32_t *labels = (int32_t *)(uintptr_t)c->operands.groups.labels;
    const int64_t groups = oracle_groups(&c->problem);
    int64_t group = 0;
    for (int64_t row = 0; row < c->operands.m; row++) {
        if (random_percent(r, 10)) {
            group += random_between(r, 0, 2);
        }
        group = group < groups ? group : groups - 1;
        labels[row] = (int32_t)(random_percent(r, 10) ? -1 : group);
        if (random_percent(r, 4)) {
            labels[row] = (int32_t)(random_percent(r, 50) ? groups : INT32_MIN);
        }
    }
}

static void sizes_redraw(session *s, struct random *r, struct gemm_case *c, const gpu_case *on_gpu)
{
    const halfbyte_groups *g = &c->operands.groups;
    if (g->labels != NULL) {
        labels_redraw(r, c);
    } else if (c->problem.grouping == HALFBYTE_GROUPING_RANGES) {
        ranges_redraw(r, c);
    }
    for (int64_t i = 0; c->kind.form == FORM_MASKED_COUNTS && i < oracle_groups(&c->problem); i++) {
        index_write(c, g->counts, g->counts_stride, i,
                    hostile(r, random_between(r, 0, c->operands.m)));
    }
    gpu_case_refresh(s, c, on_gpu, g->starts);
    gpu_case_refresh(s, c, on_gpu, g->ends);
    gpu_case_refresh(s, c, on_gpu, g->counts);
    gpu_case_refresh(s, c, on_gpu, g->labels);
}

/* What the GPU's plan says of the sizes on the GPU is what the model's says of those here. */
static void sizes_check(session *s, const struct gemm_case *c, const gpu_case *on_gpu,
                        halfbyte_plan *const plan[2])
{
    char said[512];
    const halfbyte_status expected = halfbyte_check_groups(plan[1], &c->operands, NULL);
    snprintf(said, sizeof said, "%s",
             expected == HALFBYTE_SUCCESS ? "as it was" : halfbyte_last_error());
    const halfbyte_status status = halfbyte_check_groups(plan[0], &on_gpu->operands, NULL);
    session_expect(s, said, status == expected);
    session_expect(s, said,
                   expected == HALFBYTE_SUCCESS || strcmp(said, halfbyte_last_error()) == 0);
}

/* ---- graph ----------------------------------------------------------------------------------- */

static gpu_graph_exec captured(session *s, const halfbyte_plan *plan, const gpu_case *on_gpu,
                               cuda_stream stream)
{
    enum { CAPTURE_RELAXED = 2 };
    const cuda_pointer workspace = gpu_case_workspace(s, plan);
    gpu_graph graph = NULL;
    gpu_graph_exec exec = NULL;
    session_check(s, s->capture_begin(stream, CAPTURE_RELAXED), "cuStreamBeginCapture");
    const halfbyte_status status = halfbyte_run(plan, &on_gpu->operands, session_pointer(workspace),
                                                halfbyte_plan_workspace_bytes(plan), stream);
    session_check(s, s->capture_end(stream, &graph), "cuStreamEndCapture");
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    session_check(s, s->graph_instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags");
    session_check(s, s->graph_destroy(graph), "cuGraphDestroy");
    return exec;
}

static void graph_run(session *s, struct random *r, const struct case_kind *kind,
                      halfbyte_device *const device[2], cuda_stream stream)
{
    const struct case_options options = {.finite = true,
                                         .aligned = true,
                                         .packed = !gemm_serves_w4a8(HALFBYTE_B_ROW_MAJOR),
                                         .m = random_between(r, 40, 400),
                                         .n = random_between(r, 1, 300),
                                         .groups = random_between(r, 2, 40)};
    struct gemm_case c;
    gpu_case on_gpu;
    halfbyte_plan *plan[2] = {NULL, NULL};
    char text[GPU_CASE_TEXT];
    case_make(&c, r, kind, &options);
    gpu_case_make_served(&c);
    gpu_case_text(&c, "replayed", text);
    session_doing(text);
    session_reset(s);
    gpu_case_upload(s, &c, &on_gpu);
    for (int side = 0; side < 2; side++) {
        if (halfbyte_plan_create(&plan[side], &c.problem, device[side]) != HALFBYTE_SUCCESS) {
            session_die("%s", halfbyte_last_error());
        }
    }
    const gpu_graph_exec exec = captured(s, plan[0], &on_gpu, stream);
    for (int replay = 0; replay < 6; replay++) {
        const int64_t before = s->different;
        sizes_redraw(s, r, &c, &on_gpu);
        sizes_check(s, &c, &on_gpu, plan);
        gpu_case_restore_d(s, &c, &on_gpu);
        session_wait(s); /* a non-blocking stream does not wait for the copies */
        session_check(s, s->graph_launch(exec, stream), "cuGraphLaunch");
        session_wait(s);
        if (gpu_case_model(s, &c, device[1])) {
            gpu_case_compare(s, &c, &on_gpu, "replayed");
        }
        if (s->different != before) {
            printf("  replay %d: %s\n", replay, text);
        }
    }
    session_check(s, s->graph_exec_destroy(exec), "cuGraphExecDestroy");
    halfbyte_plan_destroy(plan[1]);
    halfbyte_plan_destroy(plan[0]);
    case_free(&c);
}

/* Kinds spread over the family, in every form that has sizes. */
static void graphs_test(session *s, halfbyte_family family, int step)
{
    halfbyte_device *const device[2] = {gemm_device(HALFBYTE_EXECUTOR_GPU),
                                        gemm_device(HALFBYTE_EXECUTOR_MODEL)};
    struct random r = {s->seed * 59 + (uint64_t)family};
    cuda_stream stream = NULL;
    int graphs = 0;
    session_check(s, s->stream_create(&stream, 1), "cuStreamCreate");
    for (int i = 0; i < case_kind_count(family) * FORM_COUNT; i += step) {
        const enum group_form form = (enum group_form)(i % FORM_COUNT);
        if (form != FORM_DENSE && form != FORM_MASKED_ALL) {
            const struct case_kind kind = case_kind_at(family, i / FORM_COUNT, form);
            graph_run(s, &r, &kind, device, stream);
            graphs++;
        }
    }
    session_figure(s, family == HALFBYTE_FAMILY_FP8 ? "fp8_graphs" : "w4a8_graphs", graphs);
    session_check(s, s->stream_destroy(stream), "cuStreamDestroy");
    halfbyte_device_close(device[1]);
    halfbyte_device_close(device[0]);
}

void gpu_test_gemm_graph_sizes(session *s)
{
    graphs_test(s, HALFBYTE_FAMILY_FP8, s->quick ? 13 : 3);
}

void gpu_test_gemm_w4a8_graph_sizes(session *s)
{
    graphs_test(s, HALFBYTE_FAMILY_W4A8, s->quick ? 97 : 19);
}

/* ---- repeats --------------------------------------------------------------------------------- */

/* Again and again by the kernels that plans may choose now; the first D is compared with the
 * model's, the others with it. */
static void repeats_run(session *s, const oracle_kernels *kernels, const struct gemm_case *c,
                        const gpu_case *on_gpu, halfbyte_device *device, const char *name)
{
    const int repeats = s->quick ? 50 : 1000;
    const size_t used = s->arena_used;
    halfbyte_plan *plan = NULL;
    if (halfbyte_plan_create(&plan, &c->problem, device) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    const cuda_pointer before = session_upload(s, c->d_before, c->d_bytes);
    const cuda_pointer expected = session_upload(s, c->d_base, c->d_bytes);
    const cuda_pointer workspace = gpu_case_workspace(s, plan);
    const size_t loop_used = s->arena_used;
    for (int i = 0; i < repeats; i++) {
        uint64_t first = 0;
        s->arena_used = loop_used;
        session_check(s, s->copy_async(on_gpu->d, before, c->d_bytes, NULL), "cuMemcpyDtoDAsync");
        const halfbyte_status status =
            halfbyte_run(plan, &on_gpu->operands, session_pointer(workspace),
                         halfbyte_plan_workspace_bytes(plan), NULL);
        session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
        const uint64_t different =
            oracle_compare(s, kernels, on_gpu->d, expected, c->d_bytes, &first);
        s->compared += (int64_t)c->d_bytes;
        s->different += (int64_t)different;
        if (different != 0) {
            printf("  %s, repeat %d: %llu bytes differ\n", name, i, (unsigned long long)different);
        }
    }
    halfbyte_plan_destroy(plan);
    s->arena_used = used;
}

/* bare: without terms, by the kernels that serve no others. */
static void repeats_test(session *s, halfbyte_family family, int kind_index, enum group_form form,
                         bool bare)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *const device = gemm_device(HALFBYTE_EXECUTOR_GPU);
    halfbyte_device *const model = gemm_device(HALFBYTE_EXECUTOR_MODEL);
    const bool masked = form == FORM_MASKED_COUNTS;
    const struct case_options options = {.aligned = true,
                                         .packed = true,
                                         .m = masked ? 150 : 1200,
                                         .n = 520,
                                         .k = 1504,
                                         .groups = 9,
                                         .bare = bare,
                                         .d_type = bare ? HALFBYTE_TYPE_BF16 : HALFBYTE_TYPE_NONE};
    const struct case_kind kind = case_kind_at(family, kind_index, form);
    struct random r = {s->seed * 7 + (uint64_t)form};
    struct gemm_case c;
    gpu_case on_gpu;
    case_make(&c, &r, &kind, &options);
    gpu_case_make_served(&c);
    c.problem.num_sms = 0;
    session_reset(s);
    gpu_case_upload(s, &c, &on_gpu);
    gemm_choose(GEMM_ANY_KERNEL);
    halfbyte_plan *plan = NULL;
    if (halfbyte_plan_create(&plan, &c.problem, device) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    if (gpu_case_model(s, &c, model)) {
        for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
            if (gemm_kernel_accepts(kernel, &plan->problem) &&
                (!bare || gemm_serves_bare(kernel, &c.problem))) {
                gemm_choose(kernel);
                repeats_run(s, &kernels, &c, &on_gpu, device, kernel_table[kernel].name);
            }
        }
    }
    halfbyte_plan_destroy(plan);
    case_free(&c);
    halfbyte_device_close(model);
    halfbyte_device_close(device);
}

/* A's scale along k, B's in 128x128; A's one a row, B's bf16, one in groups of 128, and of 32. */
enum { FP8_BLOCK = 3 + 5 * 5, W4A8_128 = 2 + 5 * (7 + 11 + 6), W4A8_32 = 2 + 5 * (7 + 11) };

void gpu_test_gemm_repeat_groups(session *s)
{
    repeats_test(s, HALFBYTE_FAMILY_FP8, FP8_BLOCK, FORM_STARTS_ENDS, false);
    repeats_test(s, HALFBYTE_FAMILY_FP8, FP8_BLOCK, FORM_MASKED_COUNTS, false);
    repeats_test(s, HALFBYTE_FAMILY_FP8, FP8_BLOCK, FORM_LABELS, false);
    session_figure(s, "repeats", s->quick ? 50 : 1000);
}

void gpu_test_gemm_w4a8_repeat_groups(session *s)
{
    repeats_test(s, HALFBYTE_FAMILY_W4A8, W4A8_128, FORM_STARTS_ENDS, false);
    repeats_test(s, HALFBYTE_FAMILY_W4A8, W4A8_128, FORM_MASKED_COUNTS, false);
    repeats_test(s, HALFBYTE_FAMILY_W4A8, W4A8_32, FORM_LABELS, false);
    repeats_test(s, HALFBYTE_FAMILY_W4A8, W4A8_128, FORM_STARTS_ENDS, true);
    repeats_test(s, HALFBYTE_FAMILY_W4A8, W4A8_128, FORM_MASKED_COUNTS, true);
    repeats_test(s, HALFBYTE_FAMILY_W4A8, W4A8_128, FORM_LABELS, true);
    session_figure(s, "repeats", s->quick ? 50 : 1000);
}
