/* SPDX-License-Identifier: Apache-2.0 */
/*
 * j: the producer warp waits for the grid before, the consumer warp that reads scales does not
 * (NVIDIA/cutlass#3279, NVIDIA/TensorRT-LLM#14668).
 *
 * expect: j at fault
 */
#include "emulator/case.h"

KERNEL(CASE_FIRST, case_params, p, 64)
{
    grid_launch_dependents();
    global_store_u32((uint32_t *)p->mid + thread_index(), thread_index() * 3u);
}

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
    if (warp_index() == 1) {
        grid_dependency_wait();
        if (elect_one()) {
            mbarrier_arrive_expect_tx(full, 128);
            bulk_load(SMEM_STAGING(s), p->mid, 128, full);
        }
    } else {
        uint32_t scale;
#ifdef FIXED
        grid_dependency_wait();
#endif
        scale = global_load_u32((const uint32_t *)p->mid + 32 + lane_index()); /* fault */
        mbarrier_wait(full, 0);
        global_store_u32((uint32_t *)p->out + lane_index(),
                         scale + smem_load_u32(SMEM_STAGING(s) + lane_index() * 4u));
    }
}

RACE_PAIR(64);
