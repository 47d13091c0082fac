/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l: the same, cured by a bulk group that waits for the reading of the map alone
 * (sgl-project/sglang#9392, NVIDIA/TensorRT-LLM#7072: the W4A8 grouped GEMM).
 *
 * expect: l at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    init_barriers(s, 2, 1, 1, 0, 0);
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(SMEM_BAR(s, 0), B_BYTES);
        tma_load_2d(SMEM_B(s, 0), p->maps, SMEM_BAR(s, 0), 0, 0); /* other */
#ifdef FIXED
        bulk_commit();
        bulk_wait_read(0);
#endif
        tensormap_replace_global_address(p->maps, p->in + 2048); /* fault */
        fence_proxy_tensormap_release();
        fence_proxy_tensormap_acquire(p->maps);
        mbarrier_arrive_expect_tx(SMEM_BAR(s, 1), B_BYTES);
        tma_load_2d(SMEM_B(s, 1), p->maps, SMEM_BAR(s, 1), 0, 0);
    }
    mbarrier_wait(SMEM_BAR(s, 0), 0);
    mbarrier_wait(SMEM_BAR(s, 1), 0);
    global_store_u32((uint32_t *)p->out + thread_index(),
                     smem_load_u32(SMEM_B(s, 0) + thread_index() * 4u) ^
                         smem_load_u32(SMEM_B(s, 1) + thread_index() * 4u));
}

RACE_CASE(32, 1, 1, 0, 1);
