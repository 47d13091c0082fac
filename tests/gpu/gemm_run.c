/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "gpu/gemm_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gemm_choose(int index)
{
    static char others[64 * 96];
    others[0] = '\0';
    for (int i = 0; index != GEMM_ANY_KERNEL && i < KERNEL_COUNT; i++) {
        if (i != index) {
            const size_t used = strlen(others);
            snprintf(others + used, sizeof others - used, "%s,", kernel_table[i].name);
        }
    }
    setenv("HALFBYTE_SKIP_KERNELS", others, 1);
}

halfbyte_device *gemm_device(halfbyte_executor executor)
{
    halfbyte_device *device = NULL;
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = executor;
    if (halfbyte_device_open(&device, &options) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    return device;
}

bool gemm_run_once(session *s, halfbyte_device *device, const halfbyte_problem *problem,
                   const halfbyte_operands *operands)
{
    halfbyte_plan *plan = NULL;
    halfbyte_status status = halfbyte_plan_create(&plan, problem, device);
    if (status == HALFBYTE_SUCCESS) {
        status = halfbyte_run(plan, operands, NULL, 0, NULL);
    }
    session_wait(s);
    halfbyte_plan_destroy(plan);
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    return status == HALFBYTE_SUCCESS;
}

halfbyte_problem gemm_fp8_problem(int64_t m, int64_t n, int64_t k, halfbyte_scale_layout layout)
{
    halfbyte_problem problem = halfbyte_problem_init();
    problem.family = HALFBYTE_FAMILY_FP8;
    problem.m_max = m;
    problem.n = n;
    problem.k = k;
    problem.d_type = HALFBYTE_TYPE_BF16;
    problem.a_scale.mode = HALFBYTE_SCALE_1X128;
    problem.a_scale.layout = layout;
    problem.b_scale.mode = HALFBYTE_SCALE_128X128;
    problem.b_scale.layout = layout;
    return problem;
}

static halfbyte_scale_in scale_make(const session *s, const oracle_kernels *kernels, int64_t mn,
                                    int64_t kb, halfbyte_scale_layout layout, uint64_t seed)
{
    const bool k_major = layout == HALFBYTE_SCALE_K_MAJOR;
    const uint64_t count = (uint64_t)(mn * kb);
    const cuda_pointer data = session_allocate(s, count * 4);
    oracle_fill_scales(s, kernels, data, count, seed);
    const halfbyte_scale_in scale = {session_pointer(data), k_major ? kb : 1, k_major ? 1 : mn, 0};
    return scale;
}

static oracle_scale oracle_scale_of(const halfbyte_scale_in *scale, int32_t mn_block)
{
    oracle_scale o;
    memset(&o, 0, sizeof o);
    o.data = scale->data;
    o.stride_mn = scale->stride_mn;
    o.stride_k = scale->stride_k;
    o.mn_block = mn_block;
    o.type = HALFBYTE_TYPE_F32;
    o.along_k = 1;
    return o;
}

gemm_device_data gemm_data_make(const session *s, const oracle_kernels *kernels, int64_t m,
                                int64_t n, int64_t k, halfbyte_scale_layout layout, uint64_t seed,
                                int kind)
{
    gemm_device_data data;
    const int64_t ld = (k + 15) / 16 * 16;
    const int64_t kb = (k + 127) / 128;
    memset(&data, 0, sizeof data);
    data.problem = gemm_fp8_problem(m, n, k, layout);
    data.operands = halfbyte_operands_init();
    data.d_bytes = (uint64_t)(m * n) * 2;
    const cuda_pointer a = session_allocate(s, (size_t)(m * ld));
    const cuda_pointer b = session_allocate(s, (size_t)(n * ld));
    oracle_fill_bytes(s, kernels, a, (uint64_t)(m * ld), seed * 4 + 1, kind);
    oracle_fill_bytes(s, kernels, b, (uint64_t)(n * ld), seed * 4 + 2, kind);
    data.operands.m = m;
    data.operands.a = (halfbyte_matrix_in){session_pointer(a), ld, 0};
    data.operands.b = (halfbyte_matrix_in){session_pointer(b), ld, 0};
    data.operands.d =
        (halfbyte_matrix_out){session_pointer(session_allocate(s, data.d_bytes)), n, 0};
    data.operands.a_scale = scale_make(s, kernels, m, kb, layout, seed * 4 + 3);
    data.operands.b_scale = scale_make(s, kernels, (n + 127) / 128, kb, layout, seed * 4 + 4);
    data.oracle.a = (oracle_matrix){session_pointer(a), ld, 0, HALFBYTE_TYPE_E4M3, 0};
    data.oracle.b = (oracle_matrix){session_pointer(b), ld, 0, HALFBYTE_TYPE_E4M3, 0};
    data.oracle.a_scale = oracle_scale_of(&data.operands.a_scale, 1);
    data.oracle.b_scale = oracle_scale_of(&data.operands.b_scale, 128);
    data.oracle.rows = m;
    data.oracle.n = n;
    data.oracle.k = k;
    data.oracle.block = 128;
    data.oracle.k_splits = 1;
    session_wait(s);
    gemm_poison(s, &data);
    return data;
}

cuda_pointer gemm_oracle(const session *s, const oracle_kernels *kernels,
                         const gemm_device_data *data)
{
    const cuda_pointer d = session_allocate(s, data->d_bytes);
    oracle_params params = data->oracle;
    session_check(s, s->set_bytes(d, 0x5a, data->d_bytes), "cuMemsetD8");
    params.d = (oracle_matrix){session_pointer(d), data->problem.n, 0, HALFBYTE_TYPE_BF16, 0};
    oracle_gemm_run(s, kernels, &params);
    return d;
}

void gemm_poison(const session *s, const gemm_device_data *data)
{
    session_check(s,
                  s->set_bytes((cuda_pointer)(uintptr_t)data->operands.d.data, 0xa5, data->d_bytes),
                  "cuMemsetD8");
    session_wait(s);
}

/* Two bytes an element: what differs is counted in bytes, at least one an element. */
void gemm_compare(session *s, const oracle_kernels *kernels, const char *what,
                  const gemm_device_data *data, cuda_pointer expected)
{
    uint64_t first = 0;
    const uint64_t different =
        oracle_compare(s, kernels, (cuda_pointer)(uintptr_t)data->operands.d.data, expected,
                       data->d_bytes, &first);
    s->compared += (int64_t)(data->d_bytes / 2);
    s->different += (int64_t)different;
    if (different != 0) {
        const int64_t element = (int64_t)(first / 2);
        printf("  %s: %llu bytes differ, the first at row %lld, column %lld\n", what,
               (unsigned long long)different, (long long)(element / data->problem.n),
               (long long)(element % data->problem.n));
    }
}
