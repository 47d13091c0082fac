/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the older asynchronous kind (halfbyte's kernels fetch scales by them: they take any
 * address), and what only kernels of others do: tensor maps edited on the device.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_FOREIGN_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_FOREIGN_H

/* 4 bytes to shared memory, 4-byte aligned, in this thread's current cp.async group.  An ordinary
 * access to the memory model: no proxy fence stands between it and ordinary loads and stores. */
HB_DEVICE void cp_async_4(smem_addr dst, const void *src)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(dst), "l"(src) : "memory");
}

/* 8 bytes, likewise. */
HB_DEVICE void cp_async_8(smem_addr dst, const void *src)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(dst), "l"(src) : "memory");
}

/* 16 bytes to shared memory, in this thread's current cp.async group.  9.7.9.25.3.1 cp.async */
HB_DEVICE void cp_async_16(smem_addr dst, const void *src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}

/* Closes the group.  9.7.9.25.3.2 */
HB_DEVICE void cp_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most n groups of this thread are pending; n a constant.  9.7.9.25.3.3 */
#define cp_async_wait(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

/* This thread's earlier cp.async will arrive on bar, counted among its expected arrivals.
 * 9.7.13.15.15 */
HB_DEVICE void cp_async_mbarrier_arrive_noinc(smem_addr bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

/* Edits a tensor map in global memory.  9.7.9.28 tensormap.replace; ord is a compile-time constant.
 * */
HB_DEVICE void tensormap_replace_global_address(tensor_map *map, const void *address)
{
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(map),
                 "l"(address)
                 : "memory");
}

#define tensormap_replace_global_dim(map, ord, value)                                              \
    asm volatile("tensormap.replace.tile.global_dim.global.b1024.b32 [%0], %1, %2;" ::"l"(map),    \
                 "n"(ord), "r"(value)                                                              \
                 : "memory")
#define tensormap_replace_global_stride(map, ord, bytes)                                           \
    asm volatile("tensormap.replace.tile.global_stride.global.b1024.b64 [%0], %1, %2;" ::"l"(map), \
                 "n"(ord), "l"(bytes)                                                              \
                 : "memory")

#endif
