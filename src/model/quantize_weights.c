/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights to int4 with group scales or to e4m3 with 128x128 scales.
 *
 * A task is one row (int4) or one row of blocks (e4m3) of one group.  Since nothing may be written
 * when a weight is not finite or a scale is not representable, the work is done twice: first all
 * scales are computed and only judged, then they are computed again and written.
 */
#include "model/quantize.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "model/quantize_piece.h"
#include "model/weight_address.h"

typedef struct weight_job {
    const halfbyte_weight_quantization *arguments;
    int64_t units;                  /* tasks a group: rows, or rows of blocks */
    atomic_int_least64_t first_bad; /* lowest task with a fault so far */
} weight_job;

static int32_t maximum(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int64_t chunks_of(int64_t k)
{
    return (k + PIECE_CHUNK - 1) / PIECE_CHUNK;
}

static int64_t chunk_count(int64_t chunk, int64_t k)
{
    return minimum(PIECE_CHUNK, k - chunk * PIECE_CHUNK);
}

static void chunk_load_at(float x[PIECE_CHUNK], const halfbyte_weight_quantization *a,
                          int64_t group, int64_t row, int64_t chunk)
{
    const int64_t index = group * a->src.group_stride + row * a->src.ld + chunk * PIECE_CHUNK;
    const void *source = (const char *)a->src.data + index * source_bytes(a->src_type);

    chunk_load(x, source, a->src_type, chunk_count(chunk, a->k));
}

/* ---- scales ---------------------------------------------------------------------------------- */

static void scale_write(const halfbyte_weight_quantization *a, int64_t index, float scale)
{
    if (a->scale_type == HALFBYTE_TYPE_F32) {
        ((float *)a->scale.data)[index] = scale;
    } else {
        ((uint16_t *)a->scale.data)[index] =
            a->scale_type == HALFBYTE_TYPE_BF16 ? cvt_bf16(scale) : cvt_f16(scale);
    }
}

/* The scale that stands in the tensor, widened: what the quotients are made with. */
static float scale_rounded(const halfbyte_weight_quantization *a, int32_t amax_bits)
{
    const float amax = float_from_bits((uint32_t)amax_bits);

    if (a->type == HALFBYTE_TYPE_E4M3) {
        return amax_bits == 0 ? 1.0f : scale_of(amax, 448.0f, a->flags);
    }
    const float scale = scale_of(amax, 7.0f, a->flags);
    if (a->scale_type == HALFBYTE_TYPE_BF16) {
        return bf16_decode(cvt_bf16(scale));
    }
    return a->scale_type == HALFBYTE_TYPE_F16 ? fp16_decode(cvt_f16(scale)) : scale;
}

static quantize_fault_kind scale_judge(const halfbyte_weight_quantization *a, int32_t amax_bits)
{
    if (amax_bits >= (int32_t)FLOAT_BITS_INF) {
        return QUANTIZE_NOT_FINITE;
    }
    const uint32_t scale = bits_from_float(scale_rounded(a, amax_bits));
    if (scale == FLOAT_BITS_INF) {
        return QUANTIZE_SCALE_INFINITE;
    }
    return scale == 0 && amax_bits != 0 ? QUANTIZE_SCALE_ZERO : QUANTIZE_NO_FAULT;
}

/* ---- int4 ------------------------------------------------------------------------------------ */

/* Scales of a chunk of one row, by 32 columns; groups of 64 and 128 have equal neighbours. */
typedef struct chunk_amax {
    int32_t piece[PIECE_PER_BLOCK];
} chunk_amax;

/* 32-column pieces to a weight group inside a chunk: 1, 2 or 4. */
static int pieces_per_group(const halfbyte_weight_quantization *a)
{
    return (int)(a->weight_group_size / PIECE);
}

/* The largest magnitude of each weight group in a chunk, under each of its pieces. */
static chunk_amax int4_chunk_amax(const halfbyte_weight_quantization *a, const float x[PIECE_CHUNK])
{
    const int width = pieces_per_group(a);
    chunk_amax amax;

    for (int i = 0; i < PIECE_PER_BLOCK; i++) {
        amax.piece[i] = piece_amax(x + i * PIECE);
    }
    for (int i = 0; i < PIECE_PER_BLOCK; i++) {
        for (int j = i / width * width; j < (i / width + 1) * width; j++) {
            amax.piece[i] = maximum(amax.piece[i], amax.piece[j]);
        }
    }
    return amax;
}

/* One group for all of k: the largest magnitude of the row. */
static int32_t row_amax(const halfbyte_weight_quantization *a, int64_t group, int64_t row)
{
    float x[PIECE_CHUNK];
    int32_t amax = 0;

    for (int64_t chunk = 0; chunk < chunks_of(a->k); chunk++) {
        chunk_load_at(x, a, group, row, chunk);
        for (int i = 0; i < PIECE_CHUNK; i += PIECE) {
            amax = maximum(amax, piece_amax(x + i));
        }
    }
    return amax;
}

/* The first scale of a row that cannot be (NOT_FINITE too); found.column says where. */
static quantize_fault int4_row_judge(const halfbyte_weight_quantization *a, int64_t group,
                                     int64_t row)
{
    quantize_fault found = {.kind = QUANTIZE_NO_FAULT, .group = group, .row = row};
    float x[PIECE_CHUNK];

    if (a->weight_group_size == 0) {
        const int32_t amax = row_amax(a, group, row);
        found.kind = scale_judge(a, amax);
        found.magnitude = float_from_bits((uint32_t)amax);
        return found;
    }
    for (int64_t chunk = 0; chunk < chunks_of(a->k); chunk++) {
        chunk_load_at(x, a, group, row, chunk);
        const chunk_amax amax = int4_chunk_amax(a, x);
        for (int i = 0; i < PIECE_PER_BLOCK; i += pieces_per_group(a)) {
            found.kind = scale_judge(a, amax.piece[i]); /* beyond k all is zero: no fault */
            if (found.kind != QUANTIZE_NO_FAULT) {
                found.column = chunk * PIECE_CHUNK + i * PIECE;
                found.magnitude = float_from_bits((uint32_t)amax.piece[i]);
                return found;
            }
        }
    }
    return found;
}

/* Stores count values; a scale of 0 stands for zeros alone. */
static void int4_chunk_store(uint8_t *dst, const float x[PIECE_CHUNK], int64_t count,
                             const float scales[PIECE_PER_BLOCK])
{
    uint8_t q[PIECE_CHUNK / 2];

    for (int i = 0; i < PIECE_PER_BLOCK; i++) {
        uint8_t *piece = q + i * (PIECE / 2);
        if (scales[i] == 0.0f) {
            memset(piece, 0, PIECE / 2);
        } else {
            piece_to_int4(piece, x + i * PIECE, scales[i]);
        }
    }
    memcpy(dst, q, (size_t)((count + 1) / 2)); /* beyond k, x and so the nibble are zero */
}

static void int4_row_store(const halfbyte_weight_quantization *a, int64_t group, int64_t row)
{
    uint8_t *dst = weight_int4_row(a, group, row);
    float scales[PIECE_PER_BLOCK] = {0}, x[PIECE_CHUNK];

    if (a->weight_group_size == 0) {
        const float scale = scale_rounded(a, row_amax(a, group, row));
        scale_write(a, weight_scale_index(a, group, row, 0), scale);
        for (int i = 0; i < PIECE_PER_BLOCK; i++) {
            scales[i] = scale;
        }
    }
    for (int64_t chunk = 0; chunk < chunks_of(a->k); chunk++) {
        const int64_t begin = chunk * PIECE_CHUNK;
        chunk_load_at(x, a, group, row, chunk);
        if (a->weight_group_size != 0) {
            const chunk_amax amax = int4_chunk_amax(a, x);
            for (int i = 0; i < PIECE_PER_BLOCK; i++) {
                const int64_t column = begin + i * PIECE;
                scales[i] = scale_rounded(a, amax.piece[i]);
                if (column < a->k && column % a->weight_group_size == 0) {
                    scale_write(a, weight_scale_index(a, group, row, column / a->weight_group_size),
                                scales[i]);
                }
            }
        }
        int4_chunk_store(dst + begin / 2, x, chunk_count(chunk, a->k), scales);
    }
}

/* ---- e4m3 ------------------------------------------------------------------------------------ */

static int64_t block_row_end(const halfbyte_weight_quantization *a, int64_t block_row)
{
    return minimum((block_row + 1) * QUANTIZE_BLOCK, a->n);
}

static int32_t block_amax(const halfbyte_weight_quantization *a, int64_t group, int64_t block_row,
                          int64_t chunk)
{
    float x[PIECE_CHUNK];
    int32_t amax = 0;

    for (int64_t row = block_row * QUANTIZE_BLOCK; row < block_row_end(a, block_row); row++) {
        chunk_load_at(x, a, group, row, chunk);
        for (int i = 0; i < PIECE_CHUNK; i += PIECE) {
            amax = maximum(amax, piece_amax(x + i));
        }
    }
    return amax;
}

static quantize_fault e4m3_blocks_judge(const halfbyte_weight_quantization *a, int64_t group,
                                        int64_t block_row)
{
    quantize_fault found = {
        .kind = QUANTIZE_NO_FAULT, .group = group, .row = block_row * QUANTIZE_BLOCK};

    for (int64_t chunk = 0; chunk < chunks_of(a->k); chunk++) {
        const int32_t amax = block_amax(a, group, block_row, chunk);
        found.kind = scale_judge(a, amax);
        if (found.kind != QUANTIZE_NO_FAULT) {
            found.column = chunk * PIECE_CHUNK;
            found.magnitude = float_from_bits((uint32_t)amax);
            break;
        }
    }
    return found;
}

static void e4m3_blocks_store(const halfbyte_weight_quantization *a, int64_t group,
                              int64_t block_row)
{
    float x[PIECE_CHUNK];
    uint8_t q[PIECE_CHUNK];

    for (int64_t chunk = 0; chunk < chunks_of(a->k); chunk++) {
        const float scale = scale_rounded(a, block_amax(a, group, block_row, chunk));
        scale_write(a, weight_scale_index(a, group, block_row, chunk), scale);
        for (int64_t row = block_row * QUANTIZE_BLOCK; row < block_row_end(a, block_row); row++) {
            chunk_load_at(x, a, group, row, chunk);
            for (int i = 0; i < PIECE_CHUNK; i += PIECE) {
                piece_to_e4m3(q + i, x + i, scale);
            }
            memcpy((uint8_t *)a->dst.data + group * a->dst.group_stride + row * a->dst.ld +
                       chunk * PIECE_CHUNK,
                   q, (size_t)chunk_count(chunk, a->k));
        }
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static quantize_fault task_fault(const weight_job *job, int64_t task)
{
    const int64_t group = task / job->units, unit = task % job->units;
    return job->arguments->type == HALFBYTE_TYPE_INT4
               ? int4_row_judge(job->arguments, group, unit)
               : e4m3_blocks_judge(job->arguments, group, unit);
}

static void task_judge(void *context, int64_t task)
{
    weight_job *job = context;
    int_least64_t known = atomic_load_explicit(&job->first_bad, memory_order_relaxed);

    if (task >= known || task_fault(job, task).kind == QUANTIZE_NO_FAULT) {
        return;
    }
    while (task < known &&
           !atomic_compare_exchange_weak_explicit(&job->first_bad, &known, task,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void task_store(void *context, int64_t task)
{
    const weight_job *job = context;
    const int64_t group = task / job->units, unit = task % job->units;

    if (job->arguments->type == HALFBYTE_TYPE_INT4) {
        int4_row_store(job->arguments, group, unit);
    } else {
        e4m3_blocks_store(job->arguments, group, unit);
    }
}

/* The first weight that is not finite in the rows of a task, if there is one. */
static void fault_locate_weight(const weight_job *job, quantize_fault *fault)
{
    const halfbyte_weight_quantization *a = job->arguments;
    const int64_t row_end = a->type == HALFBYTE_TYPE_INT4
                                ? fault->row + 1
                                : block_row_end(a, fault->row / QUANTIZE_BLOCK);
    float x[PIECE_CHUNK];

    for (int64_t row = fault->row; row < row_end; row++) {
        for (int64_t chunk = 0; chunk < chunks_of(a->k); chunk++) {
            chunk_load_at(x, a, fault->group, row, chunk);
            for (int i = 0; i < PIECE_CHUNK; i++) {
                if ((bits_from_float(x[i]) & FLOAT_BITS_INF) == FLOAT_BITS_INF) {
                    *fault = (quantize_fault){QUANTIZE_NOT_FINITE, fault->group, row,
                                              chunk * PIECE_CHUNK + i, x[i]};
                    return;
                }
            }
        }
    }
}

typedef struct fault_job {
    const weight_job *weights;
    quantize_fault fault;
} fault_job;

/* As a task of its own, so that the scales are judged in the environment that found the fault. */
static void task_locate(void *context, int64_t task)
{
    fault_job *job = context;
    (void)task;
    job->fault = task_fault(job->weights,
                            atomic_load_explicit(&job->weights->first_bad, memory_order_relaxed));
    fault_locate_weight(job->weights, &job->fault);
}

quantize_fault quantize_weights(const halfbyte_weight_quantization *arguments, parallel_pool *pool)
{
    const bool int4 = arguments->type == HALFBYTE_TYPE_INT4;
    weight_job job = {.arguments = arguments};

    job.units = int4 ? arguments->n : (arguments->n + QUANTIZE_BLOCK - 1) / QUANTIZE_BLOCK;
    const int64_t tasks = arguments->k > 0 ? arguments->groups * job.units : 0;

    atomic_init(&job.first_bad, tasks);
    parallel_for(pool, tasks, task_judge, &job);
    if (atomic_load(&job.first_bad) < tasks) {
        fault_job located = {.weights = &job};
        parallel_for(NULL, 1, task_locate, &located);
        return located.fault;
    }
    parallel_for(pool, tasks, task_store, &job);
    return (quantize_fault){.kind = QUANTIZE_NO_FAULT};
}
