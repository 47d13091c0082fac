/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary accesses.  9.7.9.8 ld, 9.7.9.11 st, 9.7.15 ldmatrix and stmatrix.
 *
 * Shared loads are volatile, so that they stay where the kernel wrote them relative to waits and
 * arrives; they carry no memory clobber, so that arithmetic may move around them.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_MEMORY_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_MEMORY_H

/* First byte of the block's dynamic shared memory that is a multiple of 1,024 (what 128-byte
 * swizzled tiles need).  The launch adds 1,024 bytes for it. */
HB_DEVICE smem_addr smem_base(void)
{
    extern __shared__ unsigned char hb_dynamic_smem[];
    return ((smem_addr)__cvta_generic_to_shared(hb_dynamic_smem) + 1023u) & ~1023u;
}

HB_DEVICE uint32_t smem_load_u32(smem_addr addr)
{
    uint32_t value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(addr));
    return value;
}

HB_DEVICE float smem_load_f32(smem_addr addr)
{
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(addr));
    return value;
}

/* Two and four words; addr a multiple of 8 and 16. */
HB_DEVICE void smem_load_u32x2(smem_addr addr, uint32_t value[2])
{
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(value[0]), "=r"(value[1]) : "r"(addr));
}

HB_DEVICE void smem_load_u32x4(smem_addr addr, uint32_t value[4])
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(addr));
}

HB_DEVICE void smem_store_u32(smem_addr addr, uint32_t value)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(addr), "r"(value) : "memory");
}

HB_DEVICE void smem_store_f32(smem_addr addr, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(addr), "f"(value) : "memory");
}

HB_DEVICE void smem_store_u32x2(smem_addr addr, uint32_t v0, uint32_t v1)
{
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(addr), "r"(v0), "r"(v1) : "memory");
}

HB_DEVICE void smem_store_u32x4(smem_addr addr, uint32_t v0, uint32_t v1, uint32_t v2, uint32_t v3)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(addr), "r"(v0), "r"(v1), "r"(v2),
                 "r"(v3)
                 : "memory");
}

/* Four 8x8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8. */
HB_DEVICE void ldmatrix_x4(smem_addr addr, uint32_t value[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(addr));
}

HB_DEVICE void ldmatrix_x2(smem_addr addr, uint32_t value[2])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2];"
                 : "=r"(value[0]), "=r"(value[1])
                 : "r"(addr));
}

HB_DEVICE void stmatrix_x4(smem_addr addr, uint32_t v0, uint32_t v1, uint32_t v2, uint32_t v3)
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(addr),
        "r"(v0), "r"(v1), "r"(v2), "r"(v3)
        : "memory");
}

/* Each matrix transposed: its columns become the rows in memory. */
HB_DEVICE void stmatrix_x4_trans(smem_addr addr, uint32_t v0, uint32_t v1, uint32_t v2, uint32_t v3)
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(addr),
        "r"(v0), "r"(v1), "r"(v2), "r"(v3)
        : "memory");
}

HB_DEVICE void stmatrix_x2(smem_addr addr, uint32_t v0, uint32_t v1)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared::cta.b16 [%0], {%1, %2};" ::"r"(addr),
                 "r"(v0), "r"(v1)
                 : "memory");
}

/* Global loads; _nc: data that nobody writes while the kernel runs, through the read-only path. */
HB_DEVICE float global_load_f32(const float *address)
{
    float value;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(address) : "memory");
    return value;
}

HB_DEVICE float global_load_f32_nc(const float *address)
{
    float value;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(address));
    return value;
}

HB_DEVICE uint32_t global_load_u32(const uint32_t *address)
{
    uint32_t value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

HB_DEVICE uint64_t global_load_u64(const uint64_t *address)
{
    uint64_t value;
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

HB_DEVICE uint32_t global_load_u32_nc(const uint32_t *address)
{
    uint32_t value;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}

HB_DEVICE uint64_t global_load_u64_nc(const uint64_t *address)
{
    uint64_t value;
    asm volatile("ld.global.nc.u64 %0, [%1];" : "=l"(value) : "l"(address));
    return value;
}

HB_DEVICE uint16_t global_load_u16(const uint16_t *address)
{
    uint16_t value;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(value) : "l"(address) : "memory");
    return value;
}

HB_DEVICE uint16_t global_load_u16_nc(const uint16_t *address)
{
    uint16_t value;
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(value) : "l"(address));
    return value;
}

HB_DEVICE uint8_t global_load_u8_nc(const uint8_t *address)
{
    uint32_t value;
    asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(value) : "l"(address));
    return (uint8_t)value;
}

HB_DEVICE void global_load_u32x4_nc(const void *address, uint32_t value[4])
{
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "l"(address));
}

HB_DEVICE void global_store_u8(uint8_t *address, uint8_t value)
{
    asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "r"((uint32_t)value) : "memory");
}

HB_DEVICE void global_store_u16(uint16_t *address, uint16_t value)
{
    asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(value) : "memory");
}

HB_DEVICE void global_store_u32(uint32_t *address, uint32_t value)
{
    asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

HB_DEVICE void global_store_f32(float *address, float value)
{
    asm volatile("st.global.f32 [%0], %1;" ::"l"(address), "f"(value) : "memory");
}

HB_DEVICE void global_store_u32x4(void *address, uint32_t v0, uint32_t v1, uint32_t v2, uint32_t v3)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v0), "r"(v1),
                 "r"(v2), "r"(v3)
                 : "memory");
}

/* addr a multiple of 8 */
HB_DEVICE void global_store_u32x2(void *address, uint32_t v0, uint32_t v1)
{
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(v0), "r"(v1) : "memory");
}

/* A word that other blocks may access at the same time; it is whole, and nothing more is promised.
 */
HB_DEVICE uint32_t global_load_u32_relaxed(const uint32_t *address)
{
    uint32_t value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

HB_DEVICE void global_store_u32_relaxed(uint32_t *address, uint32_t value)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/* *address = the larger of *address and value, unsigned; atomic.  9.7.13.6 red */
HB_DEVICE void global_raise_u32(uint32_t *address, uint32_t value)
{
    asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/* Asks for a line without waiting.  9.7.9.15 prefetch */
HB_DEVICE void prefetch_l2(const void *address)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

#endif
