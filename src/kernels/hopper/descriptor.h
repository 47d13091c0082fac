/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared-memory matrix descriptor of wgmma, as bits.  PTX ISA "Matrix-descriptor Format"
 * (9.7.15.5.1.2.2 in 9.1).
 *
 *   bits  0..13  start address / 16          bits 32..45  stride byte offset / 16
 *   bits 16..29  leading byte offset / 16    bits 49..51  base offset     bits 62..63  swizzle
 *
 * K-major operands of 8 rows x 16 bytes core matrices:
 *   SWIZZLE_128B   rows of 128 bytes, 8 rows to an atom of 1,024 bytes at a multiple of 1,024;
 *                  leading offset unused (0 here), stride offset 1,024 from one group of 8 rows to
 *                  the next.
 *                  A k step of 32 bytes inside the atom adds 32 to the start address.
 *   SWIZZLE_NONE   leading offset from one core matrix to its neighbour along k, stride offset from
 *                  one group of 8 rows to the next.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DESCRIPTOR_H
#define HALFBYTE_KERNELS_HOPPER_DESCRIPTOR_H

#if defined(__CUDACC__)
#define HB_DESCRIPTOR_FUNCTION static __device__ __forceinline__
#else
#define HB_DESCRIPTOR_FUNCTION static inline
#endif

/* addr, leading_bytes, stride_bytes: multiples of 16 below 2^18; swizzle: SWIZZLE_*. */
HB_DESCRIPTOR_FUNCTION uint64_t wgmma_desc(smem_addr addr, uint32_t leading_bytes,
                                           uint32_t stride_bytes, uint32_t swizzle)
{
    return (uint64_t)((addr >> 4) & 0x3fffu) | (uint64_t)((leading_bytes >> 4) & 0x3fffu) << 16 |
           (uint64_t)((stride_bytes >> 4) & 0x3fffu) << 32 | (uint64_t)swizzle << 62;
}

/* The descriptor of the same matrix `bytes` further on (a multiple of 16 that stays inside the
 * field). */
HB_DESCRIPTOR_FUNCTION uint64_t wgmma_desc_advance(uint64_t desc, uint32_t bytes)
{
    return desc + (bytes >> 4);
}

/* The same by an addition to the lower half, which is enough while the start address stays inside
 * its field: two instructions less, for loops that are bound by their number. */
HB_DESCRIPTOR_FUNCTION uint64_t wgmma_desc_advance_low(uint64_t desc, uint32_t bytes)
{
    const uint32_t low = (uint32_t)desc + (bytes >> 4);
    return (desc & 0xffffffff00000000u) | low;
}

#endif
