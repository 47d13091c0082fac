/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second half of a product with k_splits > 1: the sums of the ranges of k are added up in
 * ascending order and go through the epilogue.  docs/numerics.md sections 5 and 6.
 *
 *   warps 0 .. 7   each 16 rows x 32 columns of a tile of 32 x 128, four of them across, as
 *                  fragments (epilogue.h)
 *   warp 8         scheduler
 *
 * PARAMETERS (define before including)
 *   GROUP_NAME    name of the kernel: that of the instance file and of its row in group_kernels.def
 *
 * SHARED MEMORY   work items
 */
#include "kernels/group_params.h"
#include "kernels/hopper/hopper.h"
#include "kernels/tile/epilogue.h"
#include "kernels/tile/work.h"

#ifndef GROUP_NAME
#error "define GROUP_NAME"
#endif

#define TILE_M 32
#define TILE_N 128
#define WORKERS 8
#define GROUP_THREADS (WORKERS * 32 + 32)
#define FRAGMENT 16

/* Element i of the fragment at (row, column), as docs/numerics.md section 5 adds it up. */
HB_DEVICE float sum_of(const add_splits_params *p, const work_item *item, int32_t row,
                       int32_t column)
{
    const float *at = p->sums + item->plane * p->plane_stride + (int64_t)row * p->gemm.n + column;
    float sum = 0.0f;
    int32_t split;
    if (row < item->row_end && column < p->gemm.n) {
        sum = global_load_f32(at);
        for (split = 1; split < p->splits; split++) {
            sum = add_rn(sum, global_load_f32(at + split * p->split_stride));
        }
    }
    return sum;
}

HB_DEVICE void work(const add_splits_params *p, work_ring ring)
{
    const uint32_t warp = warp_index(), lane = lane_index();
    float acc[FRAGMENT];
    work_item item;
    int i;
    while (work_take(&ring, &item)) {
        const int32_t row = item.row + (int32_t)(warp / 4u * 16u + lane / 4u);
        const int32_t column = item.column + (int32_t)(warp % 4u * 32u + lane % 4u * 2u);
        HB_UNROLL
        for (i = 0; i < FRAGMENT; i++) {
            acc[i] = sum_of(p, &item, row + i % 4 / 2 * 8, column + i / 4 * 8 + i % 2);
        }
        epilogue(&p->gemm, &item, acc, FRAGMENT, row, column, false);
    }
}

KERNEL(GROUP_NAME, add_splits_params, p, GROUP_THREADS)
{
    const smem_addr memory = smem_base();
    if (thread_index() == 0) {
        work_ring_init(memory, WORKERS);
    }
    block_sync();
    grid_dependency_wait();
    if (warp_index() < WORKERS) {
        work(p, work_ring_at(memory));
    } else {
        work_schedule(&p->gemm, TILE_M, TILE_N, work_ring_at(memory));
    }
}
