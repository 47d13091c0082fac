/* SPDX-License-Identifier: Apache-2.0 */
/*
 * n: one warp of the producer warpgroup gives registers back, three do not.
 *
 * expect: n at fault
 */
#include "emulator/case.h"

KERNEL(CASE_KERNEL, case_params, p, 384)
{
    if (warp_index() < 4) {
#ifdef FIXED
        setmaxnreg_dec(40);
#else
        if (warp_index() == 0) {
            setmaxnreg_dec(40);
        }
#endif
    } else {
        setmaxnreg_inc(232); /* fault */
    }
    global_store_u32((uint32_t *)p->out + thread_index(), thread_index());
}

RACE_CASE(384, 1, 1, 168, 1);
