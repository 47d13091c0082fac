/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/quantize_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bits.h"
#include "format/half.h"

enum { GUARD = 256, POISON = 0xa5, BLOCK = 128 };

static void *image_allocate(size_t bytes)
{
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (memory == NULL) {
        fputs("quantize_case: no memory\n", stderr);
        exit(2);
    }
    memset(memory, POISON, bytes);
    return memory;
}

/* offset: from the alignment of 256, in bytes. */
static quantize_image image_make(size_t offset, size_t data_size)
{
    quantize_image image = {NULL, 2 * GUARD + offset + data_size, GUARD + offset, data_size};
    image.bytes = image_allocate(image.size);
    return image;
}

static size_t type_size(halfbyte_type type)
{
    return type == HALFBYTE_TYPE_F32 ? 4 : 2;
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint32_t code_of(halfbyte_type type, float value)
{
    return type == HALFBYTE_TYPE_F32    ? bits_from_float(value)
           : type == HALFBYTE_TYPE_BF16 ? bf16_encode(value)
                                        : fp16_encode(value);
}

static uint32_t special_code(struct random *r, halfbyte_type type)
{
    static const uint32_t special[3][8] = {
        {0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x7f800001, 0x80000000, 0x7f7fffff, 0},
        {0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f81, 0x8000, 0x7f7f, 0},
        {0x7c00, 0xfc00, 0x7e00, 0xffff, 0x7c01, 0x8000, 0x7bff, 0}};
    const int row = type == HALFBYTE_TYPE_F32 ? 0 : type == HALFBYTE_TYPE_BF16 ? 1 : 2;
    return special[row][random_below(r, 8)];
}

static uint32_t unfinite_code(struct random *r, halfbyte_type type)
{
    const uint32_t infinity = type == HALFBYTE_TYPE_F32    ? 0x7f800000u
                              : type == HALFBYTE_TYPE_BF16 ? 0x7f80u
                                                           : 0x7c00u;
    const uint32_t all = type == HALFBYTE_TYPE_F32 ? 0xffffffffu : 0xffffu;
    return infinity | ((uint32_t)random_bits(r) & all);
}

/* Near 2^exponent .. 2^(exponent + 1), of either sign. */
static float number_near(struct random *r, int exponent)
{
    const float fraction = 1.0f + (float)random_below(r, 1 << 23) / 8388608.0f;
    return ldexpf(random_percent(r, 50) ? fraction : -fraction, exponent);
}

/* A value whose quotient is at the middle between two codes, or a few units of its own last place
 * beside it. */
static uint32_t tie_code(struct random *r, halfbyte_type type, float scale)
{
    const float middle =
        ldexpf((float)random_between(r, 16, 31) + 0.5f, (int)random_between(r, -13, 4));
    const uint32_t code = code_of(type, middle * scale);
    const uint32_t beside = code + (uint32_t)random_between(r, -2, 2);
    const uint32_t sign =
        random_percent(r, 50) ? (type_size(type) == 4 ? 0x80000000u : 0x8000u) : 0;
    return beside | sign;
}

static uint32_t value_code(struct random *r, halfbyte_type type, quantize_fill fill, float scale)
{
    const uint32_t sign =
        random_percent(r, 50) ? (type_size(type) == 4 ? 0x80000000u : 0x8000u) : 0;
    switch (fill) {
    case QUANTIZE_FILL_BITS: return (uint32_t)random_bits(r);
    case QUANTIZE_FILL_TIES: return tie_code(r, type, scale);
    case QUANTIZE_FILL_SMALL:
        return sign | (random_percent(r, 50) ? 0 : (uint32_t)random_below(r, 128));
    case QUANTIZE_FILL_NOTHING: return unfinite_code(r, type);
    default:
        return random_percent(r, 3) ? special_code(r, type)
                                    : code_of(type, number_near(r, (int)random_between(r, -9, 3)));
    }
}

/* For ties of scales that are computed: a block's first value is its largest magnitude, 448 scales.
 */
static float tie_scale(struct random *r, uint32_t *first, halfbyte_type type)
{
    const float amax = fabsf(number_near(r, (int)random_between(r, -5, 5)));
    *first = code_of(type, amax);
    const float rounded = type == HALFBYTE_TYPE_F32    ? amax
                          : type == HALFBYTE_TYPE_BF16 ? bf16_decode((uint16_t)*first)
                                                       : fp16_decode((uint16_t)*first);
    return rounded / 448.0f;
}

static void code_store(quantize_case *c, int64_t row, int64_t column, uint32_t code)
{
    const halfbyte_activation_quantization *a = &c->arguments;
    const size_t size = type_size(a->src_type);
    uint8_t *at = c->src.bytes + c->src.data_at + (size_t)(row * a->src.ld + column) * size;
    const uint16_t narrow = (uint16_t)code;
    memcpy(at, size == 4 ? (const void *)&code : (const void *)&narrow, size);
}

static void values_draw(quantize_case *c, struct random *r, quantize_fill fill)
{
    const halfbyte_activation_quantization *a = &c->arguments;
    const bool is_static = (a->flags & HALFBYTE_QUANTIZE_STATIC) != 0;
    const int64_t width = a->mode == HALFBYTE_SCALE_1X128 ? BLOCK : a->k;
    uint32_t first = 0;
    float scale = 1.0f;
    if (is_static) {
        memcpy(&scale, c->scale.bytes + c->scale.data_at, sizeof scale);
    }
    for (int64_t row = 0; row < a->m; row++) {
        for (int64_t column = 0; column < a->k; column++) {
            const bool starts =
                column % width == 0 && (a->mode != HALFBYTE_SCALE_TENSOR || row == 0);
            if (fill == QUANTIZE_FILL_TIES && !is_static && starts) {
                scale = tie_scale(r, &first, a->src_type);
                code_store(c, row, column, first);
            } else {
                code_store(c, row, column, value_code(r, a->src_type, fill, scale));
            }
        }
    }
}

/* ---- the call -------------------------------------------------------------------------------- */

static void form_set(halfbyte_activation_quantization *a, quantize_form form, bool power_of_two)
{
    switch (form) {
    case QUANTIZE_FORM_OUTER: a->mode = HALFBYTE_SCALE_OUTER; break;
    case QUANTIZE_FORM_BLOCKS_MN:
    case QUANTIZE_FORM_BLOCKS_K: a->mode = HALFBYTE_SCALE_1X128; break;
    default: a->mode = HALFBYTE_SCALE_TENSOR; break;
    }
    if (form == QUANTIZE_FORM_BLOCKS_K) {
        a->layout = HALFBYTE_SCALE_K_MAJOR;
    }
    if (form == QUANTIZE_FORM_STATIC) {
        a->flags |= HALFBYTE_QUANTIZE_STATIC;
    } else if (power_of_two) {
        a->flags |= HALFBYTE_QUANTIZE_POWER_OF_TWO;
    }
}

/* Scales of the tensor, its strides set. */
static int64_t scale_count(halfbyte_activation_quantization *a, int64_t gap)
{
    const int64_t blocks = (a->k + BLOCK - 1) / BLOCK;
    if (a->mode == HALFBYTE_SCALE_TENSOR) {
        return 1;
    }
    a->scale.stride_mn = a->scale.stride_k = 1;
    if (a->mode == HALFBYTE_SCALE_OUTER || a->m == 0 || blocks == 0) {
        return a->mode == HALFBYTE_SCALE_OUTER ? a->m : 0;
    }
    if (a->layout == HALFBYTE_SCALE_K_MAJOR) {
        a->scale.stride_mn = blocks + gap;
        return (a->m - 1) * a->scale.stride_mn + blocks;
    }
    a->scale.stride_k = a->m + gap;
    return (blocks - 1) * a->scale.stride_k + a->m;
}

static float static_scale(struct random *r, quantize_fill fill)
{
    static const uint32_t odd[] = {0x00000000, 0x80000000, 0xbf800000, 0x7f800000, 0xff800000,
                                   0x7fc00000, 0x00000001, 0x7f7fffff, 0x21800000, 0x217fffff,
                                   0x5d800000, 0x5d800001, 0x00800000};
    if (fill != QUANTIZE_FILL_TIES && random_percent(r, 40)) {
        return float_from_bits(odd[random_below(r, (int64_t)(sizeof odd / sizeof odd[0]))]);
    }
    return fabsf(number_near(r, (int)random_between(r, -12, 2)));
}

static void expected_make(quantize_case *c)
{
    memcpy(c->dst_expected, c->dst.bytes, c->dst.size);
    memcpy(c->scale_expected, c->scale.bytes, c->scale.size);
    const halfbyte_activation_quantization a =
        quantize_case_at(c, c->src.bytes, c->dst_expected, c->scale_expected);
    if (halfbyte_quantize_activations(NULL, &a, NULL) != HALFBYTE_SUCCESS) {
        fprintf(stderr, "quantize_case: %s\n", halfbyte_last_error());
        exit(2);
    }
}

static int64_t rows_extent(int64_t m, int64_t ld, int64_t k)
{
    return m > 0 && k > 0 ? (m - 1) * ld + k : 0;
}

void quantize_case_make(quantize_case *c, struct random *r, quantize_form form, halfbyte_type type,
                        quantize_fill fill, bool power_of_two, quantize_shape shape)
{
    static const int64_t gaps[] = {0, 1, 8, 16, 3, 24};
    /* The last ones make scales of 1 and of the next number above, whose power of two is 2. */
    static const float epsilons[] = {0.0f,      0.0f,   0.25f,        0x1p-126f,
                                     0x1p-140f, 448.0f, 0x1.c00004p8f};
    enum { EPSILONS = sizeof epsilons / sizeof epsilons[0] };
    halfbyte_activation_quantization a = halfbyte_activation_quantization_init();
    const size_t size = type_size(type);
    const bool plain = shape.is_plain;
    form_set(&a, form, power_of_two);
    a.src_type = type;
    a.m = shape.m;
    a.k = shape.k;
    a.src.ld = a.k + (plain ? 0 : gaps[random_below(r, 6)]);
    a.dst.ld = a.k + (plain ? 0 : gaps[random_below(r, 6)]);
    a.epsilon = epsilons[random_below(r, EPSILONS)];
    const int64_t scales = scale_count(&a, plain ? 0 : random_below(r, 4));
    const bool shifts = !plain && random_percent(r, 50);
    c->src = image_make(shifts ? size * (size_t)random_below(r, 16) : 0,
                        (size_t)rows_extent(a.m, a.src.ld, a.k) * size);
    c->dst = image_make(shifts ? (size_t)random_below(r, 16) : 0,
                        (size_t)rows_extent(a.m, a.dst.ld, a.k));
    c->scale = image_make(4 * (size_t)random_below(r, 8), (size_t)scales * sizeof(float));
    if (form == QUANTIZE_FORM_STATIC) {
        const float given = static_scale(r, fill);
        memcpy(c->scale.bytes + c->scale.data_at, &given, sizeof given);
    }
    c->dst_expected = image_allocate(c->dst.size);
    c->scale_expected = image_allocate(c->scale.size);
    c->arguments = a;
    quantize_case_draw(c, r, fill);
}

void quantize_case_draw(quantize_case *c, struct random *r, quantize_fill fill)
{
    memset(c->src.bytes, 0xff, c->src.size); /* NaN in gaps and guards: a wrong read shows */
    values_draw(c, r, fill);
    expected_make(c);
}

void quantize_case_free(quantize_case *c)
{
    free(c->src.bytes);
    free(c->dst.bytes);
    free(c->scale.bytes);
    free(c->dst_expected);
    free(c->scale_expected);
}

halfbyte_activation_quantization quantize_case_at(const quantize_case *c, const void *src,
                                                  void *dst, void *scale)
{
    halfbyte_activation_quantization a = c->arguments;
    a.src.data = (const uint8_t *)src + c->src.data_at;
    a.dst.data = (uint8_t *)dst + c->dst.data_at;
    a.scale.data = (uint8_t *)scale + c->scale.data_at;
    return a;
}
