/* SPDX-License-Identifier: Apache-2.0 */
/*
 * e: operands written by ordinary stores, no proxy fence before wgmma reads them
 * (tile-ai/tilelang#2634, HazyResearch/ThunderKittens@51ec35eb).
 *
 * expect: e at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    load_operands(p, s);
    smem_store_u32(SMEM_B(s, 1) + thread_index() * 4u, 0x38393a3bu);        /* other */
    smem_store_u32(SMEM_B(s, 1) + 512u + thread_index() * 4u, 0x30313233u); /* other */
#ifdef FIXED
    fence_proxy_async();
#endif
    block_sync();
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 1), 0); /* fault */
    wgmma_commit();
    wgmma_wait(0);
    store_result(p, acc);
}

RACE_CASE(128, 1, 1, 0, 1);
