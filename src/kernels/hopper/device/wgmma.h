/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensor core: 9.7.15 asynchronous warpgroup-level matrix instructions.
 *
 *   wgmma_<type>_ss_n<N>(d, desc_a, desc_b, scale_d)   A and B in shared memory
 *   wgmma_<type>_rs_n<N>(d, a, desc_b, scale_d)        A from registers
 *
 * D = A * B + (scale_d ? D : 0), A 64 rows, B N columns.
 *
 *   d       N / 2 accumulators of the thread: (row r, column c) of the 64 x N tile is element
 *           c / 8 * 4 + r % 16 / 8 * 2 + c % 2 of thread (r / 16) * 32 + (r % 8) * 4 + c % 8 / 2
 *   a       register i of thread t: 4 bytes of row 16 * (t / 32) + t % 32 / 4 + 8 * (i & 1), from
 *           byte 16 * (i >> 1) + t % 4 * 4 of the 32 bytes of k
 *   desc_*  wgmma_desc(): both operands K-major, 32 bytes of k an instruction (32 e4m3, 16 bf16)
 *
 * All 128 threads of the warpgroup execute the same instruction.  It returns at once: d and a must
 * not be touched, and the operands in shared memory not be written, until wgmma_wait() has covered
 * the group.
 *
 * The statements carry no memory clobber: what they read of shared memory is ordered by
 * wgmma_fence(), wgmma_commit() and wgmma_wait(), which do.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_WGMMA_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_WGMMA_H

/* Orders register and shared-memory accesses before the next wgmma.  9.7.15.7.1 wgmma.fence */
HB_DEVICE void wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Closes the warpgroup's current group.  9.7.15.7.2 wgmma.commit_group */
HB_DEVICE void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most n (0 .. 7, a compile-time constant) of the latest groups are pending.
 * 9.7.15.7.3 */
#define wgmma_wait(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")

/* The values of a[0 .. count - 1], register operands of later wgmma, are computed by here: nothing
 * may be left for between the instructions of a chain, where ptxas would have to interrupt it. */
HB_DEVICE void wgmma_operands_ready(uint32_t *a, int count)
{
    int i;
    HB_UNROLL
    for (i = 0; i < count; i++) {
        asm volatile("" : "+r"(a[i])::"memory");
    }
}

#include "kernels/hopper/device/wgmma_generated.h"

#endif
