/* SPDX-License-Identifier: Apache-2.0 */
/*
 * d3: 1,024 bytes are expected, the box brings 2,048 (mirage-project/mirage#705): the phase can
 * never complete.
 *
 * expect: d at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 32)
{
    const smem_addr s = smem_base();
    const smem_addr full = SMEM_BAR(s, 0);
    init_barriers(s, 1, 1, 0, 0, 0);
    if (thread_index() == 0) {
#ifdef FIXED
        mbarrier_arrive_expect_tx(full, 2048);
#else
        mbarrier_arrive_expect_tx(full, 1024);
#endif
        bulk_load(SMEM_STAGING(s), p->in, 2048, full);
    }
    mbarrier_wait(full, 0); /* fault */
    global_store_u32((uint32_t *)p->out + thread_index(),
                     smem_load_u32(SMEM_STAGING(s) + thread_index() * 4u));
}

RACE_CASE(32, 1, 1, 0, 1);
