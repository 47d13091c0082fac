/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of gpu_test, in the order in which they run. */
#ifndef HALFBYTE_TESTS_GPU_TESTS_H
#define HALFBYTE_TESTS_GPU_TESTS_H

#include "gpu/session.h"

#define GPU_TESTS(X)                                                                               \
    X(convert)                                                                                     \
    X(arith)                                                                                       \
    X(execution)                                                                                   \
    X(matrices)                                                                                    \
    X(tma_load)                                                                                    \
    X(tma_narrow)                                                                                  \
    X(tma_store_2d)                                                                                \
    X(tma_store_3d)                                                                                \
    X(tma_reduce)                                                                                  \
    X(bulk)                                                                                        \
    X(multicast)                                                                                   \
    X(barriers)                                                                                    \
    X(dependent)                                                                                   \
    X(cp_async)                                                                                    \
    X(tensormap_edit)                                                                              \
    X(wgmma_e4m3_ss)                                                                               \
    X(wgmma_e4m3_rs)                                                                               \
    X(wgmma_bf16_ss)                                                                               \
    X(wgmma_bf16_rs)                                                                               \
    X(oracle_fp8)                                                                                  \
    X(oracle_w4a8)                                                                                 \
    X(gemm_fp8_kinds)                                                                              \
    X(gemm_random)                                                                                 \
    X(gemm_num_sms)                                                                                \
    X(gemm_repeat)                                                                                 \
    X(gemm_graph)                                                                                  \
    X(gemm_billion)                                                                                \
    X(gemm_far)                                                                                    \
    X(gemm_uneven)                                                                                 \
    X(gemm_repeat_groups)                                                                          \
    X(gemm_company)                                                                                \
    X(gemm_graph_sizes)                                                                            \
    X(gemm_calls)                                                                                  \
    X(gemm_host_cost)                                                                              \
    X(quantize)                                                                                    \
    X(quantize_graph)                                                                              \
    X(quantize_rate)                                                                               \
    X(gemm_w4a8_kinds)                                                                             \
    X(gemm_w4a8_public)                                                                            \
    X(gemm_w4a8_uneven)                                                                            \
    X(gemm_w4a8_by_size)                                                                           \
    X(gemm_w4a8_raw)                                                                               \
    X(gemm_w4a8_num_sms)                                                                           \
    X(gemm_w4a8_repeat)                                                                            \
    X(gemm_w4a8_repeat_groups)                                                                     \
    X(gemm_w4a8_company)                                                                           \
    X(gemm_w4a8_graph_sizes)                                                                       \
    X(gemm_w4a8_calls)                                                                             \
    X(gemm_w4a8_host_cost)                                                                         \
    X(gemm_w4a8_billion)                                                                           \
    X(gemm_w4a8_far)                                                                               \
    X(pack)                                                                                        \
    X(pack_graph)                                                                                  \
    X(pack_rate)                                                                                   \
    X(races)

typedef struct gpu_test_row {
    const char *name;
    void (*run)(session *s);
} gpu_test_row;

#define GPU_TEST_DECLARE_(name) void gpu_test_##name(session *s);
GPU_TESTS(GPU_TEST_DECLARE_)
#undef GPU_TEST_DECLARE_

#endif
