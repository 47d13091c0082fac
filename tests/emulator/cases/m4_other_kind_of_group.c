/* SPDX-License-Identifier: Apache-2.0 */
/*
 * m4: cp.async copies are committed and awaited as a bulk group: the two kinds of groups have
 * nothing to do with each other.
 *
 * expect: d at fault, other other
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr mine = SMEM_STAGING(s) + thread_index() * 16u;
    cp_async_16(mine, p->in + thread_index() * 16u); /* other */
#ifdef FIXED
    cp_async_commit();
    cp_async_wait(0);
#else
    bulk_commit();
    bulk_wait(0);
#endif
    global_store_u32((uint32_t *)p->out + thread_index(), smem_load_u32(mine)); /* fault */
    cp_async_commit();
    cp_async_wait(0);
}

RACE_CASE(32, 1, 1, 0, 1);
