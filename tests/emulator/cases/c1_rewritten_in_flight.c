/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c: ordinary stores prepare the next operand in the tile that wgmma still reads.
 *
 * expect: c at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    load_operands(p, s);
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0); /* other */
    wgmma_commit();
#ifdef FIXED
    wgmma_wait(0);
    block_sync();
#endif
    smem_store_u32(SMEM_B(s, 0) + thread_index() * 4u, 0x38383838u); /* fault */
    fence_proxy_async();
    block_sync();
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 1);
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
