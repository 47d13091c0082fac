/* SPDX-License-Identifier: Apache-2.0 */
#include "format/half.h"

void bf16_decode_n(float *dst, const uint16_t *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = bf16_decode(src[i]);
}

void bf16_encode_n(uint16_t *dst, const float *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = bf16_encode(src[i]);
}

void fp16_decode_n(float *dst, const uint16_t *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = fp16_decode(src[i]);
}

void fp16_encode_n(uint16_t *dst, const float *src, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = fp16_encode(src[i]);
}
