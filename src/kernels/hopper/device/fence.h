/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences between proxies: 9.7.13.4 membar/fence.  (fence_mbarrier_init is with the barriers.)
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_FENCE_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_FENCE_H

/* Orders this thread's ordinary accesses to shared memory, and those it has observed, before later
 * asynchronous ones (wgmma operands, TMA). */
HB_DEVICE void fence_proxy_async(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* The same for global memory. */
HB_DEVICE void fence_proxy_async_global(void)
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

/* Publishes an edited tensor map. */
HB_DEVICE void fence_proxy_tensormap_release(void)
{
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}

/* Makes an edited tensor map (in global memory) visible to this thread's copies. */
HB_DEVICE void fence_proxy_tensormap_acquire(const tensor_map *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

#endif
