/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing and unpacking on the CPU.
 *
 * Work is cut into units: a panel of 64 rows, which the packed form keeps together, or a whole
 * group if gate and up rows are interleaved.  Units are independent and may be done in any order.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/weights.h"
#include "model/parallel.h"

typedef struct packing_job {
    pack_tensors tensors;
    bool unpack;
    int64_t units_per_group, unit_rows, unit_packed_bytes;
    unsigned char *scratch; /* in place: a unit for each task, else NULL */
    int64_t tasks;
    atomic_bool minus8;
} packing_job;

static packing_job job_make(const pack_tensors *tensors, bool unpack)
{
    packing_job made = {.tensors = *tensors, .unpack = unpack};
    packing_job *job = &made;
    const struct int4_packed_shape *shape = &job->tensors.shape;
    const int64_t panels = int4_packed_panels(shape);
    const int64_t panel_bytes = int4_packed_atoms(shape) * INT4_PACKED_ATOM_BYTES;
    const bool whole = (shape->flags & INT4_PACKED_GATE_UP) != 0;

    job->units_per_group = whole ? 1 : panels;
    job->unit_rows = whole ? shape->n : INT4_PACKED_ATOM_ROWS;
    job->unit_packed_bytes = whole ? panels * panel_bytes : panel_bytes;
    job->tasks = shape->k > 0 ? shape->groups * job->units_per_group : 0;
    atomic_init(&job->minus8, false);
    return made;
}

/* A unit as a tensor of one group, and where its rows begin. */
static struct int4_packed_shape unit_shape(const packing_job *job, int64_t unit)
{
    struct int4_packed_shape shape = job->tensors.shape;
    const int64_t first = unit % job->units_per_group * job->unit_rows;

    shape.groups = 1;
    shape.n = shape.n - first < job->unit_rows ? shape.n - first : job->unit_rows;
    return shape;
}

static unsigned char *unit_plain(const packing_job *job, int64_t unit)
{
    return job->tensors.plain + unit / job->units_per_group * job->tensors.group_bytes +
           unit % job->units_per_group * job->unit_rows * job->tensors.row_bytes;
}

static void task_scan(void *context, int64_t unit)
{
    packing_job *job = context;
    const struct int4_packed_shape shape = unit_shape(job, unit);
    bool found = false;

    if (atomic_load_explicit(&job->minus8, memory_order_relaxed)) {
        return;
    }
    if (int4_rows_hold_minus8(unit_plain(job, unit), job->tensors.form, job->tensors.row_bytes,
                              shape.n, shape.k, &found) &&
        found) {
        atomic_store_explicit(&job->minus8, true, memory_order_relaxed);
    }
}

static void unit_convert(const packing_job *job, int64_t unit, unsigned char *plain,
                         unsigned char *packed)
{
    const struct int4_packed_shape shape = unit_shape(job, unit);

    if (job->unpack) {
        int4_packed_unpack(plain, job->tensors.form, job->tensors.row_bytes, 0, packed, &shape);
    } else {
        int4_packed_pack(packed, &shape, plain, job->tensors.form, job->tensors.row_bytes, 0);
    }
}

static void task_convert(void *context, int64_t unit)
{
    const packing_job *job = context;
    unit_convert(job, unit, unit_plain(job, unit),
                 job->tensors.packed + unit * job->unit_packed_bytes);
}

/* In place, where a unit is the same bytes in both forms.  Task t has scratch for one at a time. */
static void task_convert_in_place(void *context, int64_t task)
{
    const packing_job *job = context;
    const int64_t units = job->tensors.shape.groups * job->units_per_group;
    unsigned char *copy = job->scratch + task * job->unit_packed_bytes;

    for (int64_t unit = task; unit < units; unit += job->tasks) {
        unsigned char *data = job->tensors.packed + unit * job->unit_packed_bytes;
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

static halfbyte_status job_run(packing_job *job, parallel_pool *pool)
{
    if (job->tensors.plain == job->tensors.packed) {
        return job_run_in_place(job, pool);
    }
    parallel_for(pool, job->tasks, task_convert, job);
    return HALFBYTE_SUCCESS;
}

halfbyte_status weights_pack_cpu(pack_tensors *tensors, parallel_pool *pool)
{
    packing_job job = job_make(tensors, false);

    if (tensors->shape.k == 0) { /* an offset alone makes atoms, of zeros */
        memset(tensors->packed, 0, (size_t)int4_packed_bytes(&tensors->shape));
    }
    parallel_for(pool, job.tasks, task_scan, &job);
    if (atomic_load(&job.minus8)) {
        tensors->shape.flags |= INT4_PACKED_HOLDS_MINUS8;
        job.tensors.shape.flags = tensors->shape.flags;
    }
    return job_run(&job, pool);
}

halfbyte_status weights_unpack_cpu(const pack_tensors *tensors, parallel_pool *pool)
{
    packing_job job = job_make(tensors, true);
    return job_run(&job, pool);
}
