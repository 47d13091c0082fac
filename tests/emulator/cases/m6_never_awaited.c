/* SPDX-License-Identifier: Apache-2.0 */
/*
 * m: the kernel ends with a wgmma group that nobody waited for.
 *
 * expect: m at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 128)
{
    const smem_addr s = smem_base();
    FRAGMENT_F32(acc, 4);
    load_operands(p, s);
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
    wgmma_fence();
    wgmma_e4m3_ss_n8(acc, DESC_A(s, 0), DESC_B(s, 0), 0); /* fault */
    wgmma_commit();
#ifdef FIXED
    wgmma_wait(0);
#endif
}

RACE_CASE(128, 1, 1, 0, 1);
