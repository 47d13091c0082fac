/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h: a barrier is initialised anew for each tile while it lives.
 *
 * expect: h at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr bar = SMEM_BAR(s, 0);
    int32_t tile;
    for (tile = 0; tile < p->tiles; tile++) {
        if (thread_index() == 0) {
#ifdef FIXED
            if (tile != 0) {
                mbarrier_inval(bar);
            }
#endif
            mbarrier_init(bar, 1); /* fault */
            fence_mbarrier_init();
        }
        block_sync();
        if (thread_index() == 0) {
            mbarrier_arrive(bar);
        }
        mbarrier_wait(bar, 0);
        block_sync();
    }
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
}

RACE_CASE(32, 1, 1, 0, 2);
