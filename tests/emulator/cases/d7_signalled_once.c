/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d: a barrier that orders two roles is waited for in every tile, but signalled in the first alone
 * (NVIDIA/cutlass#2172: a hang with beta = 1).
 *
 * expect: d at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 64)
{
    const smem_addr s = smem_base();
    const smem_addr order = SMEM_BAR(s, 0);
    int32_t tile;
    init_barriers(s, 1, 1, 0, 0, 0);
    if (thread_index() == 0) {
        mbarrier_arrive(order);
    } else if (thread_index() == 32) {
        for (tile = 0; tile < p->tiles; tile++) {
#ifdef FIXED
            if (tile == 0) {
                mbarrier_wait(order, 0);
            }
#else
            mbarrier_wait(order, (uint32_t)tile & 1u); /* fault */
#endif
            global_store_u32((uint32_t *)p->out + tile, (uint32_t)tile);
        }
    }
}

RACE_CASE(64, 1, 1, 0, 3);
