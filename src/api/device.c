/* SPDX-License-Identifier: Apache-2.0 */
#include "api/device.h"

#include <stdlib.h>

#include "api/describe.h"
#include "api/enum_names.h"
#include "api/error.h"
#include "api/struct_copy.h"
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
    CHECK(options->executor == HALFBYTE_EXECUTOR_AUTO ||
              options->executor == HALFBYTE_EXECUTOR_MODEL,
          HALFBYTE_ERR_UNSUPPORTED,
          "options.executor = %s: this executor is not built into this library; accepted: auto, "
          "model",
          executor_name(options->executor));
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

halfbyte_status halfbyte_device_open(halfbyte_device **device,
                                     const halfbyte_device_options *options)
{
    CHECK_ARGUMENT(device != NULL, "device = NULL: must point to where the device is stored");
    halfbyte_device_options chosen = halfbyte_device_options_init();
    if (options != NULL) {
        CHECK_STATUS(struct_copy(&chosen, options, "options", halfbyte_device_options));
    }
    CHECK_STATUS(options_check(&chosen));
    const chain_ops *chain = chain_for(chosen.isa);
    CHECK(chain != NULL, HALFBYTE_ERR_NO_DEVICE,
          "options.isa = %s: this CPU, or this build of the library, lacks it; accepted: auto, "
          "portable and what the CPU has",
          isa_name(chosen.isa));

    halfbyte_device *opened = malloc(sizeof *opened);
    parallel_pool *pool = opened == NULL ? NULL : parallel_pool_create(chosen.threads);
    if (pool == NULL) {
        free(opened);
        return status_fail(HALFBYTE_ERR_OUT_OF_MEMORY,
                           "out of memory opening a device with options.threads = %d",
                           (int)chosen.threads);
    }
    opened->executor = HALFBYTE_EXECUTOR_MODEL;
    opened->profile = chosen.profile;
    opened->chain = chain;
    opened->pool = pool;
    opened->threads = parallel_pool_threads(pool);
    *device = opened;
    return HALFBYTE_SUCCESS;
}

void halfbyte_device_close(halfbyte_device *device)
{
    if (device != NULL) {
        parallel_pool_destroy(device->pool);
        free(device);
    }
}

halfbyte_status halfbyte_device_describe(const halfbyte_device *device, char *text,
                                         size_t text_bytes)
{
    CHECK_ARGUMENT(device != NULL, "device = NULL: must be an open device");
    describe_line line = {.length = 0};
    describe_add(&line, "executor=%s profile=%s isa=%s threads=%d", executor_name(device->executor),
                 profile_name(device->profile), device->chain->name, device->threads);
    return describe_finish(&line, text, text_bytes);
}
