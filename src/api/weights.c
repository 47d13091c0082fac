/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing int4 weights and back.
 *
 * Work is cut into units: a panel of 64 rows, which the packed form keeps together, or a whole
 * group if gate and up rows are interleaved.  Units are independent and may be done in any order.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/device.h"
#include "api/struct_copy.h"
#include "api/tensor.h"
#include "format/int4_packed.h"
#include "model/parallel.h"

enum { PACKED_ALIGNMENT = 16, GATE_UP_ROW_MULTIPLE = 16, OFFSET_MULTIPLE = 32 };

#define HEADER_FLAGS (HALFBYTE_PACKED_HOLDS_MINUS8 | HALFBYTE_PACKED_GATE_UP_ROWS)

_Static_assert(HALFBYTE_PACKED_HOLDS_MINUS8 == INT4_PACKED_HOLDS_MINUS8 &&
                   HALFBYTE_PACKED_GATE_UP_ROWS == INT4_PACKED_GATE_UP,
               "flags of the header are those of the format");
_Static_assert((int)HALFBYTE_INT4_INT8_LOW_FIRST == (int)INT4_RAW &&
                   (int)HALFBYTE_INT4_INT32_SIGNED == (int)INT4_SIGNED32 &&
                   (int)HALFBYTE_INT4_INT32_OFFSET == (int)INT4_OFFSET32,
               "layouts are the forms of the format");

/* ---- checks ---------------------------------------------------------------------------------- */

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

/* Copies desc and checks all of it but the strides; groups 0 becomes 1. */
static halfbyte_status desc_check(halfbyte_int4_desc *d, const halfbyte_int4_desc *desc)
{
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
    return gate_up_check("desc", d->flags, d->n);
}

/* The bytes of the packed form, within the address space. */
static halfbyte_status packed_size(const struct int4_packed_shape *shape, size_t *bytes)
{
    const int64_t size = int4_packed_bytes(shape);

    CHECK_ARGUMENT(size >= 0 && (uint64_t)size <= PTRDIFF_MAX,
                   "desc.groups = %" PRId64 ", n = %" PRId64 ", k = %" PRId64
                   ": the packed form would not fit into the address space",
                   shape->groups, shape->n, shape->k);
    *bytes = (size_t)size;
    return HALFBYTE_SUCCESS;
}

halfbyte_status halfbyte_packed_weights_bytes(const halfbyte_int4_desc *desc, size_t *bytes)
{
    halfbyte_int4_desc d;
    size_t size = 0;

    CHECK_STATUS(desc_check(&d, desc));
    CHECK_STATUS(weight_group_check("desc", d.weight_group_size, d.group_k_offset, d.scale_type));
    const struct int4_packed_shape shape = shape_of(&d);
    CHECK_STATUS(packed_size(&shape, &size));
    CHECK_ARGUMENT(bytes != NULL, "bytes = NULL: must point to where the size is stored");
    *bytes = size;
    return HALFBYTE_SUCCESS;
}

/* ---- work ------------------------------------------------------------------------------------ */

typedef struct packing_job {
    struct int4_packed_shape shape;
    enum int4_form form;
    unsigned char *plain; /* the checkpoint's layout */
    int64_t row_bytes, group_bytes;
    unsigned char *packed;
    bool unpack;
    int64_t units_per_group, unit_rows, unit_packed_bytes;
    unsigned char *scratch; /* in place: a unit for each task, else NULL */
    int64_t tasks;
    atomic_bool minus8;
} packing_job;

/* Fills in all that follows from shape. */
static void job_cut(packing_job *job)
{
    const struct int4_packed_shape *shape = &job->shape;
    const int64_t panels = int4_packed_panels(shape);
    const int64_t panel_bytes = int4_packed_atoms(shape) * INT4_PACKED_ATOM_BYTES;
    const bool whole = (shape->flags & INT4_PACKED_GATE_UP) != 0;

    job->units_per_group = whole ? 1 : panels;
    job->unit_rows = whole ? shape->n : INT4_PACKED_ATOM_ROWS;
    job->unit_packed_bytes = whole ? panels * panel_bytes : panel_bytes;
    job->tasks = shape->k > 0 ? shape->groups * job->units_per_group : 0;
}

/* A unit as a tensor of one group, and where its rows begin. */
static struct int4_packed_shape unit_shape(const packing_job *job, int64_t unit)
{
    struct int4_packed_shape shape = job->shape;
    const int64_t first = unit % job->units_per_group * job->unit_rows;

    shape.groups = 1;
    shape.n = shape.n - first < job->unit_rows ? shape.n - first : job->unit_rows;
    return shape;
}

static unsigned char *unit_plain(const packing_job *job, int64_t unit)
{
    return job->plain + unit / job->units_per_group * job->group_bytes +
           unit % job->units_per_group * job->unit_rows * job->row_bytes;
}

static void task_scan(void *context, int64_t unit)
{
    packing_job *job = context;
    const struct int4_packed_shape shape = unit_shape(job, unit);
    bool found = false;

    if (atomic_load_explicit(&job->minus8, memory_order_relaxed)) {
        return;
    }
    if (int4_rows_hold_minus8(unit_plain(job, unit), job->form, job->row_bytes, shape.n, shape.k,
                              &found) &&
        found) {
        atomic_store_explicit(&job->minus8, true, memory_order_relaxed);
    }
}

static void unit_convert(const packing_job *job, int64_t unit, unsigned char *plain,
                         unsigned char *packed)
{
    const struct int4_packed_shape shape = unit_shape(job, unit);

    if (job->unpack) {
        int4_packed_unpack(plain, job->form, job->row_bytes, 0, packed, &shape);
    } else {
        int4_packed_pack(packed, &shape, plain, job->form, job->row_bytes, 0);
    }
}

static void task_convert(void *context, int64_t unit)
{
    const packing_job *job = context;
    unit_convert(job, unit, unit_plain(job, unit), job->packed + unit * job->unit_packed_bytes);
}

/* In place, where a unit is the same bytes in both forms.  Task t has scratch for one at a time. */
static void task_convert_in_place(void *context, int64_t task)
{
    const packing_job *job = context;
    const int64_t units = job->shape.groups * job->units_per_group;
    unsigned char *copy = job->scratch + task * job->unit_packed_bytes;

    for (int64_t unit = task; unit < units; unit += job->tasks) {
        unsigned char *data = job->packed + unit * job->unit_packed_bytes;
        memcpy(copy, data, (size_t)job->unit_packed_bytes);
        if (job->unpack) {
            unit_convert(job, unit, data, copy);
        } else {
            unit_convert(job, unit, copy, data);
        }
    }
}

static halfbyte_status job_run_in_place(packing_job *job, parallel_pool *pool)
{
    const int threads = parallel_pool_threads(pool);

    if (job->tasks > threads) {
        job->tasks = threads;
    }
    if (job->tasks == 0 || job->unit_packed_bytes == 0) {
        return HALFBYTE_SUCCESS;
    }
    job->scratch = calloc((size_t)job->tasks, (size_t)job->unit_packed_bytes);
    CHECK(job->scratch != NULL, HALFBYTE_ERR_OUT_OF_MEMORY,
          "out of memory: %" PRId64 " bytes of scratch memory, one panel of 64 rows a thread",
          job->tasks * job->unit_packed_bytes);
    parallel_for(pool, job->tasks, task_convert_in_place, job);
    free(job->scratch);
    return HALFBYTE_SUCCESS;
}

/* ---- entry points ---------------------------------------------------------------------------- */

/* What pack and unpack are both given. */
typedef struct packing_call {
    halfbyte_int4_desc desc;
    struct int4_packed_shape shape;
    tensor plain, packed;
} packing_call;

static halfbyte_status in_place_check(const packing_call *call)
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

/*
 * Checks both tensors and what they have to do with each other; call->desc and call->shape are
 * checked.  plain_name: "src" of packing, "dst" of unpacking.
 */
static halfbyte_status tensors_check(packing_call *call, const void *plain, const char *plain_name,
                                     const void *packed, size_t packed_bytes, bool unpack)
{
    const halfbyte_int4_desc *d = &call->desc;
    const bool int8 = d->layout == HALFBYTE_INT4_INT8_LOW_FIRST;
    size_t bytes = 0;

    CHECK_STATUS(packed_size(&call->shape, &bytes));
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

static packing_job job_make(const packing_call *call, const void *plain, const void *packed,
                            bool unpack)
{
    packing_job job = {.shape = call->shape,
                       .form = (enum int4_form)call->desc.layout,
                       .plain = (unsigned char *)(uintptr_t)plain,
                       .row_bytes = call->plain.row_stride / 2,
                       .group_bytes = call->plain.group_stride / 2,
                       .packed = (unsigned char *)(uintptr_t)packed,
                       .unpack = unpack};
    job_cut(&job);
    atomic_init(&job.minus8, false);
    return job;
}

static halfbyte_status job_run(packing_job *job, parallel_pool *pool)
{
    if (job->plain == job->packed) {
        return job_run_in_place(job, pool);
    }
    parallel_for(pool, job->tasks, task_convert, job);
    return HALFBYTE_SUCCESS;
}

halfbyte_status halfbyte_pack_weights(halfbyte_device *device, const halfbyte_int4_desc *desc,
                                      const void *src, void *packed, size_t packed_bytes,
                                      halfbyte_packed_header *header, halfbyte_stream stream)
{
    parallel_pool *pool = device != NULL ? device->pool : NULL;
    packing_call call;

    CHECK_STATUS(cpu_check(device, stream));
    CHECK_STATUS(desc_check(&call.desc, desc));
    const halfbyte_int4_desc *d = &call.desc;
    CHECK_STATUS(
        weight_group_check("desc", d->weight_group_size, d->group_k_offset, d->scale_type));
    CHECK_ARGUMENT(header != NULL, "header = NULL: must point to a halfbyte_packed_header");
    call.shape = shape_of(d);
    CHECK_STATUS(tensors_check(&call, src, "src", packed, packed_bytes, false));

    packing_job job = job_make(&call, src, packed, false);
    if (call.packed.columns > 0 && d->k == 0) { /* an offset alone makes atoms, of zeros */
        memset(packed, 0, (size_t)call.packed.columns);
    }
    parallel_for(pool, job.tasks, task_scan, &job);
    if (atomic_load(&job.minus8)) {
        job.shape.flags |= INT4_PACKED_HOLDS_MINUS8;
    }
    CHECK_STATUS(job_run(&job, pool));
    *header = (halfbyte_packed_header){.version = INT4_PACKED_VERSION,
                                       .flags = job.shape.flags,
                                       .n = d->n,
                                       .k = d->k,
                                       .groups = d->groups,
                                       .group_k_offset = d->group_k_offset,
                                       .weight_group_size = d->weight_group_size,
                                       .scale_type = d->scale_type};
    return HALFBYTE_SUCCESS;
}

/* A header may come from a file, so nothing in it is believed. */
static halfbyte_status header_check(const halfbyte_packed_header *h)
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

halfbyte_status halfbyte_unpack_weights(halfbyte_device *device,
                                        const halfbyte_packed_header *header, const void *packed,
                                        size_t packed_bytes, const halfbyte_int4_desc *desc,
                                        void *dst, halfbyte_stream stream)
{
    packing_call call;

    CHECK_STATUS(cpu_check(device, stream));
    CHECK_STATUS(header_check(header));
    CHECK_STATUS(desc_check(&call.desc, desc));
    CHECK_STATUS(agreement_check("n", call.desc.n, header->n));
    CHECK_STATUS(agreement_check("k", call.desc.k, header->k));
    CHECK_STATUS(agreement_check("groups", call.desc.groups, header->groups));
    CHECK_STATUS(
        agreement_check("group_k_offset", call.desc.group_k_offset, header->group_k_offset));
    CHECK_ARGUMENT((call.desc.flags & ~header->flags) == 0,
                   "desc.flags = 0x%" PRIx32 ": must be 0 or that of the header, 0x%" PRIx32,
                   call.desc.flags, header->flags & HALFBYTE_PACKED_GATE_UP_ROWS);
    call.shape = shape_of(&call.desc);
    call.shape.flags = header->flags;
    CHECK_STATUS(tensors_check(&call, dst, "dst", packed, packed_bytes, true));

    packing_job job = job_make(&call, dst, packed, true);
    return job_run(&job, device != NULL ? device->pool : NULL);
}
