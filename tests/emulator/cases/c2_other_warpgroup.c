/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c2: two warpgroups read one tile; one waits for its own groups and refills the tile, as though
 * its wait were a barrier of the block (tile-ai/tilelang#2613: most runs wrong on H100, none on a
 * GPU without wgmma).
 *
 * expect: c2 at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 256)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    init_barriers(s, 1, 1, 0, 0, 0);
    load_operands(p, s);
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0); /* other */
    wgmma_commit();
    block_sync(); /* both have issued */
    wgmma_wait(0);
#ifdef FIXED
    block_sync(); /* both have waited */
#endif
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(SMEM_BAR(s, 0), A_BYTES);
        tma_load_2d(SMEM_A(s, 0), &p->a, SMEM_BAR(s, 0), 128, 64); /* fault */
    }
    mbarrier_wait(SMEM_BAR(s, 0), 0);
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 1);
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(256, 1, 1, 0, 1);
