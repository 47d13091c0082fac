/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gpu_executor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/error.h"
#include "kernels/gemm_fp8_params.h"

static bool has_plain_epilogue(const halfbyte_problem *problem)
{
    return problem->alpha_mode == HALFBYTE_ALPHA_NONE && problem->c_type == HALFBYTE_TYPE_NONE &&
           problem->bias_type == HALFBYTE_TYPE_NONE &&
           problem->channel_scale_type == HALFBYTE_TYPE_NONE;
}

static bool accepts_fp8_block_dense(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_FP8 && problem->grouping == HALFBYTE_GROUPING_DENSE &&
           problem->a_scale.mode == HALFBYTE_SCALE_1X128 &&
           problem->b_scale.mode == HALFBYTE_SCALE_128X128 &&
           problem->d_type == HALFBYTE_TYPE_BF16 && problem->k_splits == 1 &&
           has_plain_epilogue(problem);
}

typedef bool accept_function(const halfbyte_problem *problem);

static accept_function *const accepts_table[] = {
#define KERNEL_ROW(name, threads, smem_bytes, tile_m, tile_n, cluster, most_m, accepts) accepts,
#include "api/kernels.def"
#undef KERNEL_ROW
};
_Static_assert(KERNEL_COUNT <= 64, "gpu_kernel_set has a bit for each kernel");

static halfbyte_status fail(const cuda_status *status)
{
    return status_fail(status->status, "%s", status->text);
}

/* Does a word of HALFBYTE_SKIP_KERNELS occur in the name? */
static bool is_skipped(const char *name)
{
    const char *words = getenv("HALFBYTE_SKIP_KERNELS");
    while (words != NULL && *words != '\0') {
        const size_t length = strcspn(words, ",");
        for (const char *at = name; length > 0 && *at != '\0'; at++) {
            if (strncmp(at, words, length) == 0) {
                return true;
            }
        }
        words += length + (words[length] == ',');
    }
    return false;
}

halfbyte_status gpu_plan_select(gpu *device, const halfbyte_problem *problem,
                                gpu_kernel_set *kernels)
{
    gpu_kernel_set found = 0;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        const kernel_row *row = &kernel_table[i];
        if (row->image == NULL || !accepts_table[i](problem) || is_skipped(row->name)) {
            continue;
        }
        cuda_function function;
        const cuda_status status = gpu_kernel(device, i, &function);
        if (status.status != HALFBYTE_SUCCESS) {
            return fail(&status);
        }
        found |= (gpu_kernel_set)1 << i;
        if (row->most_m == 0 || row->most_m >= problem->m_max) {
            *kernels = found; /* no run reaches the rows behind it */
            return HALFBYTE_SUCCESS;
        }
    }
    return status_fail(HALFBYTE_ERR_UNSUPPORTED,
                       "no GPU kernel of this version serves the problem; they serve: family FP8, "
                       "grouping DENSE, a_scale 1X128, b_scale 128X128, d_type bf16, k_splits 1, "
                       "no alpha, C, bias or channel scale");
}

static bool contains(gpu_kernel_set kernels, int kernel)
{
    return (kernels >> kernel & 1) != 0;
}

void gpu_plan_describe(describe_line *line, gpu_kernel_set kernels)
{
    const char *separator = " kernels=";
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (contains(kernels, i)) {
            describe_add(line, "%s%s", separator, kernel_table[i].name);
            separator = ",";
            if (kernel_table[i].most_m != 0) {
                describe_add(line, "(m<=%u)", (unsigned)kernel_table[i].most_m);
            }
        }
    }
}

/* The set was closed by a kernel for any m, or for the plan's m_max, so one is always found. */
static int kernel_for(gpu_kernel_set kernels, int64_t m)
{
    int kernel = 0;
    while (!contains(kernels, kernel) ||
           (kernel_table[kernel].most_m != 0 && kernel_table[kernel].most_m < m)) {
        kernel++;
    }
    return kernel;
}

/* One row has no stride that matters, so the smallest that the copy engine takes stands in. */
static uint64_t row_stride(int64_t rows, int64_t ld, int64_t columns)
{
    return rows > 1 ? (uint64_t)ld : ((uint64_t)columns + 15) / 16 * 16;
}

static cuda_status maps_encode(const gpu *device, const kernel_row *row,
                               const halfbyte_problem *problem, const halfbyte_operands *operands,
                               gemm_fp8_params *params)
{
    const uint64_t k = (uint64_t)problem->k;
    const gpu_matrix_map a = {operands->a.data,
                              k,
                              (uint64_t)operands->m,
                              row_stride(operands->m, operands->a.ld, problem->k),
                              128,
                              row->tile_m};
    const gpu_matrix_map b = {operands->b.data,
                              k,
                              (uint64_t)problem->n,
                              row_stride(problem->n, operands->b.ld, problem->k),
                              128,
                              row->tile_n};
    const cuda_status status = gpu_matrix_map_encode(device, &a, &params->a);
    return status.status == HALFBYTE_SUCCESS ? gpu_matrix_map_encode(device, &b, &params->b)
                                             : status;
}

/* Strides of a scale tensor of 1X128 or 128X128 in either layout. */
static void scale_strides(const halfbyte_scale_spec *spec, const halfbyte_scale_in *scale,
                          int64_t *stride_mn, int64_t *stride_k)
{
    const bool mn_major = spec->layout == HALFBYTE_SCALE_MN_MAJOR;
    *stride_mn = mn_major ? 1 : scale->stride_mn;
    *stride_k = mn_major ? scale->stride_k : 1;
}

static void params_fill(const halfbyte_problem *problem, const halfbyte_operands *operands,
                        gemm_fp8_params *params)
{
    params->a_scale = operands->a_scale.data;
    params->b_scale = operands->b_scale.data;
    params->d = operands->d.data;
    scale_strides(&problem->a_scale, &operands->a_scale, &params->a_scale_stride_m,
                  &params->a_scale_stride_k);
    scale_strides(&problem->b_scale, &operands->b_scale, &params->b_scale_stride_n,
                  &params->b_scale_stride_k);
    params->ldd = operands->d.ld;
    params->m = (int32_t)operands->m;
    params->n = (int32_t)problem->n;
    params->k_blocks = (int32_t)((problem->k + 127) / 128);
    params->d_pairs = (uintptr_t)params->d % 4 == 0 && params->ldd % 2 == 0;
    params->d_groups = (uintptr_t)params->d % 16 == 0 && params->ldd % 8 == 0 && params->n % 8 == 0;
}

static unsigned blocks_to_launch(const gpu *device, const kernel_row *row,
                                 const halfbyte_problem *problem, int64_t m)
{
    const int64_t tiles =
        ((m + row->tile_m - 1) / row->tile_m) * ((problem->n + row->tile_n - 1) / row->tile_n);
    int64_t blocks = device->sm_count;
    if (problem->num_sms > 0 && problem->num_sms < blocks) {
        blocks = problem->num_sms;
    }
    return (unsigned)(tiles < blocks ? tiles : blocks);
}

halfbyte_status gpu_plan_run(gpu *device, gpu_kernel_set kernels, const halfbyte_problem *problem,
                             const halfbyte_operands *operands, halfbyte_stream stream)
{
    const int kernel = kernel_for(kernels, operands->m);
    const kernel_row *row = &kernel_table[kernel];
    gemm_fp8_params params;
    memset(&params, 0, sizeof params);
    if (problem->k > 0) {
        const cuda_status encoded = maps_encode(device, row, problem, operands, &params);
        if (encoded.status != HALFBYTE_SUCCESS) {
            return fail(&encoded);
        }
    }
    params_fill(problem, operands, &params);
    const gpu_launch launch = {device->kernels[kernel].function,
                               blocks_to_launch(device, row, problem, operands->m),
                               row->threads,
                               row->smem_bytes,
                               row->cluster,
                               0,
                               stream};
    const cuda_status launched = gpu_launch_kernel(device, &launch, &params);
    return launched.status == HALFBYTE_SUCCESS ? HALFBYTE_SUCCESS : fail(&launched);
}
