/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mbarrier: 9.7.13.15.  bar is the 8-byte aligned shared address of a 64-bit barrier.
 *
 * Every statement is volatile with a memory clobber: the compiler must not move a shared-memory
 * access across the point where a stage changes hands.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_MBARRIER_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_MBARRIER_H

/* Makes a barrier whose phases complete after `count` arrivals (1 .. 2^20 - 1).  9.7.13.15.9 */
HB_DEVICE void mbarrier_init(smem_addr bar, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

/* Ends a barrier's life, so that its bytes may serve otherwise.  9.7.13.15.10 */
HB_DEVICE void mbarrier_inval(smem_addr bar)
{
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

/* Publishes this thread's inits to the cluster (before a cluster or block barrier).  9.7.13.4 */
HB_DEVICE void fence_mbarrier_init(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* One arrival, with release semantics in the block.  9.7.13.15.13 */
HB_DEVICE void mbarrier_arrive(smem_addr bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

/* The current phase will also wait for `bytes` of asynchronous copies.  9.7.13.15.11 */
HB_DEVICE void mbarrier_expect_tx(smem_addr bar, uint32_t bytes)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

/* expect_tx, then one arrival.  9.7.13.15.13 */
HB_DEVICE void mbarrier_arrive_expect_tx(smem_addr bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

/* One arrival at a barrier of a block of the cluster; bar from map_shared_rank().  Release at
 * cluster scope: a narrower scope would not order this block's accesses for the other.
 * 9.7.13.15.13 */
HB_DEVICE void mbarrier_arrive_cluster(smem_addr bar)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar)
                 : "memory");
}

/* Has the phase of this parity completed?  May wait a while before it says no.  9.7.13.15.16 */
HB_DEVICE bool mbarrier_try_wait(smem_addr bar, uint32_t parity)
{
    uint32_t done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done != 0;
}

/* Waits for the phase of this parity (0 for the first); 1 before the first phase returns at once.
 * */
HB_DEVICE void mbarrier_wait(smem_addr bar, uint32_t parity)
{
    while (!mbarrier_try_wait(bar, parity)) {
    }
}

#endif
