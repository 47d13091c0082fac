/* SPDX-License-Identifier: Apache-2.0 */
#include "api/device.h"

#include <stddef.h>
#include <stdlib.h>

#include "api/describe.h"
#include "api/enum_names.h"
#include "api/error.h"
#include "api/gpu_quantize.h"
#include "api/struct_copy.h"
#include "api/tune.h"
#include "cuda/gpu.h"
#include "model/chain.h"
#include "model/parallel.h"

enum { DEVICE_MOST_THREADS = 1024 };

static halfbyte_status options_check(const halfbyte_device_options *options)
{
    CHECK_ARGUMENT((unsigned int)options->executor <= HALFBYTE_EXECUTOR_EMULATOR,
                   "options.executor = %d: accepted: auto (0), model (1), gpu (2), emulator (3)",
                   (int)options->executor);
    CHECK_ARGUMENT((unsigned int)options->profile <= HALFBYTE_PROFILE_ANY,
                   "options.profile = %d: accepted: sm90 (0), any (1)", (int)options->profile);
    CHECK_ARGUMENT((unsigned int)options->isa <= HALFBYTE_ISA_AVX512,
                   "options.isa = %d: accepted: auto (0), portable (1), avx2 (2), avx512 (3)",
                   (int)options->isa);
    CHECK_ARGUMENT(options->ordinal >= 0, "options.ordinal = %d: must be at least 0",
                   (int)options->ordinal);
    CHECK_ARGUMENT(options->threads >= 0 && options->threads <= DEVICE_MOST_THREADS,
                   "options.threads = %d: must be in [0, %d]", (int)options->threads,
                   DEVICE_MOST_THREADS);
    CHECK(options->executor != HALFBYTE_EXECUTOR_EMULATOR, HALFBYTE_ERR_UNSUPPORTED,
          "options.executor = emulator: this executor is not built into this library; accepted: "
          "auto, model, gpu");
    CHECK_ARGUMENT(
        options->executor != HALFBYTE_EXECUTOR_GPU || options->profile == HALFBYTE_PROFILE_SM90,
        "options.profile = %s: executor gpu accepts sm90", profile_name(options->profile));
    return HALFBYTE_SUCCESS;
}

static const chain_ops *chain_for(halfbyte_isa isa)
{
    switch (isa) {
    case HALFBYTE_ISA_AUTO: return chain_ops_get(CHAIN_ISA_AUTO);
    case HALFBYTE_ISA_PORTABLE: return chain_ops_get(CHAIN_ISA_PORTABLE);
    case HALFBYTE_ISA_AVX2: return chain_ops_get(CHAIN_ISA_AVX2);
    case HALFBYTE_ISA_AVX512: return chain_ops_get(CHAIN_ISA_AVX512);
    }
    return NULL;
}

static halfbyte_status model_open(halfbyte_device *device, const halfbyte_device_options *options)
{
    const chain_ops *chain = chain_for(options->isa);
    CHECK(chain != NULL, HALFBYTE_ERR_NO_DEVICE,
          "options.isa = %s: this CPU, or this build of the library, lacks it; accepted: auto, "
          "portable and what the CPU has",
          isa_name(options->isa));
    parallel_pool *pool = parallel_pool_create(options->threads);
    CHECK(pool != NULL, HALFBYTE_ERR_OUT_OF_MEMORY,
          "out of memory opening a device with options.threads = %d", (int)options->threads);
    device->executor = HALFBYTE_EXECUTOR_MODEL;
    device->chain = chain;
    device->pool = pool;
    device->threads = parallel_pool_threads(pool);
    return HALFBYTE_SUCCESS;
}

/* With all that calls without a plan need. */
static cuda_status gpu_open_ready(gpu **opened, int ordinal)
{
    cuda_status status = gpu_open(opened, ordinal);
    if (status.status == HALFBYTE_SUCCESS) {
        status = gpu_quantize_load(*opened);
        if (status.status != HALFBYTE_SUCCESS) {
            gpu_close(*opened);
            *opened = NULL;
        }
    }
    return status;
}

static halfbyte_status device_gpu_open(halfbyte_device *device,
                                       const halfbyte_device_options *options)
{
    CHECK(kernel_table_is_built(), HALFBYTE_ERR_UNSUPPORTED,
          "options.executor = gpu: this library was built without GPU kernels; accepted: auto, "
          "model");
    const cuda_status opened = gpu_open_ready(&device->gpu, options->ordinal);
    CHECK(opened.status == HALFBYTE_SUCCESS, opened.status, "options.executor = gpu: %s",
          opened.text);
    device->executor = HALFBYTE_EXECUTOR_GPU;
    return HALFBYTE_SUCCESS;
}

static halfbyte_status executor_open(halfbyte_device *device,
                                     const halfbyte_device_options *options)
{
    switch (options->executor) {
    case HALFBYTE_EXECUTOR_GPU: return device_gpu_open(device, options);
    case HALFBYTE_EXECUTOR_AUTO:
        if (options->profile == HALFBYTE_PROFILE_SM90 && kernel_table_is_built() &&
            gpu_open_ready(&device->gpu, options->ordinal).status == HALFBYTE_SUCCESS) {
            device->executor = HALFBYTE_EXECUTOR_GPU;
            return HALFBYTE_SUCCESS;
        }
        return model_open(device, options);
    default: return model_open(device, options);
    }
}

/* The file of the options, else that of the environment, if there is one. */
static halfbyte_status tune_open(halfbyte_device *device, const halfbyte_device_options *options)
{
    const char *path = options->tune_file;
    if (path == NULL) {
        path = getenv("HALFBYTE_TUNE_FILE");
    }
    return path == NULL || *path == '\0' ? HALFBYTE_SUCCESS : tune_read(path, &device->tune);
}

halfbyte_status halfbyte_device_open(halfbyte_device **device,
                                     const halfbyte_device_options *options)
{
    CHECK_ARGUMENT(device != NULL, "device = NULL: must point to where the device is stored");
    halfbyte_device_options chosen = halfbyte_device_options_init();
    if (options != NULL) {
        CHECK_STATUS(struct_copy_bytes(&chosen, sizeof chosen,
                                       offsetof(halfbyte_device_options, tune_file), options,
                                       "options", "halfbyte_device_options"));
    }
    CHECK_STATUS(options_check(&chosen));

    halfbyte_device *opened = calloc(1, sizeof *opened);
    CHECK(opened != NULL, HALFBYTE_ERR_OUT_OF_MEMORY, "out of memory opening a device (%zu bytes)",
          sizeof *opened);
    opened->profile = chosen.profile;
    halfbyte_status status = tune_open(opened, &chosen);
    if (status == HALFBYTE_SUCCESS) {
        status = executor_open(opened, &chosen);
    }
    if (status != HALFBYTE_SUCCESS) {
        tune_free(opened->tune);
        free(opened);
        return status;
    }
    *device = opened;
    return HALFBYTE_SUCCESS;
}

void halfbyte_device_close(halfbyte_device *device)
{
    if (device != NULL) {
        parallel_pool_destroy(device->pool);
        gpu_close(device->gpu);
        tune_free(device->tune);
        free(device);
    }
}

void device_describe_add(describe_line *line, const halfbyte_device *device)
{
    describe_add(line, "executor=%s profile=%s", executor_name(device->executor),
                 profile_name(device->profile));
    if (device->executor == HALFBYTE_EXECUTOR_GPU) {
        describe_add(line, " gpu=\"%s\" sms=%d", device->gpu->name, device->gpu->sm_count);
    } else {
        describe_add(line, " isa=%s threads=%d", device->chain->name, device->threads);
    }
    if (device->tune != NULL) {
        describe_add(line, " tuned=%zu", device->tune->count);
    }
}

halfbyte_status halfbyte_device_describe(const halfbyte_device *device, char *text,
                                         size_t text_bytes)
{
    CHECK_ARGUMENT(device != NULL, "device = NULL: must be an open device");
    describe_line line = {.length = 0};
    device_describe_add(&line, device);
    return describe_finish(&line, text, text_bytes);
}
