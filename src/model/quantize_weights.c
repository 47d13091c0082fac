/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights to int4 with group scales or to e4m3 with 128x128 scales, and back to f32.
 *
 * A task is one row (int4) or one row of blocks (e4m3) of one group.  Since nothing may be written
 * when a weight is not finite or a scale is not representable, the work is done twice: first all
 * scales are computed and only judged, then they are computed again and written.
 */
#include "model/quantize.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "format/int4.h"
#include "model/quantize_piece.h"

typedef struct weight_job {
    const halfbyte_weight_quantization *arguments;
    const halfbyte_matrix_out *out; /* dequantising */
    int64_t units;                  /* tasks a group: rows, or rows of blocks */
    atomic_int_least64_t first_bad; /* lowest task with a fault so far */
} weight_job;

/* Chunks [begin, end) of a row, 128 columns each, share their scales with no other chunks. */
typedef struct chunk_range {
    int64_t begin, end;
} chunk_range;

/* The scales of one chunk of one row, of each 32 columns (several alike if groups are larger). */
typedef struct chunk_scales {
    float piece[PIECE_PER_BLOCK];
} chunk_scales;

static int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
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

static uint8_t *int4_row_at(const halfbyte_weight_quantization *a, int64_t group, int64_t row)
{
    return (uint8_t *)a->dst.data + (group * a->dst.group_stride + row * a->dst.ld) / 2;
}

/* ---- scales ---------------------------------------------------------------------------------- */

/* Index in the scale tensor of (mn, kb) of a group. */
static int64_t scale_index(const halfbyte_weight_quantization *a, int64_t group, int64_t mn,
                           int64_t kb)
{
    const int64_t base = group * a->scale.group_stride;
    return a->layout == HALFBYTE_SCALE_K_MAJOR ? base + mn * a->scale.stride_mn + kb
                                               : base + mn + kb * a->scale.stride_k;
}

static void scale_write(const halfbyte_weight_quantization *a, int64_t index, float scale)
{
    if (a->scale_type == HALFBYTE_TYPE_F32) {
        ((float *)a->scale.data)[index] = scale;
    } else {
        ((uint16_t *)a->scale.data)[index] =
            a->scale_type == HALFBYTE_TYPE_BF16 ? cvt_bf16(scale) : cvt_f16(scale);
    }
}

static float scale_read(const halfbyte_weight_quantization *a, int64_t index)
{
    if (a->scale_type == HALFBYTE_TYPE_F32) {
        return ((const float *)a->scale.data)[index];
    }
    const uint16_t code = ((const uint16_t *)a->scale.data)[index];
    return a->scale_type == HALFBYTE_TYPE_BF16 ? bf16_decode(code) : fp16_decode(code);
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

/* Columns of a weight group. */
static int64_t group_columns(const halfbyte_weight_quantization *a)
{
    return a->weight_group_size != 0 ? a->weight_group_size : a->k;
}

/*
 * The largest magnitude of the weight group that begins at `column` of a row.  x holds the chunk of
 * that column when groups lie inside chunks, else it is scratch.
 */
static int32_t int4_group_amax(const halfbyte_weight_quantization *a, int64_t group, int64_t row,
                               int64_t column, float x[PIECE_CHUNK])
{
    int32_t amax = 0;

    if (a->weight_group_size != 0) {
        const int64_t begin = column % PIECE_CHUNK;
        for (int64_t i = begin; i < begin + a->weight_group_size; i += PIECE) {
            const int32_t piece = piece_amax(x + i);
            amax = piece > amax ? piece : amax;
        }
        return amax;
    }
    for (int64_t chunk = 0; chunk < chunks_of(a->k); chunk++) {
        chunk_load_at(x, a, group, row, chunk);
        for (int i = 0; i < PIECE_CHUNK; i += PIECE) {
            const int32_t piece = piece_amax(x + i);
            amax = piece > amax ? piece : amax;
        }
    }
    return amax;
}

/* The first scale of a row that cannot be, or weight that is not finite; *column says where. */
static quantize_fault_kind int4_row_judge(const halfbyte_weight_quantization *a, int64_t group,
                                          int64_t row, int64_t *column, int32_t *amax)
{
    const int64_t step = group_columns(a);
    float x[PIECE_CHUNK];

    for (*column = 0; *column < a->k; *column += step) {
        if (a->weight_group_size != 0 && *column % PIECE_CHUNK == 0) {
            chunk_load_at(x, a, group, row, *column / PIECE_CHUNK);
        }
        *amax = int4_group_amax(a, group, row, *column, x);
        const quantize_fault_kind kind = scale_judge(a, *amax);
        if (kind != QUANTIZE_NO_FAULT) {
            return kind;
        }
    }
    return QUANTIZE_NO_FAULT;
}

/* Stores count values; a scale of 0 stands for 32 zeros. */
static void int4_chunk_store(uint8_t *dst, const float x[PIECE_CHUNK], int64_t count,
                             const chunk_scales *scales)
{
    uint8_t q[PIECE_CHUNK / 2];

    for (int i = 0; i < PIECE_PER_BLOCK; i++) {
        uint8_t *piece = q + i * (PIECE / 2);
        if (scales->piece[i] == 0.0f) {
            memset(piece, 0, PIECE / 2);
        } else {
            piece_to_int4(piece, x + i * PIECE, scales->piece[i]);
        }
    }
    memcpy(dst, q, (size_t)((count + 1) / 2));
}

static void int4_row_store(const halfbyte_weight_quantization *a, int64_t group, int64_t row)
{
    const int64_t step = group_columns(a);
    uint8_t *dst = int4_row_at(a, group, row);
    chunk_scales scales = {{0}};
    float x[PIECE_CHUNK];

    for (int64_t chunk = 0; chunk < chunks_of(a->k); chunk++) {
        const int64_t begin = chunk * PIECE_CHUNK, count = chunk_count(chunk, a->k);
        chunk_load_at(x, a, group, row, chunk);
        for (int i = 0; i < PIECE_PER_BLOCK && begin + i * PIECE < a->k; i++) {
            const int64_t column = begin + i * PIECE;
            if (column % step == 0) {
                const float scale =
                    scale_rounded(a, int4_group_amax(a, group, row, column, x));
                scale_write(a, scale_index(a, group, row, column / step), scale);
                for (int later = i; later < PIECE_PER_BLOCK; later++) {
                    scales.piece[later] = scale;
                }
                if (a->weight_group_size == 0) {
                    chunk_load_at(x, a, group, row, chunk);
                }
            }
        }
        int4_chunk_store(dst + begin / 2, x, count, &scales);
    }
}
