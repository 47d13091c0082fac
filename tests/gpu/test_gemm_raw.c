/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-major int4 weights, which each run packs into the workspace ahead of the product: by every
 * kernel that serves the problem, D with its guard zones against the CPU model's; then all again
 * with other weights in the same place.
 */
#include <stdio.h>

#include "api/gemm_select.h"
#include "gpu/gemm_run.h"
#include "gpu/gpu_case.h"
#include "gpu/tests.h"

enum { ROUNDS = 2 }; /* of different weights */

typedef struct raw_run {
    session *s;
    halfbyte_device *gpu, *model;
    struct random r;
    int problems, runs;
} raw_run;

/* Other weights where the case's are, here and on the GPU. */
static void weights_redraw(raw_run *f, struct gemm_case *c, const gpu_case *on_gpu)
{
    const halfbyte_problem *p = &c->problem;
    const halfbyte_matrix_in *b = &c->operands.b;
    const struct case_options options = {.aligned = true};
    const int64_t groups = p->groups == 0 ? 1 : p->groups;
    const int64_t count = (groups - 1) * b->group_stride + (p->n - 1) * b->ld + p->k;
    case_fill_int4(&f->r, (uint8_t *)(uintptr_t)b->data, (count + 1) / 2, &options);
    gpu_case_refresh(f->s, c, on_gpu, b->data);
}

/* By one kernel, or by the choice of the library. */
static void kernel_run(raw_run *f, const struct gemm_case *c, const gpu_case *on_gpu, int kernel)
{
    session *s = f->s;
    halfbyte_plan *plan = NULL;
    char text[GPU_CASE_TEXT];
    gpu_case_text(c, kernel == GEMM_ANY_KERNEL ? "chosen" : kernel_table[kernel].name, text);
    session_doing(text);
    gemm_choose(kernel);
    if (halfbyte_plan_create(&plan, &c->problem, f->gpu) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    const int64_t before = s->different;
    gpu_case_restore_d(s, c, on_gpu);
    if (gpu_case_run(s, plan, on_gpu)) {
        gpu_case_compare(s, c, on_gpu, "raw weights");
    }
    if (s->different != before) {
        printf("  %lld bytes differ: %s\n", (long long)(s->different - before), text);
    }
    f->runs++;
    halfbyte_plan_destroy(plan);
}

static void problem_run(raw_run *f, const struct case_kind *kind)
{
    const bool masked = kind->form == FORM_MASKED_ALL || kind->form == FORM_MASKED_COUNTS;
    const struct case_options options = {.aligned = true,
                                         .raw = true,
                                         .m = random_between(&f->r, 1, masked ? 90 : 500),
                                         .n = random_between(&f->r, 1, 1500),
                                         .k = random_between(&f->r, 1, 3000),
                                         .groups = random_between(&f->r, 1, 9)};
    struct gemm_case c;
    gpu_case on_gpu;
    case_make(&c, &f->r, kind, &options);
    gpu_case_make_served(&c);
    session_reset(f->s);
    gpu_case_upload(f->s, &c, &on_gpu);
    for (int round = 0; round < ROUNDS; round++) {
        if (round > 0) {
            weights_redraw(f, &c, &on_gpu);
        }
        if (!gpu_case_model(f->s, &c, f->model)) {
            break;
        }
        kernel_run(f, &c, &on_gpu, GEMM_ANY_KERNEL);
        for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
            if (gemm_serves(kernel, &c.problem)) {
                kernel_run(f, &c, &on_gpu, kernel);
            }
        }
    }
    f->problems++;
    case_free(&c);
}

/* Kinds of scales over the family, in each form of grouping in turn. */
void gpu_test_gemm_w4a8_raw(session *s)
{
    raw_run f = {.s = s,
                 .gpu = gemm_device(HALFBYTE_EXECUTOR_GPU),
                 .model = gemm_device(HALFBYTE_EXECUTOR_MODEL),
                 .r = {s->seed * 83}};
    const int kinds = case_kind_count(HALFBYTE_FAMILY_W4A8);
    for (int i = 0; i < kinds * FORM_COUNT; i += s->quick ? 331 : 13) {
        const struct case_kind kind =
            case_kind_at(HALFBYTE_FAMILY_W4A8, i / FORM_COUNT, (enum group_form)(i % FORM_COUNT));
        problem_run(&f, &kind);
    }
    session_figure(s, "problems", f.problems);
    session_figure(s, "runs", f.runs);
    halfbyte_device_close(f.model);
    halfbyte_device_close(f.gpu);
}
