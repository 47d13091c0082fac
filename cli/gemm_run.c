/* SPDX-License-Identifier: Apache-2.0 */
/* The product of `halfbyte gemm`: on the CPU model, or on a GPU and beside it on the model. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "gemm.h"
#include "gpu_tensors.h"

static int open_gpu(gemm_work *work)
{
    halfbyte_device_options options = work->options.device;
    halfbyte_status status = halfbyte_device_open(&work->device, &options);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, "cannot open a device");
    work->gpu = calloc(1, sizeof *work->gpu);
    if (work->gpu == NULL)
        return cli_fail_memory(sizeof *work->gpu);
    int code = gpu_driver_open(work->gpu, options.ordinal);
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    return code == CLI_OK ? cli_open_device(&work->host, &options) : code;
}

int gemm_open(gemm_work *work)
{
    if (work->options.device.executor == HALFBYTE_EXECUTOR_GPU)
        return open_gpu(work);
    int code = cli_open_device(&work->device, &work->options.device);
    work->host = work->device;
    return code;
}

void gemm_close(gemm_work *work)
{
    if (work->gpu != NULL)
        gpu_driver_close(work->gpu);
    free(work->gpu);
    if (work->host != work->device)
        halfbyte_device_close(work->host);
    halfbyte_device_close(work->device);
}

static int multiply_on_gpu(gemm_work *work)
{
    gpu_tensors tensors;
    int code = gpu_tensors_create(&tensors, work->gpu, work->device, &work->made);
    for (int64_t i = 0; code == CLI_OK && i < work->options.repeat; ++i) {
        double seconds = 0;
        code = gpu_tensors_multiply(&tensors, &work->made, work->description, &seconds);
        work->seconds = seconds < work->seconds ? seconds : work->seconds;
    }
    gpu_tensors_free(&tensors);
    return code;
}

static int multiply_on_model(gemm_work *work)
{
    int code = CLI_OK;
    for (int64_t i = 0; code == CLI_OK && i < work->options.repeat; ++i) {
        double seconds = 0;
        code = instance_run(&work->made, work->device, work->description, &seconds);
        work->seconds = seconds < work->seconds ? seconds : work->seconds;
    }
    return code;
}

/* The product once more on the CPU model, element by element. */
static int check(gemm_work *work, uint64_t bytes)
{
    char description[HALFBYTE_TEXT_BYTES];
    size_t element = (size_t)halfbyte_type_bits(work->made.problem.d_type) / 8;
    char *expected = cli_alloc(bytes, 1);
    if (expected == NULL)
        return cli_fail_memory(bytes);
    int code = instance_run(&work->made, work->host, description, NULL);
    if (code == CLI_OK)
        instance_gather(&work->made, expected);
    for (uint64_t at = 0; code == CLI_OK && at < bytes; at += element)
        work->different += memcmp(expected + at, (char *)work->result + at, element) != 0;
    free(expected);
    return code;
}

int gemm_multiply(gemm_work *work)
{
    uint64_t bytes = instance_result_bytes(&work->made);
    work->seconds = DBL_MAX;
    int code = work->gpu != NULL ? multiply_on_gpu(work) : multiply_on_model(work);
    if (code != CLI_OK)
        return code;
    work->result = cli_alloc(bytes, 1);
    if (work->result == NULL)
        return cli_fail_memory(bytes);
    instance_gather(&work->made, work->result);
    work->checksum = gemm_checksum(work->result, bytes);
    return work->options.check ? check(work, bytes) : CLI_OK;
}
