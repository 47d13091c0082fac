/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_tensors.h"

#include <string.h>

#include "common.h"

/* ---- operands -------------------------------------------------------------------------------- */

/* Where operands hold the address of a tensor. */
enum { OPERAND_ADDRESSES = 12 };

static void addresses_of(halfbyte_operands *operands, const void **list[OPERAND_ADDRESSES])
{
    const void **const all[OPERAND_ADDRESSES] = {
        &operands->a.data,
        &operands->b.data,
        &operands->c.data,
        (const void **)&operands->d.data,
        &operands->a_scale.data,
        &operands->b_scale.data,
        &operands->channel_scale.data,
        &operands->bias.data,
        &operands->groups.starts,
        &operands->groups.ends,
        &operands->groups.counts,
        (const void **)&operands->groups.labels,
    };
    memcpy((void *)list, (const void *)all, sizeof all);
}

/* Copies one tensor and puts its address where operands name it; leaves out what they do not. */
static int place(gpu_tensors *made, const host_tensor *tensor, gpu_address *taken)
{
    const void **list[OPERAND_ADDRESSES];
    addresses_of(&made->operands, list);
    for (int i = 0; i < OPERAND_ADDRESSES; ++i) {
        if (tensor->data == NULL || *list[i] != tensor->data)
            continue;
        if (*taken == 0) {
            int code = gpu_take(made->gpu, tensor->bytes, taken);
            if (code == CLI_OK && tensor->bytes > 0)
                code = GPU_CALL(made->gpu, copy_in, (*taken, tensor->data, (size_t)tensor->bytes));
            if (code != CLI_OK)
                return code;
        }
        *list[i] = gpu_pointer(*taken);
    }
    return CLI_OK;
}

static int copy_tensors(gpu_tensors *made, const instance *from)
{
    host_tensor list[INSTANCE_TENSORS];
    int code = CLI_OK;
    instance_tensors(from, list);
    for (int i = 0; code == CLI_OK && i < INSTANCE_TENSORS; ++i) {
        /* A place that was filled already holds an address of the device, which is no host's. */
        code = place(made, &list[i], &made->taken[i]);
        if (list[i].data == from->d) {
            made->d = made->taken[i];
            made->d_bytes = list[i].bytes;
        }
    }
    return code;
}

/* ---- life ------------------------------------------------------------------------------------ */

int gpu_tensors_create(gpu_tensors *made, const gpu_driver *gpu, halfbyte_device *device,
                       const instance *from)
{
    memset(made, 0, sizeof *made);
    made->gpu = gpu;
    made->operands = from->operands;
    halfbyte_status status = halfbyte_plan_create(&made->plan, &from->problem, device);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, NULL);
    made->workspace_bytes = halfbyte_plan_workspace_bytes(made->plan);
    int code = CLI_OK;
    if (made->workspace_bytes > 0)
        code = gpu_take(gpu, made->workspace_bytes, &made->workspace);
    return code == CLI_OK ? copy_tensors(made, from) : code;
}

int gpu_tensors_replan(gpu_tensors *made, halfbyte_device *device, const halfbyte_problem *problem)
{
    halfbyte_plan *plan = NULL;
    int code = GPU_CALL(made->gpu, stream_wait, (made->gpu->stream));
    if (code != CLI_OK)
        return code;
    halfbyte_status status = halfbyte_plan_create(&plan, problem, device);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, NULL);
    halfbyte_plan_destroy(made->plan);
    made->plan = plan;
    return CLI_OK;
}

void gpu_tensors_free(gpu_tensors *made)
{
    if (made->gpu == NULL)
        return;
    made->gpu->stream_wait(made->gpu->stream);
    halfbyte_plan_destroy(made->plan);
    for (int i = 0; i < INSTANCE_TENSORS; ++i)
        gpu_give(made->gpu, made->taken[i]);
    gpu_give(made->gpu, made->workspace);
    memset(made, 0, sizeof *made);
}

/* ---- running --------------------------------------------------------------------------------- */

halfbyte_status gpu_tensors_run(const gpu_tensors *made, halfbyte_stream stream)
{
    return halfbyte_run(made->plan, &made->operands, gpu_pointer(made->workspace),
                        made->workspace_bytes, stream);
}

int gpu_tensors_poison(const gpu_tensors *made)
{
    const gpu_driver *gpu = made->gpu;
    return GPU_CALL(gpu, fill_bytes, (made->d, 0xff, (size_t)made->d_bytes, gpu->stream));
}

int gpu_tensors_fetch(const gpu_tensors *made, void *to)
{
    const gpu_driver *gpu = made->gpu;
    int code = GPU_CALL(gpu, stream_wait, (gpu->stream));
    return code == CLI_OK ? GPU_CALL(gpu, copy_out, (to, made->d, (size_t)made->d_bytes)) : code;
}

/* Enqueues the run between two events; a failure of either is told. */
static int run_between(const gpu_tensors *made, gpu_event begin, gpu_event end, double *seconds)
{
    const gpu_driver *gpu = made->gpu;
    float ms = 0;
    int code = GPU_CALL(gpu, event_record, (begin, gpu->stream));
    if (code == CLI_OK) {
        halfbyte_status status = gpu_tensors_run(made, gpu->stream);
        code = status == HALFBYTE_SUCCESS ? CLI_OK : cli_fail_status(status, NULL);
    }
    if (code == CLI_OK)
        code = GPU_CALL(gpu, event_record, (end, gpu->stream));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, stream_wait, (gpu->stream));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, event_ms, (&ms, begin, end));
    *seconds = (double)ms * 1e-3;
    return code;
}

int gpu_tensors_multiply(const gpu_tensors *made, instance *into, char *description,
                         double *seconds)
{
    const gpu_driver *gpu = made->gpu;
    gpu_event begin = NULL, end = NULL;
    halfbyte_status status = halfbyte_plan_describe(made->plan, description, HALFBYTE_TEXT_BYTES);
    int code = status == HALFBYTE_SUCCESS ? CLI_OK : cli_fail_status(status, NULL);
    if (code == CLI_OK)
        code = gpu_tensors_poison(made);
    if (code == CLI_OK)
        code = GPU_CALL(gpu, event_create, (&begin, 0));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, event_create, (&end, 0));
    if (code == CLI_OK)
        code = run_between(made, begin, end, seconds);
    if (code == CLI_OK)
        code = gpu_tensors_fetch(made, into->d);
    if (begin != NULL)
        gpu->event_destroy(begin);
    if (end != NULL)
        gpu->event_destroy(end);
    return code;
}
