/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp32 arithmetic between tensor-core instructions, by the names of docs/numerics.md section 1.
 * The intrinsics keep the compiler from contracting or reassociating.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_ARITH_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_ARITH_H

HB_DEVICE float fma_rn(float x, float y, float z)
{
    return __fmaf_rn(x, y, z);
}

HB_DEVICE float mul_rn(float x, float y)
{
    return __fmul_rn(x, y);
}

HB_DEVICE float add_rn(float x, float y)
{
    return __fadd_rn(x, y);
}

HB_DEVICE float div_rn(float x, float y)
{
    return __fdiv_rn(x, y);
}

/* 1 / x: rcp.rn, which is div_rn(1, x). */
HB_DEVICE float rcp_rn(float x)
{
    return __frcp_rn(x);
}

/* x, its magnitude cut to `limit` > 0; NaN stays NaN.  9.7.3.11 min. */
HB_DEVICE float clamp_magnitude(float x, float limit)
{
    float result;
    asm("min.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(limit));
    return result;
}

/* The larger, NaN if either is NaN.  9.7.3.12 max. */
HB_DEVICE float max_nan(float x, float y)
{
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
    return result;
}

HB_DEVICE uint32_t bits_of_f32(float x)
{
    return __float_as_uint(x);
}

HB_DEVICE float f32_of_bits(uint32_t bits)
{
    return __uint_as_float(bits);
}

/* Nearest-even bf16.  9.7.9.21 cvt. */
HB_DEVICE uint16_t cvt_bf16(float x)
{
    uint16_t result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
    return result;
}

/* Two of them, `low` in the low half. */
HB_DEVICE uint32_t cvt_bf16x2(float low, float high)
{
    uint32_t result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

/* Nearest-even fp16; overflow to infinity. */
HB_DEVICE uint16_t cvt_f16(float x)
{
    uint16_t result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
    return result;
}

HB_DEVICE uint32_t cvt_f16x2(float low, float high)
{
    uint32_t result;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

/* Nearest-even e4m3, saturating; NaN to 0x7f. */
HB_DEVICE uint8_t cvt_e4m3(float x)
{
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    return (uint8_t)(pair & 0xff);
}

/* Two of them, `low` in the low byte. */
HB_DEVICE uint16_t cvt_e4m3x2(float low, float high)
{
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}

/* Widening, exact. */
HB_DEVICE float f32_of_bf16(uint16_t bits)
{
    return __uint_as_float((uint32_t)bits << 16);
}

HB_DEVICE float f32_of_f16(uint16_t bits)
{
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
    return result;
}

/* Bits: those of x where mask has ones, of y elsewhere; and a word turned right by 1 .. 31.  Single
 * instructions, also where the compiler would make two of them.  9.7.8.6 lop3, 9.7.8.7 shf. */
HB_DEVICE uint32_t bits_select(uint32_t mask, uint32_t x, uint32_t y)
{
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(result) : "r"(mask), "r"(x), "r"(y));
    return result;
}

HB_DEVICE uint32_t bits_turn_right(uint32_t word, uint32_t count)
{
    uint32_t result;
    asm("shf.r.wrap.b32 %0, %1, %1, %2;" : "=r"(result) : "r"(word), "r"(count));
    return result;
}

/* Four of the eight bytes of x (0..3) and y (4..7): byte i of the result is the one that digit i of
 * `digits` (hexadecimal, 0..7 each) names.  9.7.9.7 prmt */
HB_DEVICE uint32_t bytes_pick(uint32_t x, uint32_t y, uint32_t digits)
{
    uint32_t result;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(digits));
    return result;
}

#endif
