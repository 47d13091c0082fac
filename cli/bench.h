/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_BENCH_H
#define HALFBYTE_CLI_BENCH_H

/*
 * What `halfbyte bench` and `halfbyte tune` share: shapes from files, timing on a GPU behind a
 * flush of its cache, what the machine itself gives in the same run.
 *
 * TIMES.  Medians of CUDA-event times, 256 MiB written before each launch, so that operands come
 * from device memory.  The launch stands behind the flush in the stream, so the host's share is
 * hidden as in a busy program; an empty kernel takes 3 us this way.
 */

#include "gpu_driver.h"
#include "gpu_tensors.h"
#include "instance.h"
#include "problem.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

/* How rows fall to groups. */
typedef enum bench_load_kind {
    BENCH_LOAD_NONE, /* not said: evenly */
    BENCH_LOAD_EVEN, /* "even" */
    BENCH_LOAD_ONE,  /* "one": all to one group */
    BENCH_LOAD_ZIPF  /* "zipfN": tokens that have N different groups each, bench/expert_loads.h */
} bench_load_kind;

typedef struct bench_load {
    bench_load_kind kind;
    int64_t top; /* ZIPF: N */
} bench_load;

typedef struct bench_shape {
    halfbyte_problem problem;
    const char *family; /* "fp8_block", "fp8", "w4a8" */
    const char *layout; /* "dense", "contiguous", "offsets", "masked", "labels" */
    int64_t groups;
    int64_t m;      /* rows a group, the mean where the problem has those of all */
    double goal_us; /* 0: none */
    bench_load load;
} bench_shape;

typedef struct bench_shapes {
    bench_shape *list;
    size_t count;
} bench_shapes;

/* Adds a problem string, behind it maybe '@' and a load; `where` (a file and line, or NULL) stands
 * in front of its faults. */
int bench_shapes_add(bench_shapes *shapes, const char *text, const char *where);

/*
 * Adds those of a file.  CSV, its first line the names of the columns: m, n, k and where wanted
 * family, layout, groups, goal_us, load (others are ignored; m is rows a group); or a problem
 * string a line.  '#' opens a comment.
 */
int bench_shapes_read(bench_shapes *shapes, const char *path);

/* Keeps those that all words fit, separated by commas: a family, layout or load, or name=value. */
void bench_shapes_filter(bench_shapes *shapes, const char *words);

void bench_shapes_free(bench_shapes *shapes);

/* ---- loads ----------------------------------------------------------------------------------- */

bool bench_load_parse(const char *text, bench_load *load);
enum { BENCH_LOAD_BYTES = 32 };
const char *bench_load_text(const bench_load *load, char text[BENCH_LOAD_BYTES]); /* NONE: "" */

/* Whether the shape can have its load; `where` as above. */
int bench_load_check(const bench_shape *shape, const char *where);

/* An instance of the shape with its load, which `seed` draws. */
int bench_instance(const bench_shape *shape, uint64_t seed, instance *made);

/* Groups with rows: those whose weights are read. */
int64_t bench_used_groups(const instance *made);
int64_t bench_most_rows(const instance *made); /* of one group */

/* Where a load is said: 1.25 x (the larger of reading and computing at the rates of an H200, and a
 * launch); else 0. */
double bench_limit_us(const bench_shape *shape, const instance *made);

/* ---- a GPU ----------------------------------------------------------------------------------- */

enum { BENCH_MOST_REPEATS = 1000 };

typedef struct bench_times {
    double median_us, least_us, most_us;
} bench_times;

/* Enqueues one launch of something; false with *code set after a failure that was told. */
typedef int bench_enqueue(void *context);

typedef struct bench_gpu {
    gpu_driver gpu;
    gpu_address flush;
    gpu_event begin[BENCH_MOST_REPEATS], end[BENCH_MOST_REPEATS];
    int events; /* pairs that exist */
    gpu_module probe_modules[2];
    gpu_function read_kernel, mma_kernel; /* NULL: built without nvcc */
    gpu_address sink;
    struct {
        int size, way; /* the fastest way to read so much, found before */
    } ways[64];
    int ways_known;
} bench_gpu;

int bench_gpu_open(bench_gpu *bench, int ordinal, bool probes);
void bench_gpu_close(bench_gpu *bench);

/* Two launches that do not count, then `repeats` that do. */
int bench_time(bench_gpu *bench, bench_enqueue *enqueue, void *context, int repeats,
               bench_times *times);

/* Names of the kernels of a run, joined by '+' without their common prefix: the run is captured,
 * not done.  *exec (may be NULL) is the graph for replay. */
int bench_capture(bench_gpu *bench, const gpu_tensors *tensors, char *names, size_t bytes,
                  gpu_graph_exec *exec);

/* Median time of a kernel that only reads the bytes of weights and activations; 0 without it. */
int bench_read_us(bench_gpu *bench, gpu_address weights, uint64_t weight_bytes,
                  gpu_address activations, uint64_t activation_bytes, int repeats, double *us);

/* Rate of chained wgmma, back to back for 60 ms; 0 without the probe. */
int bench_mma_tflops(bench_gpu *bench, double *tflops);

/* ---- the vendor's library -------------------------------------------------------------------- */

typedef struct bench_vendor bench_vendor;

/* cuBLASLt where it can be loaded, else NULL.  Says nothing. */
bench_vendor *bench_vendor_open(void);
void bench_vendor_close(bench_vendor *vendor);

/* Prepares the product of the tensors, which it writes to their D.  False where it has none. */
bool bench_vendor_prepare(bench_vendor *vendor, const gpu_tensors *tensors, const instance *made);

/* A bench_enqueue with the vendor as its context. */
int bench_vendor_enqueue(void *vendor);

/* ---- tensors and bits
 * ------------------------------------------------------------------------------------ */

/* Fills an instance quickly; minus8: one int4 weight is -8, else none.  Packs on the model device.
 */
int bench_fill(instance *made, halfbyte_device *model, uint64_t seed, bool minus8);

/* Computes some rows of the first, the last and a middle group anew on the model device, into the
 * D of the instance, and compares them with `d`, a D of the same form. */
int bench_check_rows(instance *made, halfbyte_device *model, const void *d, uint64_t *compared,
                     uint64_t *different);

#endif
