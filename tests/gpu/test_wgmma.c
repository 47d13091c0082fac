/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every wgmma of the instruction layer against chains of tensor_core_block(): each n, operand type
 * and source of A, each layout of A and of B, with and without accumulator input.
 */
#include <stdio.h>
#include <string.h>

#include "gpu/images.h"
#include "gpu/operand_layout.h"
#include "gpu/tests.h"
#include "model/tensor_core.h"
#include "oracle/splitmix.h"

/* Characters of data, one a block (and again with other draws). */
enum { ANY, FINITE, NARROW, SMALL, LARGE, CANCELLING, CHARACTERS };

typedef struct wgmma_row {
    const char *kind, *source;
    uint32_t n;
} wgmma_row;

static const wgmma_row rows[] = {
#define WGMMA_CASE(kind, source, n) {#kind, #source, n},
#include "wgmma_cases.inc"
#undef WGMMA_CASE
};

/* Operands and results of all blocks, host memory. */
typedef struct wgmma_data {
    uint32_t blocks, n;
    tensor_core_type type;
    uint8_t *a, *b;        /* [blocks, 64 or n, 128 bytes] */
    uint32_t *c;           /* [blocks, 64, n] */
    uint32_t *expected[2]; /* the same; by scale_d of the first step */
    uint32_t *got;
} wgmma_data;

static uint8_t e4m3_draw(struct random *r, int character)
{
    const uint8_t bits = (uint8_t)random_bits(r);
    const uint8_t sign = bits & 0x80;
    switch (character) {
    case ANY: return random_percent(r, 90) ? bits & 0xf7 : bits; /* rows without NaN, too */
    case NARROW: return sign | (uint8_t)random_between(r, 0x28, 0x4f);
    case SMALL: return sign | (bits & 0x0f);
    case LARGE: return random_percent(r, 80) ? 0x7e : sign | 0x7d;
    default: return (bits & 0x7f) == 0x7f ? sign : bits;
    }
}

static uint16_t bf16_draw(struct random *r, int character)
{
    const uint16_t bits = (uint16_t)random_bits(r);
    const uint16_t plain = bits & 0x807f;
    switch (character) {
    case ANY:
        return random_percent(r, 98) ? plain | (uint16_t)(random_between(r, 90, 160) << 7) : bits;
    case NARROW: return plain | (uint16_t)(random_between(r, 124, 130) << 7);
    case SMALL: return plain | (uint16_t)(random_between(r, 0, 66) << 7);
    case LARGE: return plain | (uint16_t)(random_between(r, 186, 192) << 7);
    default: return plain | (uint16_t)(random_between(r, 1, 254) << 7);
    }
}

/* `opposite`: of each pair of neighbours along k the second is minus the first (or, for the other
 * operand, equal to it), now and then. */
static void operand_draw(struct random *r, tensor_core_type type, int character, bool opposite,
                         uint8_t *data, size_t bytes)
{
    const size_t element = type == TENSOR_CORE_E4M3 ? 1 : 2;
    for (size_t i = 0; i < bytes; i += element) {
        const uint16_t code = element == 1 ? e4m3_draw(r, character) : bf16_draw(r, character);
        data[i] = (uint8_t)code;
        data[i + element - 1] = (uint8_t)(code >> (8 * (element - 1)));
        if (character == CANCELLING && i / element % 2 == 1 && random_percent(r, 95)) {
            memcpy(data + i, data + i - element, element);
            data[i + element - 1] ^= opposite ? 0x80 : 0;
        }
    }
}

static uint32_t accumulator_draw(struct random *r, int character)
{
    const uint32_t bits = (uint32_t)random_bits(r);
    const uint32_t plain = bits & 0x807fffff;
    switch (character) {
    case ANY: return bits;
    case SMALL:
        return random_percent(r, 50) ? plain : plain | (uint32_t)random_between(r, 0, 110) << 23;
    case LARGE: return plain | (uint32_t)random_between(r, 140, 254) << 23;
    case CANCELLING: return random_percent(r, 50) ? bits & 0x80000000 : plain | 120u << 23;
    default: return plain | (uint32_t)random_between(r, 110, 140) << 23;
    }
}

static wgmma_data data_make(const session *s, const wgmma_row *row)
{
    wgmma_data data;
    memset(&data, 0, sizeof data);
    struct random r = {s->seed * 1000003 + row->n};
    data.blocks = s->quick ? CHARACTERS : 2 * CHARACTERS;
    data.n = row->n;
    data.type = strcmp(row->kind, "e4m3") == 0 ? TENSOR_CORE_E4M3 : TENSOR_CORE_BF16;
    const size_t a_bytes = WGMMA_ROWS * WGMMA_K_BYTES;
    const size_t b_bytes = (size_t)row->n * WGMMA_K_BYTES;
    const size_t outputs = (size_t)WGMMA_ROWS * row->n;
    data.a = session_host(data.blocks * a_bytes);
    data.b = session_host(data.blocks * b_bytes);
    data.c = session_host(data.blocks * outputs * 4);
    data.got = session_host(data.blocks * outputs * 4);
    for (uint32_t block = 0; block < data.blocks; block++) {
        const int character = (int)(block % CHARACTERS);
        operand_draw(&r, data.type, character, true, data.a + block * a_bytes, a_bytes);
        operand_draw(&r, data.type, character, false, data.b + block * b_bytes, b_bytes);
        for (size_t i = 0; i < outputs; i++) {
            data.c[block * outputs + i] = accumulator_draw(&r, character);
        }
    }
    return data;
}

/* The codes of one instruction. */
static void codes_of(const wgmma_data *data, const uint8_t *bytes, uint16_t *codes)
{
    const int count = tensor_core_k(data->type);
    for (int i = 0; i < count; i++) {
        codes[i] = data->type == TENSOR_CORE_E4M3
                       ? bytes[i]
                       : (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
    }
}

typedef struct expectation {
    const wgmma_data *data;
    uint32_t scale_d;
} expectation;

/* One row of one block. */
static void row_expect(void *context, int64_t task)
{
    const expectation *e = context;
    const wgmma_data *data = e->data;
    const size_t block = (size_t)task / WGMMA_ROWS;
    const uint8_t *a = data->a + (size_t)task * WGMMA_K_BYTES;
    for (uint32_t column = 0; column < data->n; column++) {
        const uint8_t *b = data->b + (block * data->n + column) * WGMMA_K_BYTES;
        const size_t at = (size_t)task * data->n + column;
        uint32_t d = e->scale_d ? data->c[at] : 0;
        for (int step = 0; step < WGMMA_STEPS; step++) {
            uint16_t x[TENSOR_CORE_MAX_K];
            uint16_t y[TENSOR_CORE_MAX_K];
            codes_of(data, a + step * WGMMA_STEP_BYTES, x);
            codes_of(data, b + step * WGMMA_STEP_BYTES, y);
            d = tensor_core_block(data->type, x, y, d);
        }
        data->expected[e->scale_d][at] = d;
    }
}

static void data_expect(const session *s, wgmma_data *data)
{
    for (uint32_t scale_d = 0; scale_d < 2; scale_d++) {
        expectation e = {data, scale_d};
        data->expected[scale_d] = session_host((size_t)data->blocks * WGMMA_ROWS * data->n * 4);
        parallel_for(s->pool, (int64_t)data->blocks * WGMMA_ROWS, row_expect, &e);
    }
}

static void layouts_try(session *s, cuda_function function, const wgmma_data *data,
                        enum operand_layout a_layout, enum operand_layout b_layout)
{
    const uint32_t a_bytes = operand_bytes(a_layout, WGMMA_ROWS);
    const uint32_t bytes = a_bytes + operand_bytes(b_layout, data->n);
    const size_t outputs = (size_t)data->blocks * WGMMA_ROWS * data->n;
    uint8_t *image = session_host((size_t)data->blocks * bytes);
    char what[96];
    wgmma_params params;
    memset(&params, 0, sizeof params);
    session_reset(s);
    for (size_t block = 0; block < data->blocks; block++) {
        operand_store(a_layout, WGMMA_ROWS, 0, data->a + block * WGMMA_ROWS * WGMMA_K_BYTES,
                      image + block * bytes);
        operand_store(b_layout, data->n, a_bytes, data->b + block * data->n * WGMMA_K_BYTES,
                      image + block * bytes);
    }
    const cuda_pointer d = session_memory(s, outputs * 4);
    params.image = session_pointer(session_upload(s, image, (size_t)data->blocks * bytes));
    params.a = session_pointer(
        session_upload(s, data->a, (size_t)data->blocks * WGMMA_ROWS * WGMMA_K_BYTES));
    params.c = session_pointer(session_upload(s, data->c, outputs * 4));
    params.d = session_pointer(d);
    params.at = operand_describe(a_layout, WGMMA_ROWS, 0);
    params.bt = operand_describe(b_layout, data->n, a_bytes);
    params.image_words = bytes / 4;
    params.scale_d = (uint32_t)(a_layout + b_layout) % 2;
    session_check(s, s->set_bytes(d, 0xa5, outputs * 4), "cuMemsetD8");
    session_launch(s, function, data->blocks, 128, 1024 + bytes, 1, &params);
    session_download(s, data->got, d, outputs * 4);
    snprintf(what, sizeof what, "n %u, layouts %d and %d", data->n, (int)a_layout, (int)b_layout);
    session_compare(s, what, data->got, data->expected[params.scale_d], 4, outputs);
    session_host_free(image);
}

static void kind_test(session *s, const char *kind, const char *source)
{
    const cuda_module module = session_module(s, kernel_image_wgmma);
    int instructions = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[64];
        if (strcmp(rows[i].kind, kind) != 0 || strcmp(rows[i].source, source) != 0) {
            continue;
        }
        snprintf(name, sizeof name, "wgmma_test_%s_%s_n%u", kind, source, rows[i].n);
        const cuda_function function = session_function(s, module, name, 100 << 10);
        wgmma_data data = data_make(s, &rows[i]);
        data_expect(s, &data);
        /* From registers A has no layout. */
        const int a_layouts = strcmp(source, "rs") == 0 ? 1 : LAYOUTS;
        for (int pair = 0; pair < a_layouts * LAYOUTS; pair++) {
            layouts_try(s, function, &data, (enum operand_layout)(pair / LAYOUTS),
                        (enum operand_layout)(pair % LAYOUTS));
        }
        instructions++;
    }
    session_figure(s, "instructions", instructions);
}

void gpu_test_wgmma_e4m3_ss(session *s)
{
    kind_test(s, "e4m3", "ss");
}

void gpu_test_wgmma_e4m3_rs(session *s)
{
    kind_test(s, "e4m3", "rs");
}

void gpu_test_wgmma_bf16_ss(session *s)
{
    kind_test(s, "bf16", "ss");
}

void gpu_test_wgmma_bf16_rs(session *s)
{
    kind_test(s, "bf16", "rs");
}
