/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised weights back to f32, a row a task. */
#include "format/int4.h"
#include "model/arith.h"
#include "model/quantize.h"
#include "model/weight_address.h"

typedef struct dequantize_job {
    const halfbyte_weight_quantization *arguments;
    const halfbyte_matrix_out *out;
} dequantize_job;

static float scale_read(const halfbyte_weight_quantization *a, int64_t index)
{
    if (a->scale_type == HALFBYTE_TYPE_F32) {
        return ((const float *)a->scale.data)[index];
    }
    const uint16_t code = ((const uint16_t *)a->scale.data)[index];
    return a->scale_type == HALFBYTE_TYPE_BF16 ? bf16_decode(code) : fp16_decode(code);
}

static void int4_row_dequantize(const halfbyte_weight_quantization *a, int64_t group, int64_t row,
                                float *out)
{
    const uint8_t *q = weight_int4_row(a, group, row);
    const int64_t step = a->weight_group_size != 0 ? a->weight_group_size : a->k;

    for (int64_t begin = 0; begin < a->k; begin += step) {
        const float scale = scale_read(a, weight_scale_index(a, group, row, begin / step));
        for (int64_t i = begin; i < minimum(begin + step, a->k); i++) {
            out[i] = mul_rn((float)int4_get(q, i), scale);
        }
    }
}

static void e4m3_row_dequantize(const halfbyte_weight_quantization *a, int64_t group, int64_t row,
                                float *out)
{
    const uint8_t *q = (const uint8_t *)a->dst.data + group * a->dst.group_stride + row * a->dst.ld;

    for (int64_t begin = 0; begin < a->k; begin += QUANTIZE_BLOCK) {
        const float scale = scale_read(
            a, weight_scale_index(a, group, row / QUANTIZE_BLOCK, begin / QUANTIZE_BLOCK));
        for (int64_t i = begin; i < minimum(begin + QUANTIZE_BLOCK, a->k); i++) {
            out[i] = mul_rn(e4m3_decode(q[i]), scale);
        }
    }
}

static void task_dequantize(void *context, int64_t task)
{
    const dequantize_job *job = context;
    const int64_t group = task / job->arguments->n, row = task % job->arguments->n;
    float *out = (float *)job->out->data + group * job->out->group_stride + row * job->out->ld;

    if (job->arguments->type == HALFBYTE_TYPE_INT4) {
        int4_row_dequantize(job->arguments, group, row, out);
    } else {
        e4m3_row_dequantize(job->arguments, group, row, out);
    }
}

void dequantize_weights(const halfbyte_weight_quantization *arguments,
                        const halfbyte_matrix_out *out, parallel_pool *pool)
{
    dequantize_job job = {.arguments = arguments, .out = out};

    if (arguments->k > 0) {
        parallel_for(pool, arguments->groups * arguments->n, task_dequantize, &job);
    }
}
