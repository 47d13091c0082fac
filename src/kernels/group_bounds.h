/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LABELS to the bounds of RANGES: where each group's first and last rows lie.
 *
 * Labels other than -1 do not decrease, so a group's rows lie between two bounds, though rows
 * without a group may lie there too.  A row that differs from a neighbour raises its group's
 * bounds; the others need not.  Both bounds only rise, from zeros, so the order of the rows is all
 * one.  Labels that do decrease give bounds inside [0, m] all the same.
 *
 * PARAMETERS (define before including)
 *   GROUP_NAME    name of the kernel: that of the instance file and of its row in group_kernels.def
 */
#include "kernels/group_params.h"
#include "kernels/hopper/hopper.h"

#ifndef GROUP_NAME
#error "define GROUP_NAME"
#endif

#define GROUP_THREADS 256

HB_DEVICE int32_t label_at(const group_bounds_params *p, int64_t row)
{
    return row < 0 || row >= p->m ? -1
                                  : (int32_t)global_load_u32((const uint32_t *)p->labels + row);
}

KERNEL(GROUP_NAME, group_bounds_params, p, GROUP_THREADS)
{
    int64_t row = (int64_t)block_index() * GROUP_THREADS + thread_index();
    grid_dependency_wait();
    for (; row < p->m; row += (int64_t)block_count() * GROUP_THREADS) {
        const int32_t label = label_at(p, row);
        if (label < 0 || label >= p->groups) {
            continue;
        }
        if (label_at(p, row - 1) != label) {
            global_raise_u32(p->tops + label, (uint32_t)(p->m - row));
        }
        if (label_at(p, row + 1) != label) {
            global_raise_u32(p->ends + label, (uint32_t)row + 1u);
        }
    }
}
