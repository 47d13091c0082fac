/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 256 experts whose loads are uneven, at a model's extents, by every kernel that serves them and
 * against the GPU oracle: all tokens at one expert, one token each, Zipf.
 */
#include <stdio.h>

#include "bench/expert_loads.h"
#include "gpu/gemm_run.h"
#include "gpu/tests.h"

enum { EXPERTS = 256, TOKENS = 2048, TOP = 8, LOADS = 3 };

static const char *const load_names[LOADS] = {"one", "each", "zipf"};

/* Rows of each expert; returns their sum. */
static int64_t load_make(int load, uint64_t seed, int64_t rows[EXPERTS])
{
    int64_t sum = 0;
    if (load == 2) {
        expert_loads_zipf(TOKENS, TOP, EXPERTS, seed, rows);
    }
    for (int e = 0; e < EXPERTS; e++) {
        rows[e] = load == 0 ? (e == 97 ? TOKENS : 0) : load == 1 ? 1 : rows[e];
        sum += rows[e];
    }
    return sum;
}

static void memory_free(const session *s, const void *memory)
{
    session_free(s, (cuda_pointer)(uintptr_t)memory);
}

static void shape_run(session *s, const oracle_kernels *kernels, halfbyte_device *on_gpu,
                      const gemm_shape *shape, const char *name)
{
    gemm_device_data data;
    int served = 0;
    session_doing(name);
    gemm_data_make(s, kernels, shape, s->seed, FILL_NORMAL, &data);
    const cuda_pointer expected = gemm_oracle(s, kernels, &data);
    for (int kernel = GEMM_ANY_KERNEL; kernel < KERNEL_COUNT; kernel++) {
        const bool any = kernel == GEMM_ANY_KERNEL;
        if (!any && !gemm_serves(kernel, &data.problem)) {
            continue;
        }
        gemm_choose(kernel);
        gemm_poison(s, &data);
        if (gemm_run_once(s, on_gpu, &data.problem, &data.operands)) {
            gemm_compare(s, kernels, any ? name : kernel_table[kernel].name, &data, expected);
        }
        served++;
    }
    session_figure(s, name, served);
    session_free(s, expected);
    if (data.oracle.b.data != data.operands.b.data) {
        memory_free(s, data.oracle.b.data);
    }
    memory_free(s, data.operands.a.data);
    memory_free(s, data.operands.b.data);
    memory_free(s, data.operands.d.data);
}

/* quick: narrower, with as many experts. */
static void uneven_run(session *s, halfbyte_family family)
{
    static const int64_t extents[2][2] = {{4096, 7168}, {7168, 2048}};
    const oracle_kernels kernels = oracle_load_kernels(s);
    halfbyte_device *on_gpu = gemm_device(HALFBYTE_EXECUTOR_GPU);
    for (int i = 0; i < 2 * LOADS; i++) {
        int64_t rows[EXPERTS];
        const int64_t *extent = extents[i / LOADS];
        const gemm_shape shape = {.family = family,
                                  .m = load_make(i % LOADS, s->seed, rows),
                                  .n = s->quick ? extent[0] / 64 : extent[0],
                                  .k = s->quick ? extent[1] / 32 : extent[1],
                                  .grouping = HALFBYTE_GROUPING_RANGES,
                                  .groups = EXPERTS,
                                  .rows = rows,
                                  .token_scales = family == HALFBYTE_FAMILY_W4A8};
        char name[64];
        snprintf(name, sizeof name, "%s_n%lld_k%lld", load_names[i % LOADS], (long long)extent[0],
                 (long long)extent[1]);
        shape_run(s, &kernels, on_gpu, &shape, name);
    }
    halfbyte_device_close(on_gpu);
}

void gpu_test_gemm_uneven(session *s)
{
    uneven_run(s, HALFBYTE_FAMILY_FP8);
}

void gpu_test_gemm_w4a8_uneven(session *s)
{
    uneven_run(s, HALFBYTE_FAMILY_W4A8);
}
