/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One element of a tensor whose type is a field of the problem.  Widening to fp32 is exact;
 * narrowing rounds as docs/numerics.md section 1 says.
 */
#ifndef HALFBYTE_MODEL_ELEMENT_H
#define HALFBYTE_MODEL_ELEMENT_H

#include "halfbyte.h"
#include "model/arith.h"

/* Element `index` of data: f32, bf16, f16 or e4m3. */
static inline float element_read(halfbyte_type type, const void *data, int64_t index)
{
    switch (type) {
    case HALFBYTE_TYPE_BF16: return bf16_decode(((const uint16_t *)data)[index]);
    case HALFBYTE_TYPE_F16: return fp16_decode(((const uint16_t *)data)[index]);
    case HALFBYTE_TYPE_E4M3: return e4m3_decode(((const uint8_t *)data)[index]);
    default: return ((const float *)data)[index];
    }
}

/* Stores value as element `index` of data: f32, bf16 or f16. */
static inline void element_write(halfbyte_type type, void *data, int64_t index, float value)
{
    switch (type) {
    case HALFBYTE_TYPE_BF16: ((uint16_t *)data)[index] = cvt_bf16(value); break;
    case HALFBYTE_TYPE_F16: ((uint16_t *)data)[index] = cvt_f16(value); break;
    default: ((float *)data)[index] = value; break;
    }
}

/* data advanced by count elements of 1, 2 or 4 bytes. */
static inline const void *element_at(halfbyte_type type, const void *data, int64_t count)
{
    const int64_t bytes = type == HALFBYTE_TYPE_E4M3                                ? 1
                          : type == HALFBYTE_TYPE_BF16 || type == HALFBYTE_TYPE_F16 ? 2
                                                                                    : 4;
    return (const char *)data + count * bytes;
}

#endif
