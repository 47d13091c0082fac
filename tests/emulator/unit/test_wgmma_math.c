/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma against plain sums of products: every swizzle, A from shared memory and from registers,
 * several n, e4m3 and bf16.  The operands' images in shared memory and the places of the registers
 * are made here by formulas of their own, row by row, not by address bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulator/emulator.h"
#include "emulator/unit/all_schedules.h"
#include "emulator/unit/draw.h"
#include "kernels/hopper/hopper.h"
#include "model/tensor_core.h"

enum {
    M = 64,
    N_MAX = 256,
    ROW_BYTES = 128, /* of k in an image; an instruction takes 32 of them */
    A_BYTES = M * ROW_BYTES,
    IMAGE_BYTES = A_BYTES + N_MAX * ROW_BYTES,
    STEPS = 3, /* instructions in a chain */
};

typedef struct wgmma_params {
    const uint32_t *image;   /* of shared memory: A, then B */
    const uint32_t *a;       /* registers: [step][thread][4] */
    const float *c;          /* [thread][128], accumulators before */
    float *d;                /* after */
    uint64_t desc_a, desc_b; /* relative to smem_base() */
    uint32_t step_bytes;     /* from a step's descriptor to the next one's */
    uint32_t n, type, from_registers;
} wgmma_params;

#define SS(kind, N)                                                                                \
    case N:                                                                                        \
        wgmma_##kind##_ss_n##N(d, desc_a, desc_b, 1);                                              \
        break
#define RS(kind, N)                                                                                \
    case N: wgmma_##kind##_rs_n##N(d, a, desc_b, 1); break

HB_DEVICE void multiply(const wgmma_params *p, float *d, const uint32_t *a, uint64_t desc_a,
                        uint64_t desc_b)
{
    if (p->type == EMU_E4M3 && !p->from_registers) {
        switch (p->n) {
            SS(e4m3, 8);
            SS(e4m3, 24);
            SS(e4m3, 64);
            SS(e4m3, 112);
            SS(e4m3, 256);
        }
    } else if (p->type == EMU_E4M3) {
        switch (p->n) {
            RS(e4m3, 8);
            RS(e4m3, 24);
            RS(e4m3, 64);
            RS(e4m3, 112);
            RS(e4m3, 256);
        }
    } else if (!p->from_registers) {
        switch (p->n) {
            SS(bf16, 8);
            SS(bf16, 64);
            SS(bf16, 128);
            SS(bf16, 256);
        }
    } else {
        switch (p->n) {
            RS(bf16, 8);
            RS(bf16, 64);
            RS(bf16, 128);
            RS(bf16, 256);
        }
    }
}

KERNEL(wgmma_kernel, wgmma_params, p, 128)
{
    FRAGMENT_F32(d, 128);
    FRAGMENT_U32(a, 4 * STEPS);
    const smem_addr base = smem_base();
    const uint32_t t = thread_index();
    uint32_t i, step;
    for (i = t; i < IMAGE_BYTES / 4; i += 128) {
        smem_store_u32(base + i * 4u, global_load_u32(p->image + i));
    }
    for (i = 0; i < p->n / 2; i++) {
        d[i] = global_load_f32(p->c + t * 128u + i);
    }
    for (i = 0; i < 4 * STEPS; i++) {
        a[i] = global_load_u32(p->a + (i / 4u * 128u + t) * 4u + i % 4u);
    }
    fence_proxy_async();
    block_sync();
    wgmma_fence();
    for (step = 0; step < STEPS; step++) {
        multiply(p, d, a + step * 4, p->desc_a + (base >> 4) + (step * p->step_bytes >> 4),
                 p->desc_b + (base >> 4) + (step * p->step_bytes >> 4));
    }
    wgmma_commit();
    wgmma_wait(0);
    for (i = 0; i < p->n / 2; i++) {
        global_store_f32(p->d + t * 128u + i, d[i]);
    }
}

typedef struct wgmma_case {
    uint8_t a[M][ROW_BYTES], b[N_MAX][ROW_BYTES]; /* row by row, k contiguous */
    uint32_t c[M][N_MAX], expected[M][N_MAX];     /* bits */
    _Alignas(16) uint8_t image[IMAGE_BYTES];
    _Alignas(16) uint32_t registers[STEPS][128][4];
    _Alignas(16) float before[128][128], after[128][128];
} wgmma_case;

/* Offset of byte `at` of k in row `row`, of the 32 * STEPS bytes that are used. */
static size_t image_offset(uint32_t swizzle, uint32_t row, uint32_t at)
{
    const uint32_t chunk = at / 16, in_chunk = at % 16;
    switch (swizzle) {
    case SWIZZLE_128B: return row * 128 + (chunk ^ row % 8) * 16 + in_chunk;
    /* Two blocks side by side in k, each of rows of 64 bytes: N_MAX rows apart would do as well. */
    case SWIZZLE_64B: return row * 64 + (chunk ^ (row / 2) % 4) * 16 + in_chunk;
    case SWIZZLE_32B: return row * 32 + (chunk ^ (row / 4) % 2) * 16 + in_chunk;
    default: return row / 8 * 256 + chunk * 128 + row % 8 * 16 + in_chunk;
    }
}

/* Bytes of k that an image of this swizzle holds: the chain's steps beyond are those again. */
static uint32_t image_k(uint32_t swizzle)
{
    return swizzle == SWIZZLE_128B ? 128 : swizzle == SWIZZLE_64B ? 64 : 32;
}

static uint32_t step_k(uint32_t swizzle, uint32_t step)
{
    return swizzle == SWIZZLE_128B ? step * 32 : 0;
}

static void draw_operand(uint64_t *random, uint8_t *to, size_t bytes, emu_operand_type type)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (uint8_t)draw(random);
        if (type == EMU_E4M3 && (to[i] & 0x7f) == 0x7f && draw_below(random, 40) != 0) {
            to[i] = 0x11;
        }
        if (type == EMU_BF16 && i % 2 == 1 && draw_below(random, 40) != 0) {
            to[i] = (uint8_t)(0x3c + draw_below(random, 8) + (draw(random) & 0x80));
        }
    }
}

static void place_operands(wgmma_case *c, uint32_t swizzle, uint32_t n)
{
    for (uint32_t at = 0; at < image_k(swizzle); at++) {
        for (uint32_t row = 0; row < M; row++) {
            c->image[image_offset(swizzle, row, at)] = c->a[row][at];
        }
        for (uint32_t row = 0; row < n; row++) {
            c->image[A_BYTES + image_offset(swizzle, row, at)] = c->b[row][at];
        }
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t t = 0; t < 128; t++) {
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t row = 16 * (t / 32) + t % 32 / 4 + 8 * (i & 1);
                const uint32_t at = 16 * (i >> 1) + (t & 3) * 4;
                memcpy(&c->registers[step][t][i], &c->a[row][step_k(swizzle, step) + at], 4);
            }
        }
    }
}

static float *accumulator_at(float (*registers)[128], uint32_t row, uint32_t column)
{
    return &registers[row / 16 * 32 + row % 8 * 4 + column % 8 / 2]
                     [column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
}

static void compute(wgmma_case *c, uint32_t swizzle, uint32_t n, emu_operand_type type)
{
    for (uint32_t row = 0; row < M; row++) {
        for (uint32_t column = 0; column < n; column++) {
            uint32_t sum = c->c[row][column];
            for (uint32_t step = 0; step < STEPS; step++) {
                uint16_t x[32], y[32];
                const uint8_t *a = &c->a[row][step_k(swizzle, step)];
                const uint8_t *b = &c->b[column][step_k(swizzle, step)];
                for (uint32_t i = 0; i < (type == EMU_E4M3 ? 32u : 16u); i++) {
                    x[i] = type == EMU_E4M3 ? a[i] : (uint16_t)(a[2 * i] | a[2 * i + 1] << 8);
                    y[i] = type == EMU_E4M3 ? b[i] : (uint16_t)(b[2 * i] | b[2 * i + 1] << 8);
                }
                sum = tensor_core_block(type == EMU_E4M3 ? TENSOR_CORE_E4M3 : TENSOR_CORE_BF16, x,
                                        y, sum);
            }
            c->expected[row][column] = sum;
        }
    }
}

static void make_case(wgmma_case *c, uint64_t *random, uint32_t swizzle, uint32_t n,
                      emu_operand_type type)
{
    memset(c, 0, sizeof *c);
    draw_operand(random, c->a[0], sizeof c->a, type);
    draw_operand(random, c->b[0], sizeof c->b, type);
    for (uint32_t row = 0; row < M; row++) {
        for (uint32_t column = 0; column < n; column++) {
            const float value = (float)(int32_t)draw(random) / 1e6f;
            memcpy(&c->c[row][column], &value, 4);
            *accumulator_at(c->before, row, column) = value;
        }
    }
    place_operands(c, swizzle, n);
    compute(c, swizzle, n, type);
}

static size_t differences(wgmma_case *c, uint32_t n)
{
    size_t different = 0;
    for (uint32_t row = 0; row < M; row++) {
        for (uint32_t column = 0; column < n; column++) {
            uint32_t bits;
            memcpy(&bits, accumulator_at(c->after, row, column), 4);
            different += bits != c->expected[row][column];
        }
    }
    return different;
}

static uint32_t stride_of(uint32_t swizzle)
{
    return swizzle == SWIZZLE_128B ? 1024 : swizzle == SWIZZLE_64B ? 512 : 256;
}

static void run_case(wgmma_case *c, emu_memory *memory, emu_report *report, uint32_t swizzle,
                     uint32_t n, emu_operand_type type, bool from_registers,
                     const emu_config *config)
{
    const uint32_t leading = swizzle == SWIZZLE_NONE ? 128 : 0;
    const wgmma_params params = {
        .image = (const uint32_t *)(const void *)c->image,
        .a = c->registers[0][0],
        .c = c->before[0],
        .d = c->after[0],
        .desc_a = wgmma_desc(0, leading, stride_of(swizzle), swizzle),
        .desc_b = wgmma_desc(A_BYTES, leading, stride_of(swizzle), swizzle),
        .step_bytes = step_k(swizzle, 1),
        .n = n,
        .type = type,
        .from_registers = from_registers,
    };
    const emu_launch launch = {"wgmma", wgmma_kernel,       &params, sizeof params, 1, 1,
                               128,     IMAGE_BYTES + 1024, 0};
    memset(c->after, 0xee, sizeof c->after);
    emu_report_clear(report);
    assert_int_equal(emu_run(config, memory, &launch, 1, report), EMU_OK);
    emu_report_print(report, config, stderr);
    assert_int_equal(emu_report_count(report), 0);
    assert_int_equal(differences(c, n), 0);
}

static void test_all(void **state)
{
    (void)state;
    static const uint32_t n_e4m3[] = {8, 24, 64, 112, 256}, n_bf16[] = {8, 64, 128, 256};
    wgmma_case *c = malloc(sizeof *c);
    emu_memory *memory = emu_memory_create();
    emu_report *report = emu_report_create();
    uint64_t random = 5;
    int runs = 0;
    assert_non_null(c);
    assert_true(emu_memory_add(memory, c, sizeof *c, "case", EMU_READ_WRITE));
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
        for (int i = 0; i < 9; i++) {
            const emu_operand_type type = i < 5 ? EMU_E4M3 : EMU_BF16;
            const uint32_t n = i < 5 ? n_e4m3[i] : n_bf16[i - 5];
            make_case(c, &random, swizzle, n, type);
            for (int from_registers = 0; from_registers < 2; from_registers++, runs++) {
                const emu_config config =
                    schedule_numbered(runs % ALL_SCHEDULES, (uint64_t)runs, NULL, 0);
                run_case(c, memory, report, swizzle, n, type, from_registers != 0, &config);
            }
        }
    }
    assert_int_equal(runs, 4 * 9 * 2);
    emu_report_destroy(report);
    emu_memory_destroy(memory);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
