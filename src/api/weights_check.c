/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "api/struct_copy.h"
#include "api/weights.h"

enum { PACKED_ALIGNMENT = 16, GATE_UP_ROW_MULTIPLE = 16, OFFSET_MULTIPLE = 32 };

#define HEADER_FLAGS (HALFBYTE_PACKED_HOLDS_MINUS8 | HALFBYTE_PACKED_GATE_UP_ROWS)

_Static_assert(HALFBYTE_PACKED_HOLDS_MINUS8 == INT4_PACKED_HOLDS_MINUS8 &&
                   HALFBYTE_PACKED_GATE_UP_ROWS == INT4_PACKED_GATE_UP,
               "flags of the header are those of the format");
_Static_assert((int)HALFBYTE_INT4_INT8_LOW_FIRST == (int)INT4_RAW &&
                   (int)HALFBYTE_INT4_INT32_SIGNED == (int)INT4_SIGNED32 &&
                   (int)HALFBYTE_INT4_INT32_OFFSET == (int)INT4_OFFSET32,
               "layouts are the forms of the format");

static halfbyte_status extent_check(const char *name, const char *field, int64_t value,
                                    int64_t least, int64_t most)
{
    CHECK_ARGUMENT(value >= least && value <= most,
                   "%s.%s = %" PRId64 ": must be in [%" PRId64 ", %" PRId64 "]", name, field, value,
                   least, most);
    return HALFBYTE_SUCCESS;
}

/* Weight groups, as a desc and a header record them. */
static halfbyte_status weight_group_check(const char *name, int64_t size, int64_t offset,
                                          halfbyte_type scale_type)
{
    CHECK_ARGUMENT(size == 0 || size == 32 || size == 64 || size == 128,
                   "%s.weight_group_size = %" PRId64 ": accepted: 32, 64, 128, 0 (all of k)", name,
                   size);
    CHECK_ARGUMENT(offset >= 0 && offset % OFFSET_MULTIPLE == 0 && (offset == 0 || offset < size),
                   "%s.group_k_offset = %" PRId64
                   ": must be a multiple of %d below weight_group_size = %" PRId64 ", or 0",
                   name, offset, OFFSET_MULTIPLE, size);
    CHECK_ARGUMENT(scale_type == HALFBYTE_TYPE_NONE || scale_type == HALFBYTE_TYPE_F32 ||
                       scale_type == HALFBYTE_TYPE_BF16 || scale_type == HALFBYTE_TYPE_F16 ||
                       scale_type == HALFBYTE_TYPE_E4M3,
                   "%s.scale_type = %s (%d): accepted: none, f32, bf16, f16, e4m3", name,
                   halfbyte_type_name(scale_type), (int)scale_type);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status gate_up_check(const char *name, uint32_t flags, int64_t n)
{
    CHECK_ARGUMENT((flags & HALFBYTE_PACKED_GATE_UP_ROWS) == 0 || n % GATE_UP_ROW_MULTIPLE == 0,
                   "%s.n = %" PRId64 ": must be a multiple of %d with GATE_UP_ROWS", name, n,
                   GATE_UP_ROW_MULTIPLE);
    return HALFBYTE_SUCCESS;
}

static struct int4_packed_shape shape_of(const halfbyte_int4_desc *desc)
{
    return (struct int4_packed_shape){.groups = desc->groups,
                                      .n = desc->n,
                                      .k = desc->k,
                                      .group_k_offset = desc->group_k_offset,
                                      .flags = desc->flags};
}

/* All but the strides; groups 0 becomes 1. */
halfbyte_status weights_desc_check(weights_call *call, const halfbyte_int4_desc *desc,
                                   bool weight_groups)
{
    halfbyte_int4_desc *d = &call->desc;

    CHECK_STATUS(struct_copy(d, desc, "desc", halfbyte_int4_desc));
    CHECK_ARGUMENT((unsigned int)d->layout <= HALFBYTE_INT4_INT32_OFFSET,
                   "desc.layout = %d: accepted: int8_low_first (0), int32_signed (1), "
                   "int32_offset (2)",
                   (int)d->layout);
    CHECK_STATUS(extent_check("desc", "n", d->n, 0, TENSOR_MOST_EXTENT));
    CHECK_STATUS(extent_check("desc", "k", d->k, 0, TENSOR_MOST_EXTENT));
    CHECK_STATUS(extent_check("desc", "groups", d->groups, 0, TENSOR_MOST_GROUPS));
    d->groups = d->groups == 0 ? 1 : d->groups;
    CHECK_ARGUMENT((d->flags & ~HALFBYTE_PACKED_GATE_UP_ROWS) == 0,
                   "desc.flags = 0x%" PRIx32 ": accepted bits: 0x%x (GATE_UP_ROWS)", d->flags,
                   HALFBYTE_PACKED_GATE_UP_ROWS);
    CHECK_STATUS(gate_up_check("desc", d->flags, d->n));
    if (weight_groups) {
        CHECK_STATUS(
            weight_group_check("desc", d->weight_group_size, d->group_k_offset, d->scale_type));
    }
    call->shape = shape_of(d);
    return HALFBYTE_SUCCESS;
}

halfbyte_status weights_packed_bytes(const struct int4_packed_shape *shape, size_t *bytes)
{
    const int64_t size = int4_packed_bytes(shape);

    CHECK_ARGUMENT(size >= 0 && (uint64_t)size <= PTRDIFF_MAX,
                   "desc.groups = %" PRId64 ", n = %" PRId64 ", k = %" PRId64
                   ": the packed form would not fit into the address space",
                   shape->groups, shape->n, shape->k);
    *bytes = (size_t)size;
    return HALFBYTE_SUCCESS;
}

/* ---- headers --------------------------------------------------------------------------------- */

halfbyte_status weights_header_check(const halfbyte_packed_header *h)
{
    CHECK_ARGUMENT(h != NULL, "header = NULL: must point to a halfbyte_packed_header");
    CHECK(h->version == INT4_PACKED_VERSION, HALFBYTE_ERR_UNSUPPORTED,
          "header.version = %" PRIu32 ": accepted: %d", h->version, INT4_PACKED_VERSION);
    CHECK_ARGUMENT((h->flags & ~HEADER_FLAGS) == 0,
                   "header.flags = 0x%" PRIx32 ": accepted bits: 0x%x", h->flags, HEADER_FLAGS);
    CHECK_ARGUMENT(h->reserved == 0, "header.reserved = %" PRIu32 ": must be 0", h->reserved);
    CHECK_STATUS(extent_check("header", "n", h->n, 0, TENSOR_MOST_EXTENT));
    CHECK_STATUS(extent_check("header", "k", h->k, 0, TENSOR_MOST_EXTENT));
    CHECK_STATUS(extent_check("header", "groups", h->groups, 1, TENSOR_MOST_GROUPS));
    CHECK_STATUS(
        weight_group_check("header", h->weight_group_size, h->group_k_offset, h->scale_type));
    return gate_up_check("header", h->flags, h->n);
}

static halfbyte_status agreement_check(const char *field, int64_t in_desc, int64_t in_header)
{
    CHECK_ARGUMENT(in_desc == in_header,
                   "desc.%s = %" PRId64 ": must be that of the header, %" PRId64, field, in_desc,
                   in_header);
    return HALFBYTE_SUCCESS;
}

halfbyte_status weights_headers_agree(weights_call *call, const halfbyte_packed_header *header)
{
    const halfbyte_int4_desc *d = &call->desc;

    CHECK_STATUS(agreement_check("n", d->n, header->n));
    CHECK_STATUS(agreement_check("k", d->k, header->k));
    CHECK_STATUS(agreement_check("groups", d->groups, header->groups));
    CHECK_STATUS(agreement_check("group_k_offset", d->group_k_offset, header->group_k_offset));
    CHECK_ARGUMENT((d->flags & ~header->flags) == 0,
                   "desc.flags = 0x%" PRIx32 ": must be 0 or that of the header, 0x%" PRIx32,
                   d->flags, header->flags & HALFBYTE_PACKED_GATE_UP_ROWS);
    call->shape.flags = header->flags;
    return HALFBYTE_SUCCESS;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static halfbyte_status in_place_check(const weights_call *call)
{
    const halfbyte_int4_desc *d = &call->desc;

    CHECK_ARGUMENT(d->n % INT4_PACKED_ATOM_ROWS == 0 && d->k % INT4_PACKED_ATOM_K == 0 &&
                       d->group_k_offset == 0 && call->plain.row_stride == d->k &&
                       (d->groups == 1 || call->plain.group_stride == d->n * d->k) &&
                       (call->shape.flags & HALFBYTE_PACKED_GATE_UP_ROWS) == 0,
                   "%s == %s: in place needs n = %" PRId64 " a multiple of 64, k = %" PRId64
                   " a multiple of 128, group_k_offset 0, ld == k, group_stride == n * k and no "
                   "flags",
                   call->packed.name, call->plain.name, d->n, d->k);
    return HALFBYTE_SUCCESS;
}

halfbyte_status weights_tensors_check(weights_call *call, const void *plain, const char *plain_name,
                                      const void *packed, size_t packed_bytes, bool unpack)
{
    const halfbyte_int4_desc *d = &call->desc;
    const bool int8 = d->layout == HALFBYTE_INT4_INT8_LOW_FIRST;
    size_t bytes = 0;

    CHECK_STATUS(weights_packed_bytes(&call->shape, &bytes));
    call->plain = (tensor){.name = plain_name,
                           .row_stride_name = "ld",
                           .data = plain,
                           .bits = 4,
                           .groups = d->groups,
                           .rows = d->n,
                           .columns = int4_row_bytes((enum int4_form)d->layout, d->k) * 2,
                           .row_stride = d->ld,
                           .group_stride = d->group_stride,
                           .stride_multiple = int8 ? 2 : 8,
                           .alignment = int8 ? 1 : 4};
    call->packed = (tensor){.name = "packed",
                            .row_stride_name = "ld",
                            .data = packed,
                            .bits = 8,
                            .groups = 1,
                            .rows = 1,
                            .columns = (int64_t)bytes,
                            .stride_multiple = 1,
                            .alignment = PACKED_ALIGNMENT};
    CHECK_STATUS(tensor_check(&call->plain, unpack));
    CHECK_STATUS(tensor_check(&call->packed, !unpack));
    CHECK(packed_bytes >= bytes, HALFBYTE_ERR_BUFFER_TOO_SMALL,
          "packed_bytes = %zu: must be at least %zu", packed_bytes, bytes);
    if (plain == packed && bytes != 0) {
        return in_place_check(call);
    }
    return unpack ? tensor_check_apart(&call->plain, &call->packed)
                  : tensor_check_apart(&call->packed, &call->plain);
}

pack_tensors weights_tensors(const weights_call *call)
{
    return (pack_tensors){.shape = call->shape,
                          .form = (enum int4_form)call->desc.layout,
                          .plain = (unsigned char *)(uintptr_t)call->plain.data,
                          .row_bytes = call->plain.row_stride / 2,
                          .group_bytes = call->plain.group_stride / 2,
                          .packed = (unsigned char *)(uintptr_t)call->packed.data};
}
