/* SPDX-License-Identifier: Apache-2.0 */
#include "format/fp8.h"

bool e8m0_encode_exact(float value, uint8_t *code)
{
    const uint32_t bits = bits_from_float(value);

    if (bits == 0x00400000u) { /* 2^-127 */
        *code = 0;
        return true;
    }
    /* A power of two has an empty mantissa; bit 31 makes the exponent 256 or more when negative. */
    const uint32_t exponent = bits >> 23;
    if ((bits & FLOAT_BITS_MANTISSA) != 0 || exponent == 0 || exponent > E8M0_MAX)
        return false;
    *code = (uint8_t)exponent;
    return true;
}

uint8_t e8m0_encode_ceil(float value)
{
    const uint32_t bits = bits_from_float(value);

    if (bits_is_nan(bits) || bits > FLOAT_BITS_SIGN)
        return E8M0_NAN;
    if (bits == FLOAT_BITS_SIGN || bits <= 0x00400000u) /* -0, and 0 to 2^-127 */
        return 0;
    const uint32_t exponent = (bits + FLOAT_BITS_MANTISSA) >> 23;
    return (uint8_t)(exponent > E8M0_MAX ? E8M0_MAX : exponent);
}

void e4m3_decode_n(float *dst, const uint8_t *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = e4m3_decode(src[i]);
}

void e4m3_encode_n(uint8_t *dst, const float *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = e4m3_encode(src[i]);
}

void e5m2_decode_n(float *dst, const uint8_t *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = e5m2_decode(src[i]);
}

void e5m2_encode_n(uint8_t *dst, const float *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = e5m2_encode(src[i]);
}

void e8m0_decode_n(float *dst, const uint8_t *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = e8m0_decode(src[i]);
}
