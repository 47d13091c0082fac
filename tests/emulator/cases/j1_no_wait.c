/* SPDX-License-Identifier: Apache-2.0 */
/*
 * j: the dependent grid reads what the grid before it writes, without griddepcontrol.wait
 * (NVIDIA/cutlass#2760; flashinfer-ai/flashinfer#2708, where a macro had made it vanish).
 *
 * expect: j at fault
 */
#include "emulator/case.h"

KERNEL(CASE_FIRST, case_params, p, 64)
{
    grid_launch_dependents();
    global_store_u32((uint32_t *)p->mid + thread_index(), thread_index() * 3u);
}

KERNEL(CASE_KERNEL, case_params, p, 64)
{
#ifdef FIXED
    grid_dependency_wait();
#endif
    global_store_u32((uint32_t *)p->out + thread_index(),
                     global_load_u32((const uint32_t *)p->mid + thread_index())); /* fault */
}

RACE_PAIR(64);
