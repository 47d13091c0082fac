/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/oracle_run.h"

#include "gpu/images.h"

enum { ORACLE_THREADS = 128, FILL_BLOCKS = 2048 };

oracle_kernels oracle_load_kernels(const session *s)
{
    const cuda_module module = session_module(s, kernel_image_oracle);
    const oracle_kernels kernels = {session_function(s, module, "oracle_gemm", 0),
                                    session_function(s, module, "fill_bytes", 0),
                                    session_function(s, module, "fill_scales", 0),
                                    session_function(s, module, "compare_bytes", 0)};
    return kernels;
}

void oracle_gemm_run(const session *s, const oracle_kernels *kernels, oracle_params *params)
{
    const int64_t outputs = params->rows * params->n;
    void *parameters[1] = {params};
    if (outputs > 0) {
        session_start(s, kernels->gemm, (unsigned)((outputs + ORACLE_THREADS - 1) / ORACLE_THREADS),
                      ORACLE_THREADS, parameters);
    }
    session_wait(s);
}

void oracle_fill_bytes(const session *s, const oracle_kernels *kernels, cuda_pointer data,
                       uint64_t bytes, uint64_t seed, int kind)
{
    void *parameters[4] = {&data, &bytes, &seed, &kind};
    session_start(s, kernels->fill_bytes, FILL_BLOCKS, 256, parameters);
}

void oracle_fill_scales(const session *s, const oracle_kernels *kernels, cuda_pointer data,
                        uint64_t count, uint64_t seed)
{
    void *parameters[3] = {&data, &count, &seed};
    session_start(s, kernels->fill_scales, FILL_BLOCKS, 256, parameters);
}

uint64_t oracle_compare(session *s, const oracle_kernels *kernels, cuda_pointer x, cuda_pointer y,
                        uint64_t bytes, uint64_t *first)
{
    uint64_t result[3] = {0, UINT64_MAX, 0};
    cuda_pointer result_at = session_upload(s, result, sizeof result);
    void *parameters[4] = {&x, &y, &bytes, &result_at};
    session_start(s, kernels->compare_bytes, FILL_BLOCKS, 256, parameters);
    session_wait(s);
    session_download(s, result, result_at, sizeof result);
    session_expect(s, "the comparison on the GPU saw every byte", result[2] == bytes);
    *first = result[1];
    return result[0];
}
