/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fp32 arithmetic of kernels is the model's.
 */
#include "emulator/api.h"
#include "model/arith.h"

float emu_fma_rn(float x, float y, float z)
{
    return fma_rn(x, y, z);
}

float emu_mul_rn(float x, float y)
{
    return mul_rn(x, y);
}

float emu_add_rn(float x, float y)
{
    return add_rn(x, y);
}

float emu_div_rn(float x, float y)
{
    return div_rn(x, y);
}

float emu_max_nan(float x, float y)
{
    return max_nan(x, y);
}

uint16_t emu_cvt_bf16(float x)
{
    return cvt_bf16(x);
}

uint16_t emu_cvt_f16(float x)
{
    return cvt_f16(x);
}

uint8_t emu_cvt_e4m3(float x)
{
    return cvt_e4m3(x);
}

float emu_f32_of_f16(uint16_t bits)
{
    return fp16_decode(bits);
}
