/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary accesses: lanes exchange values through shared memory without a warp sync.
 *
 * expect: race at load, other store
 * expect: race at store, other load
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = SMEM_STAGING(smem_base());
    uint32_t value;
    smem_store_u32(s + lane_index() * 4u, lane_index() * 5u); /* store */
#ifdef FIXED
    warp_sync();
#endif
    value = smem_load_u32(s + (lane_index() ^ 1u) * 4u); /* load */
    global_store_u32((uint32_t *)p->out + lane_index(), value);
}

RACE_CASE(32, 1, 1, 0, 1);
