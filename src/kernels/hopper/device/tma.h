/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy engine: 9.7.9.25 asynchronous copies, 9.7.9.27 tensor copies.  One thread issues.
 *
 * Loads complete on an mbarrier: they add the bytes of the whole box, also of what lies outside the
 * tensor (it is filled with zeros), to the transaction count of its current phase.  Stores and
 * reductions belong to the issuing thread's bulk groups.
 *   dst, src   shared addresses, 16-byte aligned for bulk copies, 128-byte for tensor copies
 *   x, y, z    coordinates of the box in elements, innermost first; may lie outside the tensor.
 *              x must be a multiple of 16 bytes: anything else is an illegal instruction.  Stores
 *              and reductions: not below 0, and they write rows in whole units of 16 bytes
 *   policy     L2_*
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_TMA_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_TMA_H

/* Fetches the descriptor before the first copy needs it.  9.7.9.15 */
HB_DEVICE void tma_prefetch_map(const tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* A box of a 2-D or 3-D tensor to shared memory.  9.7.9.27.1.2 cp.async.bulk.tensor */
HB_DEVICE void tma_load_2d(smem_addr dst, const tensor_map *map, smem_addr bar, int32_t x,
                           int32_t y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(x), "r"(y)
                 : "memory");
}

HB_DEVICE void tma_load_2d_hint(smem_addr dst, const tensor_map *map, smem_addr bar, int32_t x,
                                int32_t y, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(x), "r"(y), "l"(policy)
                 : "memory");
}

HB_DEVICE void tma_load_3d(smem_addr dst, const tensor_map *map, smem_addr bar, int32_t x,
                           int32_t y, int32_t z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

HB_DEVICE void tma_load_3d_hint(smem_addr dst, const tensor_map *map, smem_addr bar, int32_t x,
                                int32_t y, int32_t z, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "l"(policy)
                 : "memory");
}

/* The same box into every block of the cluster whose bit is set in cta_mask, at the same offset,
 * completing on the barrier at the same offset there. */
HB_DEVICE void tma_load_2d_multicast(smem_addr dst, const tensor_map *map, smem_addr bar, int32_t x,
                                     int32_t y, uint16_t cta_mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(x), "r"(y), "h"(cta_mask)
                 : "memory");
}

/* `bytes` (a multiple of 16) of contiguous memory.  9.7.9.25.4.1 cp.async.bulk */
HB_DEVICE void bulk_load(smem_addr dst, const void *src, uint32_t bytes, smem_addr bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar)
                 : "memory");
}

HB_DEVICE void bulk_load_hint(smem_addr dst, const void *src, uint32_t bytes, smem_addr bar,
                              uint64_t policy)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar), "l"(policy)
                 : "memory");
}

HB_DEVICE void bulk_load_multicast(smem_addr dst, const void *src, uint32_t bytes, smem_addr bar,
                                   uint16_t cta_mask)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar), "h"(cta_mask)
                 : "memory");
}

/* A box of shared memory to a tensor; what lies outside the tensor is not written, but for the last
 * unit of 16 bytes of a row. */
HB_DEVICE void tma_store_2d(const tensor_map *map, smem_addr src, int32_t x, int32_t y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
        "r"(src), "r"(x), "r"(y)
        : "memory");
}

HB_DEVICE void tma_store_3d(const tensor_map *map, smem_addr src, int32_t x, int32_t y, int32_t z)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
            map),
        "r"(src), "r"(x), "r"(y), "r"(z)
        : "memory");
}

/* As a store, but added to what is there.  9.7.9.27.1.3 cp.reduce.async.bulk.tensor */
HB_DEVICE void tma_reduce_add_2d(const tensor_map *map, smem_addr src, int32_t x, int32_t y)
{
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group "
                 "[%0, {%2, %3}], [%1];" ::"l"(map),
                 "r"(src), "r"(x), "r"(y)
                 : "memory");
}

HB_DEVICE void bulk_store(void *dst, smem_addr src, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src),
                 "r"(bytes)
                 : "memory");
}

/* Closes this thread's current bulk group.  9.7.9.27.2.1 */
HB_DEVICE void bulk_commit(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until at most n of this thread's latest bulk groups are pending: complete (bulk_wait), or
 * with their sources read (bulk_wait_read).  n is a compile-time constant.  9.7.9.27.2.2 */
#define bulk_wait(n) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory")
#define bulk_wait_read(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")

#endif
