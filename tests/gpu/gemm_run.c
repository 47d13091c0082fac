/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "gpu/gemm_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/gemm_select.h"
#include "api/problem_check.h"

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

const char *gemm_kernel_name(int index)
{
    static const char prefix[] = "halfbyte_sm90_";
    return kernel_table[index].name + sizeof prefix - 1;
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

bool gemm_serves(int index, const halfbyte_problem *problem)
{
    halfbyte_problem resolved = *problem;
    problem_resolve(&resolved, HALFBYTE_PROFILE_SM90);
    return gemm_kernel_accepts(index, &resolved);
}

bool gemm_serves_bare(int index, const halfbyte_problem *problem)
{
    halfbyte_problem with = *problem;
    with.bias_type = HALFBYTE_TYPE_BF16;
    return gemm_serves(index, problem) && !gemm_serves(index, &with);
}

bool gemm_serves_w4a8(halfbyte_b_layout layout)
{
    halfbyte_problem problem = gemm_fp8_problem(1, 8, 32, HALFBYTE_SCALE_MN_MAJOR);
    bool serves = false;
    problem.family = HALFBYTE_FAMILY_W4A8;
    problem.b_layout = layout;
    problem.b_scale.mode = HALFBYTE_SCALE_NONE;
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        serves = serves || gemm_serves(kernel, &problem);
    }
    return serves;
}

/* f32 scales [matrices, mn, kb], one matrix after the other; both sides are told where they are. */
static void scale_make(const session *s, const oracle_kernels *kernels, int64_t matrices,
                       int64_t mn, int64_t kb, halfbyte_scale_layout layout, uint64_t seed,
                       halfbyte_scale_in *scale, oracle_scale *oracle)
{
    const bool k_major = layout == HALFBYTE_SCALE_K_MAJOR;
    const uint64_t count = (uint64_t)(matrices * mn * kb);
    const cuda_pointer data = session_allocate(s, count * 4);
    oracle_fill_scales(s, kernels, data, count, seed);
    *scale =
        (halfbyte_scale_in){session_pointer(data), k_major ? kb : 1, k_major ? 1 : mn, mn * kb};
    memset(oracle, 0, sizeof *oracle);
    oracle->data = scale->data;
    oracle->group_stride = scale->group_stride;
    oracle->stride_mn = scale->stride_mn;
    oracle->stride_k = scale->stride_k;
    oracle->mn_block = 1;
    oracle->type = HALFBYTE_TYPE_F32;
    oracle->along_k = 1;
}

static int64_t groups_of(const gemm_shape *shape)
{
    return shape->groups > 0 ? shape->groups : 1;
}

static int64_t planes_of(const gemm_shape *shape)
{
    return shape->grouping == HALFBYTE_GROUPING_MASKED ? groups_of(shape) : 1;
}

static halfbyte_problem problem_make(const gemm_shape *shape)
{
    halfbyte_problem problem = gemm_fp8_problem(shape->m, shape->n, shape->k, shape->layout);
    problem.grouping = shape->grouping;
    problem.groups = groups_of(shape);
    problem.d_type = shape->d_type != HALFBYTE_TYPE_NONE ? shape->d_type : HALFBYTE_TYPE_BF16;
    if (shape->token_scales) {
        problem.a_scale.mode = HALFBYTE_SCALE_OUTER;
        problem.a_scale.layout = HALFBYTE_SCALE_MN_MAJOR; /* they have one dimension */
    }
    if (shape->family == HALFBYTE_FAMILY_W4A8) {
        problem.family = HALFBYTE_FAMILY_W4A8;
        problem.b_layout = HALFBYTE_B_PACKED;
        problem.b_scale.mode = HALFBYTE_SCALE_K_GROUP;
        problem.b_scale.type = HALFBYTE_TYPE_F32;
        problem.weight_group_size = 128;
    }
    return problem;
}

bool gemm_serves_shape(int index, const gemm_shape *shape)
{
    const halfbyte_problem problem = problem_make(shape);
    return gemm_serves(index, &problem);
}

gemm_shape gemm_shape_for(int index, const gemm_shape *shape)
{
    gemm_shape with = *shape;
    with.token_scales = !gemm_serves_shape(index, shape);
    return with.token_scales && gemm_serves_shape(index, &with) ? with : *shape;
}

/* Groups of no, few and many rows, which together own all of them; the group of each row. */
static void groups_make(const session *s, const gemm_shape *shape, gemm_device_data *data)
{
    const int64_t groups = groups_of(shape);
    const int64_t rows = shape->m * planes_of(shape);
    int32_t *group_of = session_host((size_t)rows * sizeof *group_of);
    int32_t *ends = session_host((size_t)groups * sizeof *ends);
    int64_t at = 0;
    for (int64_t g = 0; g < groups; g++) {
        const int64_t even = (g + 1) * shape->m / groups;
        int64_t end = g % 3 == 0 ? even - (even - at) / 3 : g % 3 == 1 ? even - even % 2 : even;
        end = g == groups - 1 ? shape->m : end < at ? at : end;
        end = shape->rows != NULL ? at + shape->rows[g] : end;
        ends[g] = (int32_t)end;
        for (; at < end && planes_of(shape) == 1; at++) {
            group_of[at] = (int32_t)g;
        }
    }
    for (int64_t row = 0; planes_of(shape) > 1 && row < rows; row++) {
        group_of[row] = (int32_t)(row / shape->m);
    }
    const cuda_pointer group_at = session_allocate(s, (size_t)rows * sizeof *group_of);
    session_check(s, s->to_device(group_at, group_of, (size_t)rows * sizeof *group_of),
                  "cuMemcpyHtoD");
    data->oracle.row_group = session_pointer(group_at);
    data->oracle.rows = rows;
    data->oracle.rows_a_group = planes_of(shape) > 1 ? shape->m : 0;
    if (shape->grouping == HALFBYTE_GROUPING_RANGES) {
        const cuda_pointer ends_at = session_allocate(s, (size_t)groups * sizeof *ends);
        session_check(s, s->to_device(ends_at, ends, (size_t)groups * sizeof *ends),
                      "cuMemcpyHtoD");
        data->operands.groups.ends = session_pointer(ends_at);
    }
    session_host_free(ends);
    session_host_free(group_of);
}

static cuda_pointer matrix_make(const session *s, const oracle_kernels *kernels, uint64_t bytes,
                                uint64_t seed, int kind)
{
    const cuda_pointer matrix = session_allocate(s, bytes);
    oracle_fill_bytes(s, kernels, matrix, bytes, seed, kind);
    return matrix;
}

/* Packed on the GPU, from the very weights that the oracle reads. */
static void weights_pack(const session *s, const gemm_shape *shape, int64_t ld, cuda_pointer raw,
                         gemm_device_data *data)
{
    halfbyte_device *const device = gemm_device(HALFBYTE_EXECUTOR_GPU);
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    size_t bytes = 0;
    desc.n = shape->n;
    desc.k = shape->k;
    desc.groups = groups_of(shape);
    desc.ld = ld;
    desc.group_stride = shape->n * ld;
    desc.weight_group_size = 128;
    halfbyte_status status = halfbyte_packed_weights_bytes(&desc, &bytes);
    const cuda_pointer packed = session_allocate(s, bytes);
    if (status == HALFBYTE_SUCCESS) {
        status = halfbyte_pack_weights(device, &desc, session_pointer(raw), session_pointer(packed),
                                       bytes, &data->header, NULL);
    }
    if (status != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    session_wait(s);
    data->operands.b = (halfbyte_matrix_in){session_pointer(packed), 0, 0};
    data->operands.b_header = &data->header;
    halfbyte_device_close(device);
}

static void matrices_make(const session *s, const oracle_kernels *kernels, const gemm_shape *shape,
                          uint64_t seed, int kind, gemm_device_data *data)
{
    const bool int4 = shape->family == HALFBYTE_FAMILY_W4A8;
    const int64_t ld = (shape->k + 31) / 32 * 32;
    const int64_t planes = planes_of(shape);
    const uint64_t b_elements = (uint64_t)(groups_of(shape) * shape->n * ld);
    const cuda_pointer a =
        matrix_make(s, kernels, (uint64_t)(planes * shape->m * ld), seed * 4 + 1, kind);
    const cuda_pointer b = matrix_make(s, kernels, int4 ? b_elements / 2 : b_elements, seed * 4 + 2,
                                       int4 ? FILL_ANY : kind);
    data->operands.a = (halfbyte_matrix_in){session_pointer(a), ld, shape->m * ld};
    data->operands.b = (halfbyte_matrix_in){session_pointer(b), ld, shape->n * ld};
    data->oracle.a = (oracle_matrix){session_pointer(a), ld, shape->m * ld, HALFBYTE_TYPE_E4M3, 0};
    data->oracle.b = (oracle_matrix){session_pointer(b), ld, shape->n * ld,
                                     int4 ? HALFBYTE_TYPE_INT4 : HALFBYTE_TYPE_E4M3, 0};
    data->oracle.int4 = int4;
    if (int4) {
        weights_pack(s, shape, ld, b, data);
    }
}

void gemm_data_make(const session *s, const oracle_kernels *kernels, const gemm_shape *shape,
                    uint64_t seed, int kind, gemm_device_data *data)
{
    const int64_t kb = (shape->k + 127) / 128;
    const int64_t outputs = planes_of(shape) * shape->m * shape->n;
    const bool int4 = shape->family == HALFBYTE_FAMILY_W4A8;
    memset(data, 0, sizeof *data);
    data->problem = problem_make(shape);
    data->operands = halfbyte_operands_init();
    data->operands.m = shape->m;
    data->d_bytes = (uint64_t)outputs * (uint64_t)halfbyte_type_bits(data->problem.d_type) / 8;
    matrices_make(s, kernels, shape, seed, kind, data);
    data->operands.d = (halfbyte_matrix_out){session_pointer(session_allocate(s, data->d_bytes)),
                                             shape->n, shape->m * shape->n};
    scale_make(s, kernels, planes_of(shape), shape->m, shape->token_scales ? 1 : kb, shape->layout,
               seed * 4 + 3, &data->operands.a_scale, &data->oracle.a_scale);
    data->oracle.a_scale.along_k = !shape->token_scales;
    if (planes_of(shape) == 1) {
        data->oracle.a_scale.group_stride = 0; /* rows of A know no groups */
    }
    scale_make(s, kernels, groups_of(shape), int4 ? shape->n : (shape->n + 127) / 128, kb,
               shape->layout, seed * 4 + 4, &data->operands.b_scale, &data->oracle.b_scale);
    data->oracle.b_scale.mn_block = int4 ? 1 : 128;
    groups_make(s, shape, data);
    data->oracle.n = shape->n;
    data->oracle.k = shape->k;
    data->oracle.block = 128;
    data->oracle.k_splits = 1;
    session_wait(s);
    gemm_poison(s, data);
}

cuda_pointer gemm_oracle(const session *s, const oracle_kernels *kernels,
                         const gemm_device_data *data)
{
    const cuda_pointer d = session_allocate(s, data->d_bytes);
    oracle_params params = data->oracle;
    session_check(s, s->set_bytes(d, 0x5a, data->d_bytes), "cuMemsetD8");
    params.d = (oracle_matrix){session_pointer(d), data->problem.n, data->operands.d.group_stride,
                               (int32_t)data->problem.d_type, 0};
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

/* What differs is counted in bytes, at least one an element. */
void gemm_compare(session *s, const oracle_kernels *kernels, const char *what,
                  const gemm_device_data *data, cuda_pointer expected)
{
    const int64_t element = halfbyte_type_bits(data->problem.d_type) / 8;
    uint64_t first = 0;
    const uint64_t different =
        oracle_compare(s, kernels, (cuda_pointer)(uintptr_t)data->operands.d.data, expected,
                       data->d_bytes, &first);
    s->compared += (int64_t)data->d_bytes / element;
    s->different += (int64_t)different;
    if (different != 0) {
        const int64_t at = (int64_t)first / element;
        printf("  %s: %llu bytes differ, the first at row %lld, column %lld\n", what,
               (unsigned long long)different, (long long)(at / data->problem.n),
               (long long)(at % data->problem.n));
    }
}
