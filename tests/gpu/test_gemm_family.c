/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of problem through the public API: each scale mode, type and layout with each other in
 * each form of grouping, epilogue terms, splits and padding drawn; D with its guard zones and gaps
 * against the CPU model's, by the library's choice of kernels and by each of them alone.  Then
 * those without terms, for kernels that serve no others.
 */
#include <stdio.h>
#include <string.h>

#include "api/gemm_select.h"
#include "api/plan.h"
#include "gpu/gemm_run.h"
#include "gpu/gpu_case.h"
#include "gpu/tests.h"

typedef struct family_run {
    session *s;
    halfbyte_device *gpu, *model;
    struct random r;
    int problems;
    int by_kernel[KERNEL_COUNT + 1]; /* problems run by kernel i - 1; 0: by the library's choice */
} family_run;

/* A few of the problems are wide, of many groups, or without k; all of them are ragged. */
static struct case_options options_draw(struct random *r, const struct case_kind *kind, int index)
{
    struct case_options options = {.finite = index % 3 == 0,
                                   .aligned = true,
                                   .packed = !gemm_serves_w4a8(HALFBYTE_B_ROW_MAJOR)};
    const bool masked = kind->form == FORM_MASKED_ALL || kind->form == FORM_MASKED_COUNTS;
    if (index % 8 == 3) {
        options.m = random_between(r, 1, masked ? 180 : 600);
        options.n = random_between(r, 1, 500);
        options.k = random_between(r, 1, 1500);
    } else if (index % 16 == 7) {
        options.groups = random_between(r, 30, masked ? 70 : 300);
        options.m = random_between(r, 1, masked ? 30 : 400);
    } else if (index % 16 == 15) {
        options.no_k = true;
    } else {
        options.m = random_between(r, 1, 90);
    }
    if (options.n == 0 && random_percent(r, 40)) {
        options.n = 8 * random_between(r, 1, 40);
    }
    return options;
}

/* By one kernel (or the library's choice), if it serves the problem. */
static void kernel_run(family_run *f, const struct gemm_case *c, const gpu_case *on_gpu, int kernel)
{
    session *s = f->s;
    halfbyte_plan *plan = NULL;
    char text[GPU_CASE_TEXT];
    gpu_case_text(c, kernel == GEMM_ANY_KERNEL ? "chosen" : kernel_table[kernel].name, text);
    session_doing(text);
    gemm_choose(kernel);
    const halfbyte_status status = halfbyte_plan_create(&plan, &c->problem, f->gpu);
    session_expect(s, text, status == HALFBYTE_SUCCESS);
    if (status != HALFBYTE_SUCCESS) {
        return;
    }
    const int64_t before = s->different;
    gpu_case_restore_d(s, c, on_gpu);
    if (gpu_case_run(s, plan, on_gpu)) {
        gpu_case_compare(s, c, on_gpu, kernel == GEMM_ANY_KERNEL ? "chosen" : "alone");
    }
    if (s->different != before) {
        printf("  %lld bytes differ: %s\n", (long long)(s->different - before), text);
    }
    f->by_kernel[kernel + 1]++;
    halfbyte_plan_destroy(plan);
}

/* Is there a kernel that serves it because it has no terms? */
static bool wants_no_terms(const halfbyte_problem *problem)
{
    bool found = false;
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        found |= gemm_serves_bare(kernel, problem);
    }
    return found;
}

static void problem_run(family_run *f, const struct case_kind *kind, halfbyte_type d_type,
                        int index, bool bare)
{
    session *s = f->s;
    struct gemm_case c;
    gpu_case on_gpu;
    halfbyte_plan *plan = NULL;
    struct case_options options = options_draw(&f->r, kind, index);
    options.d_type = d_type;
    options.bare = bare;
    case_make(&c, &f->r, kind, &options);
    gpu_case_make_served(&c);
    c.problem.num_sms = (int32_t)(random_percent(&f->r, 70) ? 0 : random_between(&f->r, 1, 140));
    if (bare && !wants_no_terms(&c.problem)) {
        case_free(&c);
        return;
    }
    session_reset(s);
    gpu_case_upload(s, &c, &on_gpu);
    gemm_choose(GEMM_ANY_KERNEL);
    if (halfbyte_plan_create(&plan, &c.problem, f->gpu) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    if (gpu_case_model(s, &c, f->model)) {
        f->problems++;
        kernel_run(f, &c, &on_gpu, GEMM_ANY_KERNEL);
        for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
            if (gemm_kernel_accepts(kernel, &plan->problem)) {
                kernel_run(f, &c, &on_gpu, kernel);
            }
        }
    }
    halfbyte_plan_destroy(plan);
    case_free(&c);
}

/* Kinds x forms x rounds; in the first three of several rounds D has each of its types.  Then
 * `bare` rounds without terms, with D of bf16 and f16. */
static void family_test(session *s, halfbyte_family family, int rounds, int bare)
{
    static const halfbyte_type types[4] = {HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F32, HALFBYTE_TYPE_F16,
                                           HALFBYTE_TYPE_NONE};
    family_run f = {.s = s,
                    .gpu = gemm_device(HALFBYTE_EXECUTOR_GPU),
                    .model = gemm_device(HALFBYTE_EXECUTOR_MODEL),
                    .r = {s->seed * 131 + (uint64_t)family}};
    const int kinds = case_kind_count(family);
    const int all = kinds * FORM_COUNT;
    for (int i = 0; i < all * rounds; i += s->quick ? 7 : 1) {
        const struct case_kind kind =
            case_kind_at(family, i % kinds, (enum group_form)(i / kinds % FORM_COUNT));
        problem_run(&f, &kind, rounds == 1 ? HALFBYTE_TYPE_NONE : types[i / all], i, false);
    }
    for (int i = 0; i < all * bare; i += s->quick ? 7 : 1) {
        const struct case_kind kind =
            case_kind_at(family, i % kinds, (enum group_form)(i / kinds % FORM_COUNT));
        problem_run(&f, &kind, i / all % 2 == 0 ? HALFBYTE_TYPE_BF16 : HALFBYTE_TYPE_F16, i, true);
    }
    session_figure(s, "problems", f.problems);
    session_figure(s, "chosen_by_the_library", f.by_kernel[0]);
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        if (f.by_kernel[kernel + 1] > 0) {
            session_figure(s, gemm_kernel_name(kernel), f.by_kernel[kernel + 1]);
        }
    }
    halfbyte_device_close(f.model);
    halfbyte_device_close(f.gpu);
}

void gpu_test_gemm_fp8_kinds(session *s)
{
    family_test(s, HALFBYTE_FAMILY_FP8, 4, 0);
}

void gpu_test_gemm_w4a8_kinds(session *s)
{
    family_test(s, HALFBYTE_FAMILY_W4A8, 1, 2);
}
