/* SPDX-License-Identifier: Apache-2.0 */
/*
 * +0 to the rows of D that no group owns (ZERO_FILL_PADDING).
 *
 * A warp takes 32 rows, one a lane, asks for each whether one of the groups holds it, 32 groups at
 * a time, and then clears those that none does, together.
 *
 * PARAMETERS (define before including)
 *   GROUP_NAME    name of the kernel: that of the instance file and of its row in group_kernels.def
 */
#include "kernels/group_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/group_rows.h"

#ifndef GROUP_NAME
#error "define GROUP_NAME"
#endif

#define GROUP_THREADS 256
#define WARPS (GROUP_THREADS / 32)

/* Does a group own this lane's row? */
HB_DEVICE bool lane_is_owned(const zero_padding_params *p, int32_t plane, uint32_t row)
{
    uint32_t taken = 0, start, end, g;
    int64_t base = plane;
    bool owned = false;
    if (p->groups.labels != NULL) {
        const int32_t label =
            row < (uint32_t)p->m
                ? (int32_t)global_load_u32((const uint32_t *)p->groups.labels + row)
                : -1;
        return label >= 0 && label < p->groups.count;
    }
    if (p->groups.kind == GEMM_MASKED) {
        group_rows(&p->groups, (uint32_t)p->m, plane, &taken, &start, &end);
        return row < end;
    }
    for (base = 0; base < p->groups.count; base += 32) {
        group_rows(&p->groups, (uint32_t)p->m, base + lane_index(), &taken, &start, &end);
        for (g = 0; g < 32; g++) {
            const uint32_t from = shuffle_u32(start, g), to = shuffle_u32(end, g);
            owned = owned || (row >= from && row < to);
        }
    }
    return owned;
}

/* The whole warp clears one row. */
HB_DEVICE void clear_row(const zero_padding_params *p, int32_t plane, uint32_t row)
{
    const int64_t first = plane * p->d.plane_stride + row * p->d.ld;
    int64_t column;
    for (column = lane_index(); column < p->n; column += 32) {
        if (p->d.type == ELEMENT_F32) {
            global_store_u32((uint32_t *)p->d.data + first + column, 0);
        } else {
            global_store_u16((uint16_t *)p->d.data + first + column, 0);
        }
    }
}

KERNEL(GROUP_NAME, zero_padding_params, p, GROUP_THREADS)
{
    const uint32_t high = ((uint32_t)p->m + 31u) / 32u;
    const uint32_t all = high * (uint32_t)p->planes;
    uint32_t piece = block_index() * WARPS + warp_index();
    grid_dependency_wait();
    for (; piece < all; piece += block_count() * WARPS) {
        const int32_t plane = (int32_t)(piece / high);
        const uint32_t first = piece % high * 32u;
        const bool owned = lane_is_owned(p, plane, first + lane_index());
        uint32_t i;
        for (i = 0; i < 32; i++) {
            if (shuffle_u32(owned ? 1u : 0u, i) == 0 && first + i < (uint32_t)p->m) {
                clear_row(p, plane, first + i);
            }
        }
    }
}
