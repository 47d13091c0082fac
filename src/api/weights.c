/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points that pack int4 weights and back.
 */
#include "api/weights.h"

#include "api/device.h"

static bool is_gpu(const halfbyte_device *device)
{
    return device != NULL && device->executor == HALFBYTE_EXECUTOR_GPU;
}

static struct parallel_pool *pool_of(const halfbyte_device *device)
{
    return device != NULL ? device->pool : NULL;
}

halfbyte_status halfbyte_packed_weights_bytes(const halfbyte_int4_desc *desc, size_t *bytes)
{
    weights_call call;
    size_t size = 0;

    CHECK_STATUS(weights_desc_check(&call, desc, true));
    CHECK_STATUS(weights_packed_bytes(&call.shape, &size));
    CHECK_ARGUMENT(bytes != NULL, "bytes = NULL: must point to where the size is stored");
    *bytes = size;
    return HALFBYTE_SUCCESS;
}

halfbyte_status halfbyte_pack_weights(halfbyte_device *device, const halfbyte_int4_desc *desc,
                                      const void *src, void *packed, size_t packed_bytes,
                                      halfbyte_packed_header *header, halfbyte_stream stream)
{
    weights_call call;

    if (!is_gpu(device)) {
        CHECK_STATUS(cpu_check(device, stream));
    }
    CHECK_STATUS(weights_desc_check(&call, desc, true));
    CHECK_ARGUMENT(header != NULL, "header = NULL: must point to a halfbyte_packed_header");
    CHECK_STATUS(weights_tensors_check(&call, src, "src", packed, packed_bytes, false));

    pack_tensors tensors = weights_tensors(&call);
    if (call.packed.columns > 0) {
        CHECK_STATUS(is_gpu(device) ? weights_pack_gpu(device->gpu, &tensors, stream)
                                    : weights_pack_cpu(&tensors, pool_of(device)));
    }
    *header = (halfbyte_packed_header){.version = INT4_PACKED_VERSION,
                                       .flags = tensors.shape.flags,
                                       .n = call.desc.n,
                                       .k = call.desc.k,
                                       .groups = call.desc.groups,
                                       .group_k_offset = call.desc.group_k_offset,
                                       .weight_group_size = call.desc.weight_group_size,
                                       .scale_type = call.desc.scale_type};
    return HALFBYTE_SUCCESS;
}

halfbyte_status halfbyte_unpack_weights(halfbyte_device *device,
                                        const halfbyte_packed_header *header, const void *packed,
                                        size_t packed_bytes, const halfbyte_int4_desc *desc,
                                        void *dst, halfbyte_stream stream)
{
    weights_call call;

    if (!is_gpu(device)) {
        CHECK_STATUS(cpu_check(device, stream));
    }
    CHECK_STATUS(weights_header_check(header));
    CHECK_STATUS(weights_desc_check(&call, desc, false));
    CHECK_STATUS(weights_headers_agree(&call, header));
    CHECK_STATUS(weights_tensors_check(&call, dst, "dst", packed, packed_bytes, true));

    const pack_tensors tensors = weights_tensors(&call);
    if (call.packed.columns == 0) {
        return HALFBYTE_SUCCESS;
    }
    return is_gpu(device) ? weights_unpack_gpu(device->gpu, &tensors, stream)
                          : weights_unpack_cpu(&tensors, pool_of(device));
}
