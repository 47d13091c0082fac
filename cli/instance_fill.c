/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of an instance: random tensors, or activations quantised as the problem says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "instance.h"
#include "random.h"

/* Values converted at a time; bytes after which QUICK tensors repeat themselves, about. */
enum { CHUNK = 1024, QUICK_BYTES = 1 << 22 };

/* ---- random ---------------------------------------------------------------------------------- */

/* A finite e4m3 code: 0x7f and 0xff, the NaN codes, become zero. */
static uint8_t finite_code(uint64_t bits)
{
    uint8_t code = (uint8_t)bits;
    return (code & 0x7f) == 0x7f ? 0 : code;
}

/* One e4m3 code. SPECIAL puts a NaN into about one row in eight. */
static uint8_t random_code(uint64_t bits, flavour kind, int64_t row_elems)
{
    if (kind == FLAVOUR_SPECIAL && (bits >> 32) % (uint64_t)(8 * row_elems) == 0)
        return bits & 1 ? 0x7f : 0xff;
    return finite_code(bits);
}

static int fill_codes_plain(uint8_t *row, int64_t count, uint64_t seed, random_stream stream,
                            uint64_t first)
{
    float values[CHUNK];
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t now = count - at < CHUNK ? count - at : CHUNK;
        for (int64_t i = 0; i < now; ++i)
            values[i] = 100 * random_normal(random_bits(seed, stream, first + (uint64_t)(at + i)));
        halfbyte_status status =
            halfbyte_convert(row + at, HALFBYTE_TYPE_E4M3, values, HALFBYTE_TYPE_F32, now);
        if (status != HALFBYTE_SUCCESS)
            return cli_fail_status(status, "random numbers");
    }
    return CLI_OK;
}

/* e4m3 [rows, k] in rows of ld; what lies between k and ld is filled with NaN codes, which nobody
 * may read. */
static int fill_codes(uint8_t *data, int64_t rows, int64_t k, int64_t ld, uint64_t seed,
                      random_stream stream, flavour kind)
{
    int code = CLI_OK;
    /* An odd number of rows, so that no tile begins with the one before. */
    const int64_t distinct = kind == FLAVOUR_QUICK && ld > 0 ? QUICK_BYTES / ld | 1 : rows;
    for (int64_t row = 0; code == CLI_OK && row < rows; ++row) {
        uint8_t *at = data + row * ld;
        uint64_t first = (uint64_t)(row * k);
        if (row >= distinct) {
            memcpy(at, at - distinct * ld, (size_t)ld);
            continue;
        }
        memset(at + k, 0x7f, (size_t)(ld - k));
        if (kind == FLAVOUR_PLAIN || kind == FLAVOUR_QUICK) {
            code = fill_codes_plain(at, k, seed, stream, first);
            continue;
        }
        for (int64_t i = 0; i < k; ++i)
            at[i] = random_code(random_bits(seed, stream, first + (uint64_t)i), kind, k);
    }
    return code;
}

/* 0 in place of each nibble that is 8, which stands for -8. */
static uint8_t without_minus8(uint8_t two)
{
    two = (two & 0x0f) == 0x08 ? two & 0xf0 : two;
    return (two & 0xf0) == 0x80 ? two & 0x0f : two;
}

/* int4 [rows, k], two a byte; any byte is two valid weights. */
static void fill_nibbles(uint8_t *data, int64_t rows, int64_t ld, uint64_t seed, flavour kind)
{
    const int64_t bytes = rows * (ld / 2);
    const int64_t distinct = kind == FLAVOUR_QUICK ? QUICK_BYTES + 1 : bytes;
    for (int64_t i = 0; i < bytes && i < distinct; ++i) {
        data[i] = (uint8_t)random_bits(seed, RANDOM_B, (uint64_t)i);
        if (kind == FLAVOUR_QUICK)
            data[i] = without_minus8(data[i]);
    }
    for (int64_t i = distinct; i < bytes; i += distinct)
        memcpy(data + i, data + i - distinct,
               (size_t)(bytes - i < distinct ? bytes - i : distinct));
}

static float random_scale(uint64_t bits, flavour kind, float typical)
{
    float value = typical * (1 + (float)(bits & 0xffff) / 65536.0f);
    if (kind == FLAVOUR_PLAIN || kind == FLAVOUR_QUICK)
        return value;
    uint32_t choice = (uint32_t)(bits >> 16 & 0xffff);
    if (kind == FLAVOUR_SPECIAL && choice % 64 == 1)
        return choice & 1024 ? NAN : choice & 2048 ? INFINITY : -INFINITY;
    if (choice % 16 == 0)
        return choice & 1024 ? 0.0f : -0.0f;
    value = ldexpf(value, (int)(bits >> 32 & 15) - 8);
    return bits >> 40 & 1 ? -value : value;
}

static int fill_scales(void *data, halfbyte_type type, uint64_t count, uint64_t seed,
                       random_stream stream, flavour kind, float typical)
{
    float values[CHUNK];
    halfbyte_type to = type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : type;
    size_t bytes = (size_t)halfbyte_type_bits(to) / 8;
    for (uint64_t at = 0; at < count; at += CHUNK) {
        uint64_t now = count - at < CHUNK ? count - at : CHUNK;
        for (uint64_t i = 0; i < now; ++i)
            values[i] = random_scale(random_bits(seed, stream, at + i), kind, typical);
        halfbyte_status status = halfbyte_convert((char *)data + at * bytes, to, values,
                                                  HALFBYTE_TYPE_F32, (int64_t)now);
        if (status != HALFBYTE_SUCCESS)
            return cli_fail_status(status, "random numbers");
    }
    return CLI_OK;
}

int instance_randomize_weights(instance *made, uint64_t seed, flavour kind)
{
    const halfbyte_problem *problem = &made->problem;
    int64_t ld = made->operands.b.ld;
    int64_t rows = made->groups * made->n;
    uint64_t scales = (uint64_t)(made->groups * made->b_extent.mn * made->b_extent.kb);
    uint64_t outputs =
        problem->c_type != HALFBYTE_TYPE_NONE ? (uint64_t)(made->a_rows * made->n) : 0;
    int code = CLI_OK;
    if (problem->family == HALFBYTE_FAMILY_W4A8)
        fill_nibbles(made->b, rows, ld, seed, kind);
    else
        code = fill_codes(made->b, rows, made->k, ld, seed, RANDOM_B, kind);
    if (code == CLI_OK)
        code = fill_scales(made->b_scale, problem->b_scale.type, scales, seed, RANDOM_B_SCALE, kind,
                           0.0625f);
    if (code == CLI_OK)
        code = fill_scales(made->channel_scale, HALFBYTE_TYPE_F32, (uint64_t)rows, seed,
                           RANDOM_CHANNEL_SCALE, kind, 0.5f);
    if (code == CLI_OK)
        code = fill_scales(made->bias, problem->bias_type, (uint64_t)rows, seed, RANDOM_BIAS, kind,
                           1.0f);
    if (code == CLI_OK)
        code = fill_scales(made->c, problem->c_type, outputs, seed, RANDOM_C, kind, 1.0f);
    made->operands.alpha = problem->alpha_mode == HALFBYTE_ALPHA_NONE ? 1 : 1.5f;
    made->operands.beta = problem->c_type == HALFBYTE_TYPE_NONE ? 0 : 0.75f;
    return code;
}

int instance_randomize_activations(instance *made, uint64_t seed, flavour kind)
{
    int64_t groups = made->problem.grouping == HALFBYTE_GROUPING_MASKED ? made->groups : 1;
    uint64_t scales = (uint64_t)(groups * made->a_extent.mn * made->a_extent.kb);
    int code =
        fill_codes(made->a, made->a_rows, made->k, made->operands.a.ld, seed, RANDOM_A, kind);
    if (code != CLI_OK)
        return code;
    return fill_scales(made->a_scale, HALFBYTE_TYPE_F32, scales, seed, RANDOM_A_SCALE, kind,
                       0.0078125f);
}

/* ---- quantised activations ------------------------------------------------------------------- */

/* Moves the quantised owned rows to where the grouping has them. */
static void scatter(instance *made, const uint8_t *codes, const float *scales)
{
    const halfbyte_scale_spec *spec = &made->problem.a_scale;
    bool masked = made->problem.grouping == HALFBYTE_GROUPING_MASKED;
    int64_t ld = made->operands.a.ld;
    int64_t kb = made->a_extent.kb;
    for (int64_t row = 0; row < made->owned_rows; ++row) {
        int64_t to = made->owned[row];
        int64_t group = masked ? made->owner[row] : 0;
        memcpy(made->a + to * ld, codes + row * ld, (size_t)made->k);
        if (spec->mode == HALFBYTE_SCALE_NONE || spec->mode == HALFBYTE_SCALE_TENSOR)
            continue;
        int64_t base = group * made->a_extent.mn * kb;
        for (int64_t block = 0; block < kb; ++block)
            made->a_scale[base + scale_position(spec, &made->a_extent, to - group * made->m,
                                                block)] = scales[row * kb + block];
    }
    if (spec->mode == HALFBYTE_SCALE_TENSOR)
        made->a_scale[0] = scales[0];
}

int instance_set_activations(instance *made, halfbyte_device *device, const float *values,
                             float static_scale)
{
    const halfbyte_scale_spec *spec = &made->problem.a_scale;
    halfbyte_activation_quantization job = halfbyte_activation_quantization_init();
    int64_t ld = made->operands.a.ld;
    int64_t kb = made->a_extent.kb;
    uint8_t *codes = cli_alloc((uint64_t)made->owned_rows * (uint64_t)ld, 1);
    float *scales = cli_alloc((uint64_t)made->owned_rows * (uint64_t)kb + 1, sizeof *scales);
    if (codes == NULL || scales == NULL) {
        free(codes);
        free(scales);
        return cli_fail_memory((uint64_t)made->owned_rows * (uint64_t)ld);
    }
    job.mode = spec->mode;
    job.layout = HALFBYTE_SCALE_K_MAJOR;
    job.src_type = HALFBYTE_TYPE_F32;
    job.flags = static_scale > 0 ? HALFBYTE_QUANTIZE_STATIC : 0;
    job.m = made->owned_rows;
    job.k = made->k;
    job.src = (halfbyte_matrix_in){values, made->k, 0};
    job.dst = (halfbyte_matrix_out){codes, ld, 0};
    job.scale = (halfbyte_scale_out){scales, spec->mode == HALFBYTE_SCALE_1X128 ? kb : 1, 1, 0};
    if (static_scale > 0)
        scales[0] = static_scale;
    halfbyte_status status = HALFBYTE_SUCCESS;
    if (spec->mode != HALFBYTE_SCALE_NONE) {
        status = halfbyte_quantize_activations(device, &job, NULL);
    } else {
        for (int64_t row = 0; status == HALFBYTE_SUCCESS && row < made->owned_rows; ++row)
            status = halfbyte_convert(codes + row * ld, HALFBYTE_TYPE_E4M3, values + row * made->k,
                                      HALFBYTE_TYPE_F32, made->k);
    }
    if (status == HALFBYTE_SUCCESS)
        scatter(made, codes, scales);
    free(codes);
    free(scales);
    return status == HALFBYTE_SUCCESS ? CLI_OK
                                      : cli_fail_status(status, "cannot quantise the activations");
}
