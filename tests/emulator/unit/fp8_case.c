/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/unit/fp8_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulator/unit/draw.h"
#include "model/chain.h"
#include "model/gemm.h"

enum { GUARD = 3, POISON = 0x5a5b };

static void *take(size_t bytes)
{
    void *made = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(made);
    return made;
}

static int blocks_of(int extent)
{
    return (extent + 127) / 128;
}

static void draw_codes(uint64_t *r, uint8_t *to, size_t count, bool specials)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t code = (uint8_t)draw_below(r, 256);
        if ((code & 0x7f) == 0x7f && !(specials && draw_below(r, 64) == 0)) {
            code ^= 0x40;
        }
        to[i] = code;
    }
}

static void draw_scales(uint64_t *r, float *to, size_t count, bool specials)
{
    static const uint32_t odd[] = {0x00000000, 0x80000000, 0x7f800000,
                                   0x7fc12345, 0x00000001, 0xbf800000};
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)(1 + draw_below(r, 1000)) / 256.0f;
        if (specials && draw_below(r, 16) == 0) {
            memcpy(&to[i], &odd[draw_below(r, 6)], sizeof to[i]);
        }
    }
}

static void model(const fp8_case *c, uint16_t *d)
{
    const fp8_case_shape *s = &c->shape;
    halfbyte_problem p = halfbyte_problem_init();
    halfbyte_operands o = halfbyte_operands_init();
    p.family = HALFBYTE_FAMILY_FP8;
    p.m_max = s->m;
    p.n = s->n;
    p.k = s->k;
    p.groups = 1;
    p.k_splits = 1;
    p.a_type = p.b_type = HALFBYTE_TYPE_E4M3;
    p.d_type = HALFBYTE_TYPE_BF16;
    p.a_scale =
        (halfbyte_scale_spec){HALFBYTE_SCALE_1X128, HALFBYTE_TYPE_F32, HALFBYTE_SCALE_MN_MAJOR};
    p.b_scale =
        (halfbyte_scale_spec){HALFBYTE_SCALE_128X128, HALFBYTE_TYPE_F32, HALFBYTE_SCALE_K_MAJOR};
    o.m = s->m;
    o.a = (halfbyte_matrix_in){c->a, (s->k + 15) / 16 * 16, 0};
    o.b = (halfbyte_matrix_in){c->b, (s->k + 15) / 16 * 16, 0};
    o.d = (halfbyte_matrix_out){d + GUARD * c->ldd, c->ldd, 0};
    o.a_scale = (halfbyte_scale_in){c->a_scale, 1, s->m, 0};
    o.b_scale = (halfbyte_scale_in){c->b_scale, blocks_of(s->k), 1, 0};
    gemm_run(&p, &o, chain_ops_get(CHAIN_ISA_AUTO), NULL);
}

static void poison(uint16_t *d, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        d[i] = POISON;
    }
}

static void encode(tensor_map *map, const void *data, int rows, int k)
{
    const emu_tensor tensor = {
        .data = data,
        .element_bytes = 1,
        .rank = 3,
        .dims = {(uint64_t)k, (uint64_t)rows, 1},
        .strides_bytes = {0, (uint64_t)((k + 15) / 16 * 16), (uint64_t)((k + 15) / 16 * 16 * rows)},
        .box = {128, 128, 1},
        .swizzle = 1 /* 128 bytes */};
    if (k > 0) {
        assert_true(emu_tensor_map_encode(map, &tensor));
    }
}

void fp8_case_make(fp8_case *c, const fp8_case_shape *shape, uint64_t seed)
{
    uint64_t r = seed;
    const int m = shape->m, n = shape->n, k = shape->k;
    const int ld = (k + 15) / 16 * 16;
    memset(c, 0, sizeof *c);
    c->shape = *shape;
    c->ldd = n + GUARD + (int)draw_below(&r, 2);
    c->d_count = (size_t)(m + 2 * GUARD) * (size_t)c->ldd;
    const size_t a_scales = (size_t)m * (size_t)blocks_of(k);
    const size_t b_scales = (size_t)blocks_of(n) * (size_t)blocks_of(k);
    c->a = take((size_t)m * (size_t)ld);
    c->b = take((size_t)n * (size_t)ld);
    c->a_scale = take(a_scales * 4);
    c->b_scale = take(b_scales * 4);
    c->d = take(c->d_count * 2);
    c->expected = take(c->d_count * 2);
    draw_codes(&r, c->a, (size_t)m * (size_t)ld, shape->specials);
    draw_codes(&r, c->b, (size_t)n * (size_t)ld, shape->specials);
    draw_scales(&r, c->a_scale, a_scales, shape->specials);
    draw_scales(&r, c->b_scale, b_scales, shape->specials);
    poison(c->expected, c->d_count);
    model(c, c->expected);

    c->memory = emu_memory_create();
    assert_non_null(c->memory);
    bool added = emu_memory_add(c->memory, c->a, (size_t)m * (size_t)ld, "a", EMU_READ_ONLY);
    added &= emu_memory_add(c->memory, c->b, (size_t)n * (size_t)ld, "b", EMU_READ_ONLY);
    added &= emu_memory_add(c->memory, c->a_scale, a_scales * 4, "a_scale", EMU_READ_ONLY);
    added &= emu_memory_add(c->memory, c->b_scale, b_scales * 4, "b_scale", EMU_READ_ONLY);
    added &= emu_memory_add(c->memory, c->d + GUARD * c->ldd, (size_t)m * (size_t)c->ldd * 2, "d",
                            EMU_READ_WRITE);
    assert_true(added);
    encode(&c->params.a, c->a, m, k);
    encode(&c->params.b, c->b, n, k);
    c->params.a_scale = (gemm_scales){
        .data = c->a_scale, .stride_mn = 1, .stride_k = m, .stride_k4 = 4 * m, .type = ELEMENT_F32};
    c->params.b_scale = (gemm_scales){.data = c->b_scale,
                                      .stride_mn = blocks_of(k),
                                      .stride_k = 1,
                                      .stride_k4 = 4,
                                      .mn_shift = 7,
                                      .type = ELEMENT_F32};
    c->params.groups.kind = GEMM_DENSE;
    c->params.groups.count = 1;
    c->params.groups.rows_most = INT32_MAX;
    gemm_matrix *d = &c->params.epilogue.d;
    d->data = c->d + GUARD * c->ldd;
    d->ld = c->ldd;
    d->type = ELEMENT_BF16;
    d->vectors = c->ldd % 2 == 0 && (uintptr_t)d->data % 4 == 0;
    c->params.m = m;
    c->params.a_box_rows = 128;
    c->params.n = n;
    c->params.k_blocks = blocks_of(k);
    c->params.block_k = 128;
    c->params.k_splits = 1;
}

void fp8_case_free(fp8_case *c)
{
    emu_memory_destroy(c->memory);
    free(c->a);
    free(c->b);
    free(c->a_scale);
    free(c->b_scale);
    free(c->d);
    free(c->expected);
}

emu_status fp8_case_run(fp8_case *c, const fp8_kernel *kernel, const emu_config *config,
                        emu_report *report)
{
    const emu_launch launch = {.name = "gemm",
                               .kernel = kernel->entry,
                               .params = &c->params,
                               .params_bytes = sizeof c->params,
                               .blocks = (uint32_t)c->shape.blocks,
                               .cluster = 1,
                               .threads = kernel->threads,
                               .smem_bytes = kernel->smem_bytes,
                               .registers = kernel->registers};
    poison(c->d, c->d_count);
    return emu_run(config, c->memory, &launch, 1, report);
}

size_t fp8_case_differences(const fp8_case *c)
{
    size_t differences = 0;
    for (size_t i = 0; i < c->d_count; i++) {
        differences += c->d[i] != c->expected[i];
    }
    return differences;
}
