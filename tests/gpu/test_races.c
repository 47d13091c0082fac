/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What racing code does on this GPU.  Each racing kernel runs many times beside its corrected twin;
 * wrong outputs of the racing one are counted and reported, not failed: that a race does not show
 * is no proof that it is none.  The twin must be right every time.
 */
#include <stdio.h>
#include <string.h>

#include "gpu/images.h"
#include "gpu/races/race.h"
#include "gpu/tests.h"
#include "model/arith.h"
#include "model/tensor_core.h"

enum { RACE_BLOCKS = 528, CROWDED_SMEM = RACE_SMEM_BYTES, ALONE_SMEM = 200 << 10 };

typedef struct race_row {
    const char *name;
    const void *image;
    float (*expect)(const race_params *p);
} race_row;

/* d + A * B of one instruction, all codes of a matrix equal. */
static float multiply(uint32_t a, uint32_t b, float d)
{
    uint16_t x[TENSOR_CORE_MAX_K];
    uint16_t y[TENSOR_CORE_MAX_K];
    for (int i = 0; i < TENSOR_CORE_MAX_K; i++) {
        x[i] = (uint16_t)(a & 255);
        y[i] = (uint16_t)(b & 255);
    }
    return float_from_bits(tensor_core_block(TENSOR_CORE_E4M3, x, y, bits_from_float(d)));
}

static float expect_scale(const race_params *p)
{
    float d = 0;
    for (int j = 0; j < 4; j++) {
        d = multiply(p->a[j], p->b, d);
    }
    return fma_rn(d, 1.5f, 0);
}

static float expect_loop(const race_params *p)
{
    float d = 0;
    float f = 0;
    for (uint32_t trip = 0; trip < p->trips; trip++) {
        d = multiply(p->a[trip], p->b, d);
        d = multiply(p->a[trip ^ 1], p->b, d);
        f = fma_rn(d, 1.5f, f);
    }
    return f;
}

static float expect_a_loop_local(const race_params *p)
{
    float d = 0;
    for (uint32_t trip = 0; trip < p->trips; trip++) {
        d = multiply(p->a[trip], p->b, d);
    }
    return d;
}

static float expect_smem(const race_params *p)
{
    float d = 0;
    for (uint32_t trip = 0; trip < p->trips; trip++) {
        for (int j = 0; j < 4; j++) {
            d = multiply(p->a[j], trip == 0 ? p->b : p->a[trip - 1], d);
        }
    }
    return d;
}

typedef struct race_count {
    int64_t executions, wrong_executions, outputs, wrong_outputs;
} race_count;

static void outputs_count(const float *out, float expected, size_t a_block, race_count *count)
{
    const uint32_t bits = bits_from_float(expected);
    for (size_t block = 0; block < RACE_BLOCKS; block++) {
        int64_t wrong = 0;
        for (size_t i = 0; i < a_block; i++) {
            wrong += bits_from_float(out[block * a_block + i]) != bits;
        }
        count->executions++;
        count->wrong_executions += wrong != 0;
        count->outputs += (int64_t)a_block;
        count->wrong_outputs += wrong;
    }
}

static race_count kernel_count(session *s, cuda_function function, race_params *params, uint32_t n,
                               unsigned smem_bytes, float expected)
{
    race_count count = {0, 0, 0, 0};
    const size_t a_block = 128 * (size_t)n / 2;
    const size_t bytes = RACE_BLOCKS * a_block * 4;
    float *out = session_host(bytes);
    session_reset(s);
    const cuda_pointer out_at = session_memory(s, bytes);
    params->out = session_pointer(out_at);
    for (int launch = 0; launch < (s->quick ? 2 : 20); launch++) {
        session_check(s, s->set_bytes(out_at, 0xa5, bytes), "cuMemsetD8");
        session_launch(s, function, RACE_BLOCKS, 128, smem_bytes, 1, params);
        session_download(s, out, out_at, bytes);
        outputs_count(out, expected, a_block, &count);
    }
    session_host_free(out);
    return count;
}

/* Racing and corrected kernel of one file at one n, with one block or several an SM. */
static void race_try(session *s, const race_row *row, cuda_module module, race_params *params,
                     uint32_t n, bool alone)
{
    char name[64];
    const unsigned smem_bytes = alone ? ALONE_SMEM : CROWDED_SMEM;
    race_count count[2];
    for (int fixed = 0; fixed < 2; fixed++) {
        snprintf(name, sizeof name, "%s_n%u", fixed ? "fixed" : "race", n);
        count[fixed] = kernel_count(s, session_function(s, module, name, ALONE_SMEM), params, n,
                                    smem_bytes, row->expect(params));
    }
    printf("  race %-16s n %3u %-7s %6lld of %6lld executions wrong, %9lld of %10lld outputs; "
           "corrected: %lld wrong\n",
           row->name, n, alone ? "alone" : "crowded", (long long)count[0].wrong_executions,
           (long long)count[0].executions, (long long)count[0].wrong_outputs,
           (long long)count[0].outputs, (long long)count[1].wrong_outputs);
    s->compared += count[1].outputs;
    s->different += count[1].wrong_outputs;
    snprintf(name, sizeof name, "%s_n%u_%s", row->name, n, alone ? "alone" : "crowded");
    session_figure(s, name, (double)count[0].wrong_outputs / (double)count[0].outputs);
}

void gpu_test_races(session *s)
{
    static const race_row rows[] = {
        {"wait3_of_4", kernel_image_race_scale_wait3_of_4, expect_scale},
        {"wait3_each", kernel_image_race_scale_wait3_each, expect_scale},
        {"loop_wait1_of_2", kernel_image_race_loop_wait1_of_2, expect_loop},
        {"a_loop_local", kernel_image_race_a_loop_local, expect_a_loop_local},
        {"smem_rewritten", kernel_image_race_smem_rewritten, expect_smem}};
    /* e4m3 1, 2, 4, 1/2, ... and B = 1: every sum is exact, and each trip's share is its own. */
    static const uint32_t a[RACE_MATRICES] = {0x38383838, 0x40404040, 0x48484848, 0x30303030,
                                              0xb8b8b8b8, 0x50505050, 0x28282828, 0xc0c0c0c0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const cuda_module module = session_module(s, rows[i].image);
        race_params params;
        memset(&params, 0, sizeof params);
        memcpy(params.a, a, sizeof a);
        params.b = 0x38383838;
        params.trips = RACE_MATRICES;
        for (int form = 0; form < 4; form++) {
            race_try(s, &rows[i], module, &params, form / 2 == 0 ? 8 : 128, form % 2 != 0);
        }
    }
}
