/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 605 problems of oracle/public_w4a8.h: packed on the GPU and by every kernel that serves them,
 * and with the weights as they are; D and what surrounds it against the CPU model's, and a sample
 * of its outputs against the bound of docs/numerics.md.  (That the model keeps the bound everywhere
 * is for tests/oracle.)
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/gemm_select.h"
#include "gpu/gemm_run.h"
#include "gpu/gpu_case.h"
#include "gpu/pack_case.h"
#include "gpu/tests.h"
#include "oracle/bound.h"
#include "oracle/operand.h"
#include "oracle/public_w4a8.h"

enum { BOUND_OUTPUTS = 200 }; /* of a problem */

typedef struct public_run {
    session *s;
    halfbyte_device *gpu, *model;
    int problems, runs;
    int64_t bound_checked;
    double most; /* error / bound */
} public_run;

/* ---- one run --------------------------------------------------------------------------------- */

/* Once by the kernels that plans may choose now; the D that it leaves is in `image`. */
static void once(public_run *f, const struct gemm_case *c, const gpu_case *on_gpu,
                 const char *kernel, uint8_t *image)
{
    session *s = f->s;
    halfbyte_plan *plan = NULL;
    char text[GPU_CASE_TEXT];
    gpu_case_text(c, kernel, text);
    session_doing(text);
    if (halfbyte_plan_create(&plan, &c->problem, f->gpu) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    /* Row-major weights are packed into more than the arena holds. */
    const size_t bytes = halfbyte_plan_workspace_bytes(plan);
    const cuda_pointer workspace = bytes > 0 ? session_allocate(s, bytes) : 0;
    if (bytes > 0) {
        session_check(s, s->set_bytes(workspace, 0xff, bytes), "cuMemsetD8");
    }
    const int64_t before = s->different;
    gpu_case_restore_d(s, c, on_gpu);
    const halfbyte_status status =
        halfbyte_run(plan, &on_gpu->operands, session_pointer(workspace), bytes, NULL);
    session_wait(s);
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    session_download(s, image, on_gpu->d, c->d_bytes);
    session_compare(s, kernel, image, c->d_base, 1, c->d_bytes);
    if (s->different != before) {
        printf("  %lld bytes differ: %s\n", (long long)(s->different - before), text);
    }
    f->runs++;
    halfbyte_plan_destroy(plan);
    if (bytes > 0) {
        session_free(s, workspace);
    }
}

/* ---- the bound ------------------------------------------------------------------------------- */

static int64_t owner_of(const struct gemm_case *c, int64_t row)
{
    int64_t group = 0;
    while (!oracle_group_owns(&c->problem, &c->before, group, row)) {
        group++;
    }
    return group;
}

/* Some outputs of a D of the GPU. */
static void bound_check(public_run *f, const struct gemm_case *c, const uint8_t *image,
                        uint64_t seed)
{
    const halfbyte_problem *p = &c->problem;
    struct random r = {seed};
    bool holds = true;
    for (int i = 0; i < BOUND_OUTPUTS; i++) {
        const int64_t row = random_below(&r, c->operands.m), column = random_below(&r, p->n);
        const int64_t group = owner_of(c, row);
        const struct bounded b = bound_element(p, &c->before, group, row, column);
        const uint32_t code = oracle_load(image + c->d_at, p->d_type,
                                          oracle_d_offset(p, &c->operands, group, row, column));
        holds = holds && b.applies && bound_holds(&b, p->d_type, code);
        f->most = fmax(f->most, fabs(bound_code_value(p->d_type, code) - b.value) / b.bound);
    }
    session_expect(f->s, "the bound holds", holds);
    f->bound_checked += BOUND_OUTPUTS;
}

/* ---- problems -------------------------------------------------------------------------------- */

/* The same with weights that the GPU packs, by the library's choice and by each kernel alone. */
static void packed_runs(public_run *f, const struct gemm_case *c, const gpu_case *on_gpu,
                        uint8_t *image)
{
    session *s = f->s;
    struct gemm_case packed = *c;
    gpu_case packed_on_gpu = *on_gpu;
    const halfbyte_int4_desc desc = public_weights(c);
    size_t bytes = 0;
    if (halfbyte_packed_weights_bytes(&desc, &bytes) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    const cuda_pointer to = session_allocate(s, bytes);
    session_check(s, s->set_bytes(to, PACK_POISON, bytes), "cuMemsetD8");
    const halfbyte_status status = halfbyte_pack_weights(
        f->gpu, &desc, on_gpu->operands.b.data, session_pointer(to), bytes, &packed.header, NULL);
    session_wait(s);
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    packed.problem.b_layout = HALFBYTE_B_PACKED;
    packed_on_gpu.operands.b = (halfbyte_matrix_in){session_pointer(to), 0, 0};
    packed_on_gpu.operands.b_header = &packed.header;
    gemm_choose(GEMM_ANY_KERNEL);
    once(f, &packed, &packed_on_gpu, "packed", image);
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        if (gemm_serves(kernel, &packed.problem)) {
            gemm_choose(kernel);
            once(f, &packed, &packed_on_gpu, kernel_table[kernel].name, image);
        }
    }
    session_free(s, to);
}

static void problem_run(public_run *f, int index)
{
    session *s = f->s;
    const struct public_problem problem = public_problem_at(index);
    struct gemm_case c;
    gpu_case on_gpu;
    public_case_make(&c, &problem);
    session_reset(s);
    gpu_case_upload(s, &c, &on_gpu);
    if (gpu_case_model(s, &c, f->model)) {
        uint8_t *image = session_host(c.d_bytes);
        packed_runs(f, &c, &on_gpu, image);
        gemm_choose(GEMM_ANY_KERNEL);
        once(f, &c, &on_gpu, "as they are", image);
        bound_check(f, &c, image, problem.seed);
        session_host_free(image);
        f->problems++;
    }
    case_free(&c);
}

void gpu_test_gemm_w4a8_public(session *s)
{
    public_run f = {.s = s,
                    .gpu = gemm_device(HALFBYTE_EXECUTOR_GPU),
                    .model = gemm_device(HALFBYTE_EXECUTOR_MODEL)};
    for (int i = 0; i < PUBLIC_PROBLEMS; i += s->quick ? 101 : 1) {
        problem_run(&f, i);
    }
    session_figure(s, "problems", f.problems);
    session_figure(s, "runs", f.runs);
    session_figure(s, "outputs_held_to_the_bound", (double)f.bound_checked);
    session_figure(s, "error_over_bound", f.most);
    halfbyte_device_close(f.model);
    halfbyte_device_close(f.gpu);
}
