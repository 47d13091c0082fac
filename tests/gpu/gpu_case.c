/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu_case.h"

#include <stdio.h>
#include <string.h>

#include "gpu/gemm_run.h"

enum { PLACE = 256 }; /* of a block of memory: alignment, and what lies behind it at least */

/* Bytes from one block's copy to the next one's. */
static size_t place_of(size_t bytes)
{
    return (bytes + PLACE - 1) / PLACE * PLACE + PLACE;
}

void gpu_case_make_served(struct gemm_case *c)
{
    bool serves = c->problem.k_splits <= 1;
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        serves = serves || gemm_serves(kernel, &c->problem);
    }
    c->problem.k_splits = serves ? c->problem.k_splits : 1;
}

/* The block of the case's memory in which an address lies. */
static int block_of(const struct gemm_case *c, const void *host)
{
    const uintptr_t at = (uintptr_t)host;
    /* One past a block's end is the address of a tensor without elements. */
    for (uintptr_t past = 0; past <= 1; past++) {
        for (int i = 0; i < c->memories; i++) {
            const uintptr_t from = (uintptr_t)c->memory[i];
            if (at >= from && at < from + c->memory_bytes[i] + past) {
                return i;
            }
        }
    }
    session_die("an operand lies outside the case's memory");
}

/* The block begins at a multiple of 256 here too, so that elements are aligned alike. */
cuda_pointer gpu_case_address(const struct gemm_case *c, const gpu_case *on_gpu, const void *host)
{
    if (host == NULL) {
        return 0;
    }
    const int block = block_of(c, host);
    return on_gpu->memory[block] + ((uintptr_t)host - (uintptr_t)c->memory[block]);
}

void gpu_case_refresh(const session *s, const struct gemm_case *c, const gpu_case *on_gpu,
                      const void *host)
{
    if (host != NULL) {
        const int block = block_of(c, host);
        session_check(s,
                      s->to_device(on_gpu->memory[block], c->memory[block], c->memory_bytes[block]),
                      "cuMemcpyHtoD");
    }
}

static void *moved(const struct gemm_case *c, const gpu_case *on_gpu, const void *host)
{
    return session_pointer(gpu_case_address(c, on_gpu, host));
}

static void operands_move(const struct gemm_case *c, gpu_case *on_gpu)
{
    halfbyte_operands *o = &on_gpu->operands;
    *o = c->operands;
    const void **const inputs[] = {&o->a.data,       &o->b.data,        &o->c.data,
                                   &o->a_scale.data, &o->b_scale.data,  &o->channel_scale.data,
                                   &o->bias.data,    &o->groups.starts, &o->groups.ends,
                                   &o->groups.counts};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        *inputs[i] = moved(c, on_gpu, *inputs[i]);
    }
    o->d.data = moved(c, on_gpu, o->d.data);
    o->alpha_pointer = moved(c, on_gpu, o->alpha_pointer);
    o->groups.labels = moved(c, on_gpu, o->groups.labels);
}

void gpu_case_upload(session *s, const struct gemm_case *c, gpu_case *on_gpu)
{
    size_t bytes = 0;
    for (int i = 0; i < c->memories; i++) {
        bytes += place_of(c->memory_bytes[i]);
    }
    uint8_t *image = session_host(bytes);
    memset(image, 0xff, bytes);
    const cuda_pointer all = session_memory(s, bytes);
    size_t at = 0;
    for (int i = 0; i < c->memories; i++) {
        memcpy(image + at, c->memory[i], c->memory_bytes[i]);
        on_gpu->memory[i] = all + at;
        at += place_of(c->memory_bytes[i]);
    }
    session_check(s, s->to_device(all, image, bytes), "cuMemcpyHtoD");
    session_host_free(image);
    operands_move(c, on_gpu);
    on_gpu->d = gpu_case_address(c, on_gpu, c->d_base);
}

void gpu_case_restore_d(const session *s, const struct gemm_case *c, const gpu_case *on_gpu)
{
    session_check(s, s->to_device(on_gpu->d, c->d_before, c->d_bytes), "cuMemcpyHtoD");
}

cuda_pointer gpu_case_workspace(session *s, const halfbyte_plan *plan)
{
    const size_t bytes = halfbyte_plan_workspace_bytes(plan);
    if (bytes == 0) {
        return 0;
    }
    const cuda_pointer workspace = session_memory(s, bytes);
    session_check(s, s->set_bytes(workspace, 0xff, bytes), "cuMemsetD8");
    return workspace;
}

bool gpu_case_run(session *s, const halfbyte_plan *plan, const gpu_case *on_gpu)
{
    const size_t used = s->arena_used;
    const cuda_pointer workspace = gpu_case_workspace(s, plan);
    const halfbyte_status status = halfbyte_run(plan, &on_gpu->operands, session_pointer(workspace),
                                                halfbyte_plan_workspace_bytes(plan), NULL);
    session_wait(s);
    s->arena_used = used;
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    return status == HALFBYTE_SUCCESS;
}

bool gpu_case_model(session *s, const struct gemm_case *c, halfbyte_device *model)
{
    halfbyte_plan *plan = NULL;
    halfbyte_status status = halfbyte_plan_create(&plan, &c->problem, model);
    memcpy(c->d_base, c->d_before, c->d_bytes);
    if (status == HALFBYTE_SUCCESS) {
        status = halfbyte_run(plan, &c->operands, NULL, 0, NULL);
    }
    halfbyte_plan_destroy(plan);
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    return status == HALFBYTE_SUCCESS;
}

void gpu_case_compare(session *s, const struct gemm_case *c, const gpu_case *on_gpu,
                      const char *what)
{
    uint8_t *got = session_host(c->d_bytes);
    session_download(s, got, on_gpu->d, c->d_bytes);
    session_compare(s, what, got, c->d_base, 1, c->d_bytes);
    session_host_free(got);
}

void gpu_case_text(const struct gemm_case *c, const char *kernel, char text[GPU_CASE_TEXT])
{
    const halfbyte_problem *p = &c->problem;
    const halfbyte_operands *o = &c->operands;
    snprintf(text, GPU_CASE_TEXT,
             "%s: form %d m %lld n %lld k %lld groups %lld, a scale %d/%d, b scale %d/%d/%s, group "
             "size %lld offset %lld, splits %lld, d %s ld %lld at %zu, c %s beta %g, bias %s, "
             "alpha %d, channel %s, flags %u, %d SMs",
             kernel, (int)c->kind.form, (long long)o->m, (long long)p->n, (long long)p->k,
             (long long)p->groups, (int)p->a_scale.mode, (int)p->a_scale.layout,
             (int)p->b_scale.mode, (int)p->b_scale.layout, halfbyte_type_name(p->b_scale.type),
             (long long)p->weight_group_size, (long long)p->group_k_offset, (long long)p->k_splits,
             halfbyte_type_name(p->d_type), (long long)o->d.ld, c->d_at,
             halfbyte_type_name(p->c_type), (double)o->beta, halfbyte_type_name(p->bias_type),
             (int)p->alpha_mode, halfbyte_type_name(p->channel_scale_type), (unsigned)p->flags,
             (int)p->num_sms);
}
