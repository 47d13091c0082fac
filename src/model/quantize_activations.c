/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations to e4m3, with one scale for the tensor, a row or 128 values of a row.
 *
 * Work is cut into runs of whole rows.  One scale for the tensor needs two passes: the largest
 * magnitude first (a maximum of integers, so that the order of the rows cannot matter), then the
 * division.  The others go row by row, while the row is in the cache.
 */
#include "model/quantize.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "model/quantize_piece.h"

#define E4M3_LARGEST 448.0f

typedef struct activation_job {
    const halfbyte_activation_quantization *arguments;
    int64_t rows_per_task;
    atomic_int_least32_t amax; /* TENSOR: bits of the largest finite magnitude */
} activation_job;

/* About this many elements make a task worth handing to a thread. */
enum { TASK_ELEMENTS = 1 << 16 };

static const void *source_at(const halfbyte_activation_quantization *a, int64_t row, int64_t column)
{
    return (const char *)a->src.data + (row * a->src.ld + column) * source_bytes(a->src_type);
}

static uint8_t *destination_at(const halfbyte_activation_quantization *a, int64_t row,
                               int64_t column)
{
    return (uint8_t *)a->dst.data + row * a->dst.ld + column;
}

static int64_t count_at(int64_t column, int64_t k)
{
    return k - column < PIECE_CHUNK ? k - column : PIECE_CHUNK;
}

static int32_t chunk_amax_finite(const float x[PIECE_CHUNK])
{
    int32_t amax = 0;
    for (int i = 0; i < PIECE_CHUNK; i += PIECE) {
        const int32_t piece = piece_amax_finite(x + i);
        amax = piece > amax ? piece : amax;
    }
    return amax;
}

/* The scale for a largest finite magnitude, given as a bit pattern. */
static float scale_for(const halfbyte_activation_quantization *a, int32_t amax_bits)
{
    const float amax = float_from_bits((uint32_t)amax_bits);
    return scale_of(max_nan(amax, a->epsilon), E4M3_LARGEST, a->flags);
}

/* Divides and stores count values of a row; x holds them, widened. */
static void chunk_store(uint8_t *dst, const float x[PIECE_CHUNK], int64_t count, float scale)
{
    uint8_t q[PIECE_CHUNK];

    for (int i = 0; i < PIECE_CHUNK; i += PIECE) {
        piece_to_e4m3(q + i, x + i, scale);
    }
    memcpy(dst, q, (size_t)count);
}

static int32_t row_amax_finite(const halfbyte_activation_quantization *a, int64_t row)
{
    float x[PIECE_CHUNK];
    int32_t amax = 0;

    for (int64_t column = 0; column < a->k; column += PIECE_CHUNK) {
        chunk_load(x, source_at(a, row, column), a->src_type, count_at(column, a->k));
        const int32_t chunk = chunk_amax_finite(x);
        amax = chunk > amax ? chunk : amax;
    }
    return amax;
}

static void row_store(const halfbyte_activation_quantization *a, int64_t row, float scale)
{
    float x[PIECE_CHUNK];

    for (int64_t column = 0; column < a->k; column += PIECE_CHUNK) {
        const int64_t count = count_at(column, a->k);
        chunk_load(x, source_at(a, row, column), a->src_type, count);
        chunk_store(destination_at(a, row, column), x, count, scale);
    }
}

/* 1X128: a scale of its own for each chunk. */
static void row_store_blocks(const halfbyte_activation_quantization *a, int64_t row)
{
    float x[PIECE_CHUNK];
    float *scales = a->scale.data;
    const bool k_major = a->layout == HALFBYTE_SCALE_K_MAJOR;

    for (int64_t column = 0; column < a->k; column += PIECE_CHUNK) {
        const int64_t count = count_at(column, a->k), block = column / PIECE_CHUNK;
        chunk_load(x, source_at(a, row, column), a->src_type, count);
        const float scale = scale_for(a, chunk_amax_finite(x));
        chunk_store(destination_at(a, row, column), x, count, scale);
        scales[k_major ? row * a->scale.stride_mn + block : row + block * a->scale.stride_k] =
            scale;
    }
}

static int64_t task_row_end(const activation_job *job, int64_t task)
{
    const int64_t end = (task + 1) * job->rows_per_task, m = job->arguments->m;
    return end < m ? end : m;
}

static void task_amax(void *context, int64_t task)
{
    activation_job *job = context;
    int_least32_t amax = 0;

    for (int64_t row = task * job->rows_per_task; row < task_row_end(job, task); row++) {
        const int32_t in_row = row_amax_finite(job->arguments, row);
        amax = in_row > amax ? in_row : amax;
    }
    int_least32_t known = atomic_load_explicit(&job->amax, memory_order_relaxed);
    while (known < amax &&
           !atomic_compare_exchange_weak_explicit(&job->amax, &known, amax, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* Task 0 runs even if there are no rows, and then still stores a computed TENSOR scale. */
static void task_store(void *context, int64_t task)
{
    activation_job *job = context;
    const halfbyte_activation_quantization *a = job->arguments;
    const bool is_static = (a->flags & HALFBYTE_QUANTIZE_STATIC) != 0;
    float *scales = a->scale.data;
    float scale = 0.0f;

    if (a->mode == HALFBYTE_SCALE_TENSOR) {
        scale = is_static ? scales[0]
                          : scale_for(a, atomic_load_explicit(&job->amax, memory_order_relaxed));
        if (task == 0 && !is_static) {
            scales[0] = scale;
        }
    }
    for (int64_t row = task * job->rows_per_task; row < task_row_end(job, task); row++) {
        switch (a->mode) {
        case HALFBYTE_SCALE_1X128: row_store_blocks(a, row); break;
        case HALFBYTE_SCALE_OUTER:
            scale = scale_for(a, row_amax_finite(a, row));
            scales[row] = scale;
            row_store(a, row, scale);
            break;
        default: /* TENSOR */ row_store(a, row, scale); break;
        }
    }
}

void quantize_activations(const halfbyte_activation_quantization *arguments, parallel_pool *pool)
{
    const halfbyte_activation_quantization *a = arguments;
    activation_job job = {.arguments = a, .rows_per_task = 1};

    atomic_init(&job.amax, 0);
    if (a->k < TASK_ELEMENTS) {
        job.rows_per_task = TASK_ELEMENTS / (a->k + 1) + 1;
    }
    const int64_t tasks = (a->m + job.rows_per_task - 1) / job.rows_per_task;

    /* All arithmetic is done inside tasks, where parallel_for has set the environment. */
    if (a->mode == HALFBYTE_SCALE_TENSOR && (a->flags & HALFBYTE_QUANTIZE_STATIC) == 0) {
        parallel_for(pool, tasks, task_amax, &job);
    }
    parallel_for(pool, tasks > 0 ? tasks : 1, task_store, &job);
}
