/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of a run: what it asks the driver for, and what it takes beside a bare launch.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/plan.h"
#include "gpu/driver_calls.h"
#include "gpu/gemm_run.h"
#include "gpu/gpu_case.h"
#include "gpu/tests.h"

/* A problem on the GPU with its plan; D is what the model says. */
typedef struct host_case {
    struct gemm_case c;
    gpu_case on_gpu;
    halfbyte_plan *plan;
} host_case;

static bool case_begin(session *s, host_case *h, halfbyte_device *device, halfbyte_device *model)
{
    session_reset(s);
    gpu_case_upload(s, &h->c, &h->on_gpu);
    if (halfbyte_plan_create(&h->plan, &h->c.problem, device) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    return gpu_case_model(s, &h->c, model);
}

static void case_end(host_case *h)
{
    halfbyte_plan_destroy(h->plan);
    case_free(&h->c);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void calls_check(session *s, const halfbyte_problem *p, const driver_calls *calls)
{
    const int labels = p->grouping == HALFBYTE_GROUPING_LABELS;
    const int padding =
        p->grouping != HALFBYTE_GROUPING_DENSE && (p->flags & HALFBYTE_ZERO_FILL_PADDING) != 0;
    const int packing =
        p->family == HALFBYTE_FAMILY_W4A8 && p->b_layout == HALFBYTE_B_ROW_MAJOR && p->k > 0;
    const int of_inputs = p->k == 0 ? 0 : p->family == HALFBYTE_FAMILY_FP8 ? 2 : 1;
    const int of_d = p->d_type != HALFBYTE_TYPE_F32 && p->grouping != HALFBYTE_GROUPING_LABELS &&
                     p->k_splits <= 1;
    session_expect(s, "no call but those of a launch", calls->others == 0);
    session_expect(s, "the tensor maps of A and B, and one of D at most",
                   calls->encodes >= of_inputs && calls->encodes <= of_inputs + of_d);
    session_expect(s, "the context pushed once", calls->pushes == 1 && calls->pops == 1);
    session_expect(s, "the bounds of LABELS cleared", calls->clears == labels);
    session_expect(s, "as many launches as the problem takes",
                   calls->launches == 1 + packing + labels + padding + (p->k_splits > 1));
}

static void calls_test(session *s, halfbyte_family family, int step)
{
    halfbyte_device *const device = gemm_device(HALFBYTE_EXECUTOR_GPU);
    halfbyte_device *const model = gemm_device(HALFBYTE_EXECUTOR_MODEL);
    struct random r = {s->seed * 17 + (uint64_t)family};
    const int kinds = case_kind_count(family);
    int runs = 0;
    for (int i = 0; i < kinds * FORM_COUNT; i += step) {
        const struct case_options options = {.aligned = true,
                                             .packed = !gemm_serves_w4a8(HALFBYTE_B_ROW_MAJOR),
                                             .no_k = i % 37 == 0};
        const struct case_kind kind = case_kind_at(family, i % kinds, (enum group_form)(i / kinds));
        host_case h;
        case_make(&h.c, &r, &kind, &options);
        gpu_case_make_served(&h.c);
        if (case_begin(s, &h, device, model)) {
            driver_calls_begin(device);
            gpu_case_run(s, h.plan, &h.on_gpu);
            const driver_calls calls = driver_calls_end(device);
            calls_check(s, &h.plan->problem, &calls);
            gpu_case_compare(s, &h.c, &h.on_gpu, "D of a counted run");
            gpu_case_restore_d(s, &h.c, &h.on_gpu);
            driver_calls_begin(device);
            gpu_case_run(s, h.plan, &h.on_gpu);
            session_expect(s, "no map of the same operands again",
                           driver_calls_end(device).encodes == 0);
            gpu_case_compare(s, &h.c, &h.on_gpu, "D of a run with the maps of another");
            runs++;
        }
        case_end(&h);
    }
    session_figure(s, family == HALFBYTE_FAMILY_FP8 ? "fp8_runs" : "w4a8_runs", runs);
    halfbyte_device_close(model);
    halfbyte_device_close(device);
}

void gpu_test_gemm_calls(session *s)
{
    calls_test(s, HALFBYTE_FAMILY_FP8, s->quick ? 5 : 1);
}

void gpu_test_gemm_w4a8_calls(session *s)
{
    calls_test(s, HALFBYTE_FAMILY_W4A8, s->quick ? 37 : 7);
}

/* ---- cost ------------------------------------------------------------------------------------ */

enum { CALLS = 10000, CALLS_A_WAIT = 100, MOST_NS = 1000 };

static double ns_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare_doubles(const void *x, const void *y)
{
    const double a = *(const double *)x;
    const double b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* The same launch with the same parameters, by the driver alone. */
static void bare_launch(const session *s, driver_calls *calls)
{
    void *parameters[1] = {&calls->params};
    session_check(s, s->driver->launch(&calls->config, calls->function, parameters, NULL),
                  "cuLaunchKernelEx");
}

/* A run and a bare launch in turn, a hundred at a time: a full queue would block both. */
static void cost_measure(session *s, const host_case *h, driver_calls *calls, const char *name)
{
    static double run[CALLS], bare[CALLS];
    const int count = s->quick ? 1000 : CALLS;
    char figure[64];
    for (int i = 0; i < count; i += CALLS_A_WAIT) {
        halfbyte_status status = HALFBYTE_SUCCESS;
        for (int j = i; j < i + CALLS_A_WAIT && status == HALFBYTE_SUCCESS; j++) {
            const double start = ns_now();
            status = halfbyte_run(h->plan, &h->on_gpu.operands, NULL, 0, NULL);
            run[j] = ns_now() - start;
        }
        session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
        session_wait(s);
        for (int j = i; j < i + CALLS_A_WAIT; j++) {
            const double start = ns_now();
            bare_launch(s, calls);
            bare[j] = ns_now() - start;
        }
        session_wait(s);
    }
    const double run_ns = median(run, count);
    const double bare_ns = median(bare, count);
    snprintf(figure, sizeof figure, "%s_run_ns", name);
    session_figure(s, figure, run_ns);
    snprintf(figure, sizeof figure, "%s_launch_ns", name);
    session_figure(s, figure, bare_ns);
    session_expect(s, "a run takes at most 1 us more than a bare launch",
                   run_ns - bare_ns <= MOST_NS);
}

static void cost_test(session *s, halfbyte_family family, int kind_index, enum group_form form,
                      const char *name)
{
    halfbyte_device *const device = gemm_device(HALFBYTE_EXECUTOR_GPU);
    halfbyte_device *const model = gemm_device(HALFBYTE_EXECUTOR_MODEL);
    const struct case_options options = {
        .plain = true, .aligned = true, .packed = true, .m = 16, .n = 64, .k = 256, .groups = 8};
    const struct case_kind kind = case_kind_at(family, kind_index, form);
    struct random r = {s->seed};
    host_case h;
    case_make(&h.c, &r, &kind, &options);
    h.c.problem.flags = 0; /* one launch a run */
    h.c.problem.k_splits = 1;
    h.c.problem.num_sms = 0;
    h.c.problem.c_type = HALFBYTE_TYPE_NONE; /* D is written again and again */
    if (case_begin(s, &h, device, model)) {
        driver_calls_begin(device);
        gpu_case_run(s, h.plan, &h.on_gpu);
        driver_calls calls = driver_calls_end(device);
        calls.config.attributes = calls.attributes;
        cost_measure(s, &h, &calls, name);
        gpu_case_compare(s, &h.c, &h.on_gpu, name);
    }
    case_end(&h);
    halfbyte_device_close(model);
    halfbyte_device_close(device);
}

/* Kinds of FP8: A's scale varies along k, B's is 128X128; both are one a row.  Of W4A8: A's is one
 * a row, B's a group of 128. */
enum { FP8_BLOCK = 3 + 5 * 5, FP8_OUTER = 2 + 5 * 2, W4A8_GROUP = 2 + 5 * (7 + 11 + 6) };

void gpu_test_gemm_host_cost(session *s)
{
    cost_test(s, HALFBYTE_FAMILY_FP8, FP8_BLOCK, FORM_DENSE, "block_dense");
    cost_test(s, HALFBYTE_FAMILY_FP8, FP8_OUTER, FORM_DENSE, "outer_dense");
    cost_test(s, HALFBYTE_FAMILY_FP8, FP8_BLOCK, FORM_STARTS_ENDS, "block_ranges");
    cost_test(s, HALFBYTE_FAMILY_FP8, FP8_BLOCK, FORM_MASKED_COUNTS, "block_masked");
}

void gpu_test_gemm_w4a8_host_cost(session *s)
{
    cost_test(s, HALFBYTE_FAMILY_W4A8, W4A8_GROUP, FORM_DENSE, "dense");
    cost_test(s, HALFBYTE_FAMILY_W4A8, W4A8_GROUP, FORM_STARTS_ENDS, "ranges");
    cost_test(s, HALFBYTE_FAMILY_W4A8, W4A8_GROUP, FORM_MASKED_COUNTS, "masked");
}
