/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the GPU tests that are not under test themselves: the oracle, data, comparison.
 */
#include "gpu/oracle.h"

enum { TYPE_F32 = 1, TYPE_BF16 = 2, TYPE_F16 = 3, TYPE_E4M3 = 4 };

#define NAN_BITS 0x7fffffffu

/* An e4m3 operand as sig * 2^(exponent - 3); sig carries the sign, 0 for zero. */
struct operand {
    int sig, exponent, is_nan;
};

static __device__ operand operand_of(uint32_t code)
{
    const int field = (code >> 3) & 15, mantissa = code & 7;
    operand x;
    x.is_nan = (code & 0x7f) == 0x7f;
    x.exponent = field ? field - 7 : -6;
    x.sig = field ? mantissa | 8 : mantissa;
    if (code & 0x80) {
        x.sig = -x.sig;
    }
    return x;
}

/* Magnitude of value * 2^shift, cut toward zero, with the sign of value. */
static __device__ long long cut(long long value, int shift)
{
    const unsigned long long magnitude = value < 0 ? -value : value;
    unsigned long long moved;
    if (shift >= 0) {
        moved = magnitude << (shift > 40 ? 40 : shift);
    } else {
        moved = -shift > 62 ? 0 : magnitude >> -shift;
    }
    return value < 0 ? -(long long)moved : (long long)moved;
}

/* docs/numerics.md section 2 for e4m3 and a finite c that came out of such a block. */
static __device__ float block32(const operand *a, const operand *b, int count, float c)
{
    int emax = -1000, any = 0;
    const uint32_t bits = __float_as_uint(c);
    const int field = (bits >> 23) & 255;
    if (field == 255) {
        return __uint_as_float((bits & 0x7fffff) ? NAN_BITS : bits);
    }
    for (int i = 0; i < count; i++) {
        if (a[i].is_nan || b[i].is_nan) {
            return __uint_as_float(NAN_BITS);
        }
        if (a[i].sig != 0 && b[i].sig != 0) {
            emax = max(emax, a[i].exponent + b[i].exponent);
            any = 1;
        }
    }
    const int e_c = field ? field - 127 : -126;
    long long sig_c = (bits & 0x7fffff) | (field ? 0x800000 : 0);
    if (bits >> 31) {
        sig_c = -sig_c;
    }
    if (sig_c != 0) {
        emax = max(emax, e_c);
        any = 1;
    }
    if (!any) {
        return 0.0f;
    }
    long long sum = cut(sig_c, 13 - emax + e_c - 23);
    for (int i = 0; i < count; i++) {
        sum += cut((long long)a[i].sig * b[i].sig, 13 - emax + a[i].exponent + b[i].exponent - 6);
    }
    if (sum == 0) {
        return 0.0f;
    }
    unsigned long long magnitude = sum < 0 ? -sum : sum;
    const int top = 63 - __clzll(magnitude);
    const int e = top + emax - 13;
    if (e > 127) {
        return __uint_as_float((sum < 0 ? 0x80000000u : 0u) | 0x7f800000u);
    }
    if (top > 13) {
        magnitude = magnitude >> (top - 13) << (top - 13);
    }
    /* At most 21 bits, so the conversion and the power of two are exact (down to 2^-139). */
    const double value = scalbn((double)magnitude, emax - 13);
    return (float)(sum < 0 ? -value : value);
}

static __device__ float value_of(const void *data, int type, int64_t index)
{
    if (type == TYPE_F32) {
        return ((const float *)data)[index];
    }
    if (type == TYPE_BF16) {
        return __uint_as_float((uint32_t)((const uint16_t *)data)[index] << 16);
    }
    if (type == TYPE_F16) {
        float wide;
        asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(((const uint16_t *)data)[index]));
        return wide;
    }
    const operand x = operand_of(((const uint8_t *)data)[index]);
    return x.is_nan ? __uint_as_float(NAN_BITS) : (float)x.sig * scalbnf(1.0f, x.exponent - 3);
}

static __device__ float scale_of(const oracle_scale *scale, int64_t group, int64_t mn, int64_t block)
{
    const int64_t k_block = scale->all_of_k ? 0 : block;
    return value_of(scale->data, scale->type,
                    group * scale->group_stride + mn / scale->mn_block * scale->stride_mn +
                        k_block * scale->stride_k);
}

static __device__ operand weight(const oracle_params *p, int64_t row, int64_t k)
{
    const uint8_t *b = (const uint8_t *)p->b.data;
    if (!p->int4) {
        return operand_of(b[row + k]);
    }
    const int nibble = (b[(row + k) >> 1] >> (4 * (k & 1))) & 15;
    const int v = nibble >= 8 ? nibble - 16 : nibble;
    return operand_of(v < 0 ? 0x80 | -v : v);
}

/* Section 4 and 5: sum over all blocks of one range. */
static __device__ float range_sum(const oracle_params *p, int64_t group, int64_t scale_row,
                                  int64_t a_row, int64_t column, int64_t begin, int64_t end)
{
    const uint8_t *a = (const uint8_t *)p->a.data + a_row;
    const int64_t b_row = group * p->b.group_stride + column * p->b.ld;
    float acc = 0.0f;
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block * p->block - p->group_k_offset;
        const int64_t k_end = min(p->k, first + p->block);
        float partial = 0.0f;
        for (int64_t k0 = first; k0 < k_end; k0 += 32) {
            operand x[32], y[32];
            int count = 0;
            for (int64_t k = max(k0, (int64_t)0); k < min(k0 + 32, k_end); k++) {
                x[count] = operand_of(a[k]);
                y[count] = weight(p, b_row, k);
                count++;
            }
            partial = block32(x, y, count, partial);
        }
        const int has_a = p->a_scale.data && p->a_scale.along_k;
        const int has_b = p->b_scale.data && p->b_scale.along_k;
        float s = 1.0f;
        if (has_a) {
            s = scale_of(&p->a_scale, p->rows_a_group ? group : 0, scale_row, block * p->block / 128);
        }
        if (has_b) {
            const float sb = scale_of(&p->b_scale, group, column, block);
            s = has_a ? __fmul_rn(s, sb) : sb;
        }
        if (p->int4) {
            s = __fmul_rn(s, 512.0f);
        }
        acc = __fmaf_rn(partial, s, acc);
    }
    return acc;
}

static __device__ float epilogue(const oracle_params *p, int64_t group, int64_t scale_row,
                                 int64_t c_row, int64_t column, float x)
{
    if (p->a_scale.data && !p->a_scale.along_k) {
        x = __fmul_rn(x, scale_of(&p->a_scale, group, scale_row, 0));
    }
    if (p->b_scale.data && !p->b_scale.along_k) {
        x = __fmul_rn(x, scale_of(&p->b_scale, group, column, 0));
    }
    if (p->channel.data) {
        x = __fmul_rn(x, value_of(p->channel.data, TYPE_F32, group * p->channel.group_stride + column));
    }
    if (p->has_alpha) {
        x = __fmul_rn(x, p->alpha);
    }
    if (p->c.data && p->beta != 0.0f) {
        x = __fmaf_rn(p->beta, value_of(p->c.data, p->c.type, c_row + column), x);
    }
    if (p->bias.data) {
        x = __fadd_rn(x, value_of(p->bias.data, p->bias.type, group * p->bias.group_stride + column));
    }
    return x;
}

static __device__ void store(const oracle_matrix *d, int64_t index, float x)
{
    if (d->type == TYPE_F32) {
        ((float *)d->data)[index] = x;
        return;
    }
    uint16_t half;
    if (d->type == TYPE_BF16) {
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(x));
    } else {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    }
    ((uint16_t *)d->data)[index] = half;
}

extern "C" __global__ void oracle_gemm(const __grid_constant__ oracle_params params)
{
    const oracle_params *p = &params;
    const int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t row = index / p->n, column = index % p->n;
    if (row >= p->rows) {
        return;
    }
    const int64_t group = p->row_group ? p->row_group[row] : 0;
    if (group < 0) {
        return;
    }
    const int64_t in_group = p->rows_a_group ? row % p->rows_a_group : row;
    const int64_t matrix = p->rows_a_group ? group : 0;
    const int64_t a_row = matrix * p->a.group_stride + in_group * p->a.ld;
    const int64_t c_row = matrix * p->c.group_stride + in_group * p->c.ld;
    const int64_t d_row = matrix * p->d.group_stride + in_group * p->d.ld;
    const int64_t blocks = p->k ? (p->k + p->group_k_offset + p->block - 1) / p->block : 0;
    const int64_t rest = blocks % p->k_splits, each = blocks / p->k_splits;
    float acc = 0.0f;
    int64_t begin = 0;
    for (int64_t split = 0; split < p->k_splits; split++) {
        const int64_t end = begin + each + (split < rest);
        const float sum = range_sum(p, group, in_group, a_row, column, begin, end);
        acc = split == 0 ? sum : __fadd_rn(acc, sum);
        begin = end;
    }
    store(&p->d, d_row + column, epilogue(p, group, in_group, c_row, column, acc));
}

/* ---- data ---- */

static __device__ uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Bytes by seed.  kind 0: any; 1: e4m3 without NaN; 2: e4m3, about normal; 3: e4m3, mostly zeros */
extern "C" __global__ void fill_bytes(uint8_t *data, uint64_t bytes, uint64_t seed, int kind)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < bytes;
         i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t r = mix(seed + i * 0x9e3779b97f4a7c15ull);
        uint32_t code = (uint32_t)(r & 255);
        if (kind == 2) {
            /* exponent field from a narrow window, as scaled activations have */
            const int width = __popcll(r >> 8 & 0xffff) - 8;
            code = (code & 0x87) | (uint32_t)(min(max(9 + width / 2, 0), 14) << 3);
        }
        if (kind == 3 && (r >> 32 & 15) != 0) {
            code &= 0x80;
        }
        if (kind != 0 && (code & 0x7f) == 0x7f) {
            code ^= 1;
        }
        data[i] = (uint8_t)code;
    }
}

/* fp32 scales: sign, and 2^-10 .. 2^5 with a random mantissa. */
extern "C" __global__ void fill_scales(float *data, uint64_t count, uint64_t seed)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t r = mix(seed ^ (i * 0xd1342543de82ef95ull));
        const uint32_t exponent = 117 + (uint32_t)(r >> 40 & 15);
        data[i] = __uint_as_float((uint32_t)(r & 0x807fffff) | exponent << 23);
    }
}

/* Counts differing bytes; result[0] their number, result[1] the lowest index of one. */
extern "C" __global__ void compare_bytes(const uint8_t *x, const uint8_t *y, uint64_t bytes,
                                         unsigned long long *result)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < bytes;
         i += (uint64_t)gridDim.x * blockDim.x) {
        if (x[i] != y[i]) {
            atomicAdd(&result[0], 1ull);
            atomicMin(&result[1], (unsigned long long)i);
        }
    }
}
