/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/driver_calls.h"

#include <string.h>

#include "api/device.h"

static driver_calls seen;
static const cuda_driver *real;

enum { REFUSED = 999 };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#define REFUSE_(member, symbol, parameters)                                                        \
    static cuda_result refuse_##member parameters                                                  \
    {                                                                                              \
        seen.others++;                                                                             \
        return REFUSED;                                                                            \
    }
CUDA_DRIVER_FUNCTIONS(REFUSE_)
#undef REFUSE_
#pragma GCC diagnostic pop

static cuda_result count_push(cuda_context context)
{
    seen.pushes++;
    return real->context_push(context);
}

static cuda_result count_pop(cuda_context *context)
{
    seen.pops++;
    return real->context_pop(context);
}

static cuda_result count_encode(tensor_map *map, int type, uint32_t rank, void *base,
                                const uint64_t *dims, const uint64_t *strides_bytes,
                                const uint32_t *box, const uint32_t *element_strides,
                                int interleave, int swizzle, int l2_promotion, int fill)
{
    seen.encodes++;
    return real->tensor_map_encode(map, type, rank, base, dims, strides_bytes, box, element_strides,
                                   interleave, swizzle, l2_promotion, fill);
}

static cuda_result count_clear(cuda_pointer dst, size_t pitch, unsigned char value, size_t width,
                               size_t height, cuda_stream stream)
{
    seen.clears++;
    return real->memset_rows(dst, pitch, value, width, height, stream);
}

static cuda_result count_launch(const cuda_launch_config *config, cuda_function function,
                                void **parameters, void **extra)
{
    seen.launches++;
    seen.config = *config;
    if (config->num_attributes <= sizeof seen.attributes / sizeof seen.attributes[0]) {
        memcpy(seen.attributes, config->attributes,
               config->num_attributes * sizeof seen.attributes[0]);
    }
    seen.function = function;
    /* Every launch's parameters stand in a union with these. */
    memcpy(&seen.params, parameters[0], sizeof seen.params);
    return real->launch(config, function, parameters, extra);
}

void driver_calls_begin(halfbyte_device *device)
{
    static cuda_driver counting;
    memset(&seen, 0, sizeof seen);
    real = device->gpu->driver;
#define REFUSE_MEMBER_(member, symbol, parameters) counting.member = refuse_##member;
    CUDA_DRIVER_FUNCTIONS(REFUSE_MEMBER_)
#undef REFUSE_MEMBER_
    counting.error_name = real->error_name;
    counting.context_push = count_push;
    counting.context_pop = count_pop;
    counting.tensor_map_encode = count_encode;
    counting.memset_rows = count_clear;
    counting.launch = count_launch;
    device->gpu->driver = &counting;
}

driver_calls driver_calls_end(halfbyte_device *device)
{
    device->gpu->driver = real;
    return seen;
}
