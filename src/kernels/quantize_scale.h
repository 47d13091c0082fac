/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales and quotients of the quantisers, to the bits of docs/numerics.md section 8.
 *
 * THE QUOTIENT.  q = cvt_e4m3(div_rn(x, scale)) with one scale for many x.  div_rn takes twice the
 * instructions that the memory leaves time for, so the reciprocal is made once a scale and the
 * quotient corrected twice with exact remainders:
 *
 *     r  = RN(1 / scale)
 *     q0 = RN(x r)                           within 1.5 units in the last place of x / scale
 *     q1 = RN(q0 - RN(q0 scale - x) r)       one of the two numbers around x / scale
 *     q  = RN(q1 - (q1 scale - x) r)         = RN(x / scale)
 *
 * The last step is Markstein's theorem: from a reciprocal that is rounded correctly and a quotient
 * that is one of its two neighbours, the remainder is exact and one correction rounds correctly. It
 * holds where nothing underflows or overflows:
 *
 *     scale in [2^-60, 2^60]; |x| <= 512 scale, larger ones are brought down to that, which is 448
 * too. |x| < 2^-11 scale may be inexact; it stays below 2^-10 in magnitude and becomes a zero.
 *
 * Zeros keep their sign: the remainder of -0 is -0 scale - (-0) = +0, and -0 - (+0) r = -0.
 * Other scales (given ones may be anything) go through div_rn.
 */
#ifndef HALFBYTE_KERNELS_QUANTIZE_SCALE_H
#define HALFBYTE_KERNELS_QUANTIZE_SCALE_H

#include "kernels/hopper/hopper.h"
#include "kernels/quantize_source.h"

#define E4M3_LARGEST 448.0f
#define DIVISOR_LEAST 0x21800000u /* bits of 2^-60 */
#define DIVISOR_MOST 0x5d800000u  /* bits of 2^60 */

/* A scale, ready to divide by. */
typedef struct divisor {
    float scale;
    float reciprocal;
    float limit;  /* 512 scale */
    bool is_tame; /* may be divided by the short way */
} divisor;

HB_DEVICE divisor divisor_of_scale(float scale)
{
    const uint32_t bits = bits_of_f32(scale);
    divisor d;
    d.scale = scale;
    d.is_tame = bits >= DIVISOR_LEAST && bits <= DIVISOR_MOST;
    d.reciprocal = rcp_rn(scale);
    d.limit = mul_rn(scale, 512.0f);
    return d;
}

/* The smallest power of two that is not below a finite scale > 0.  Subnormal ones are brought into
 * the normal range for it, exactly. */
HB_DEVICE float scale_power_of_two(float scale)
{
    const bool is_small = bits_of_f32(scale) < 0x00800000u;
    const float normal = is_small ? mul_rn(scale, 1073741824.0f) : scale;
    const float power = f32_of_bits((bits_of_f32(normal) + 0x007fffffu) & 0x7f800000u);
    return is_small ? mul_rn(power, 1.0f / 1073741824.0f) : power;
}

/* The scale for a largest finite magnitude. */
HB_DEVICE float scale_of_magnitude(const quantize_params *p, float amax)
{
    const float scale = div_rn(max_nan(amax, p->epsilon), E4M3_LARGEST);
    return p->power_of_two ? scale_power_of_two(scale) : scale;
}

HB_DEVICE float quotient(float x, divisor d)
{
    const float y = clamp_magnitude(x, d.limit);
    const float q0 = mul_rn(y, d.reciprocal);
    const float q1 = fma_rn(fma_rn(q0, d.scale, -y), -d.reciprocal, q0);
    return fma_rn(fma_rn(q1, d.scale, -y), -d.reciprocal, q1);
}

HB_DEVICE uint32_t codes_of(float q0, float q1, float q2, float q3)
{
    return (uint32_t)cvt_e4m3x2(q0, q1) | (uint32_t)cvt_e4m3x2(q2, q3) << 16;
}

/* Quantises a vector; codes as store_codes() takes them. */
HB_DEVICE void vector_codes(int source, const uint32_t *words, divisor d, uint32_t *codes)
{
    int i;
    if (d.is_tame) {
        HB_UNROLL
        for (i = 0; i < QUANTIZE_VECTOR(source); i += 4) {
            codes[i / 4] = codes_of(quotient(vector_element(source, words, i + 0), d),
                                    quotient(vector_element(source, words, i + 1), d),
                                    quotient(vector_element(source, words, i + 2), d),
                                    quotient(vector_element(source, words, i + 3), d));
        }
        return;
    }
    HB_UNROLL
    for (i = 0; i < QUANTIZE_VECTOR(source); i += 4) {
        codes[i / 4] = codes_of(div_rn(vector_element(source, words, i + 0), d.scale),
                                div_rn(vector_element(source, words, i + 1), d.scale),
                                div_rn(vector_element(source, words, i + 2), d.scale),
                                div_rn(vector_element(source, words, i + 3), d.scale));
    }
}

#endif
