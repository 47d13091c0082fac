/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing int4 weights and back: the parts of halfbyte_pack_weights() and _unpack_weights().
 *
 *   weights_check.c   what both may be given
 *   weights_cpu.c     the work on the CPU
 *   weights_gpu.c     the work on a GPU, by the kernels of pack_launch.h
 */
#ifndef HALFBYTE_API_WEIGHTS_H
#define HALFBYTE_API_WEIGHTS_H

#include <stdbool.h>

#include "api/pack_launch.h"
#include "api/tensor.h"
#include "halfbyte.h"

struct gpu;
struct parallel_pool;

/* What pack and unpack are both given. */
typedef struct weights_call {
    halfbyte_int4_desc desc;
    struct int4_packed_shape shape;
    tensor plain, packed;
} weights_call;

/* Fills in desc and shape, groups 0 become 1; looks at all but the strides, and at the record of
 * weight groups where asked to. */
halfbyte_status weights_desc_check(weights_call *call, const halfbyte_int4_desc *desc,
                                   bool weight_groups);

/* A header may come from a file, so nothing in it is believed. */
halfbyte_status weights_header_check(const halfbyte_packed_header *header);

/* A checked header and a checked desc must say the same; the form of the words is the header's. */
halfbyte_status weights_headers_agree(weights_call *call, const halfbyte_packed_header *header);

/* Bytes of the packed form, within the address space. */
halfbyte_status weights_packed_bytes(const struct int4_packed_shape *shape, size_t *bytes);

/*
 * Checks both tensors and what they have to do with each other; desc and shape are checked.
 * plain_name: "src" of packing, "dst" of unpacking.
 */
halfbyte_status weights_tensors_check(weights_call *call, const void *plain, const char *plain_name,
                                      const void *packed, size_t packed_bytes, bool unpack);

/* The tensors of a checked call. */
pack_tensors weights_tensors(const weights_call *call);

/* Both set the flag for -8 in shape.flags.  Nothing is empty but k.  pool: NULL = one thread. */
halfbyte_status weights_pack_cpu(pack_tensors *tensors, struct parallel_pool *pool);
halfbyte_status weights_pack_gpu(struct gpu *device, pack_tensors *tensors, halfbyte_stream stream);

halfbyte_status weights_unpack_cpu(const pack_tensors *tensors, struct parallel_pool *pool);
halfbyte_status weights_unpack_gpu(struct gpu *device, const pack_tensors *tensors,
                                   halfbyte_stream stream);

#endif
