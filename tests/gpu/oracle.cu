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

/* The operands of one instruction, four codes a word; what is missing is zero, which is neutral. */
struct step {
    uint32_t word[8];
};

static __device__ operand operand_at(const step *s, int i)
{
    return operand_of(s->word[i / 4] >> (i % 4 * 8) & 255);
}

/* value * 2^shift with its magnitude cut toward zero.  |value| < 2^24; shift <= 7 for a product, <= -10
 * for c; a zero may come with any. */
static __device__ int cut(int value, int shift)
{
    if (value == 0) {
        return 0;
    }
    const uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    const uint32_t moved = shift >= 0    ? magnitude << shift
                           : shift > -32 ? magnitude >> -shift
                                         : 0;
    return value < 0 ? -(int)moved : (int)moved;
}

/*
 * The largest exponent of the nonzero terms, -1000 if all are zero; sets *is_nan if a product is.
 * sig_c, e_c: c = sig_c * 2^(e_c - 23).
 */
static __device__ int largest_exponent(const step *a, const step *b, int sig_c, int e_c,
                                       int *is_nan)
{
    int emax = sig_c != 0 ? e_c : -1000;
    *is_nan = 0;
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const operand x = operand_at(a, i), y = operand_at(b, i);
        *is_nan |= x.is_nan | y.is_nan;
        if (x.sig != 0 && y.sig != 0) {
            emax = max(emax, x.exponent + y.exponent);
        }
    }
    return emax;
}

/* sum * 2^(emax - 13), cut to 13 fraction bits.  Exact in fp32 and far above 2^-126: every term is a
 * multiple of 2^-25, what the smallest products are cut to. */
static __device__ float normalised(int sum, int emax)
{
    uint32_t magnitude = (uint32_t)(sum < 0 ? -sum : sum);
    if (magnitude == 0) {
        return 0.0f;
    }
    const int top = 31 - __clz((int)magnitude);
    if (top > 13) {
        magnitude = magnitude >> (top - 13) << (top - 13);
    }
    const float value = ldexpf((float)magnitude, emax - 13);
    return sum < 0 ? -value : value;
}

/*
 * docs/numerics.md section 2 for e4m3.  c is +0 or came out of this function.  e4m3 has no infinity
 * and four instructions of 32 products cannot reach one, so c is finite or NaN; no sum leaves the range
 * of int (32 * 225 * 2^7 + 2^14 < 2^20) or of fp32.
 */
static __device__ float block32(const step *a, const step *b, float c)
{
    const uint32_t bits = __float_as_uint(c);
    const int field = (bits >> 23) & 255;
    if (field == 255) {
        return __uint_as_float(NAN_BITS);
    }
    const int e_c = field ? field - 127 : -126;
    int sig_c = (int)((bits & 0x7fffff) | (field ? 0x800000 : 0));
    if (bits >> 31) {
        sig_c = -sig_c;
    }
    int is_nan;
    const int emax = largest_exponent(a, b, sig_c, e_c, &is_nan);
    if (is_nan) {
        return __uint_as_float(NAN_BITS);
    }
    if (emax == -1000) {
        return 0.0f;
    }
    int sum = cut(sig_c, 13 - emax + e_c - 23);
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const operand x = operand_at(a, i), y = operand_at(b, i);
        sum += cut(x.sig * y.sig, 13 - emax + x.exponent + y.exponent - 6);
    }
    return normalised(sum, emax);
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
    const int64_t at = scale->interleave
                           ? k_block / 4 * scale->stride_k + mn * 4 + k_block % 4
                           : mn / scale->mn_block * scale->stride_mn + k_block * scale->stride_k;
    return value_of(scale->data, scale->type, group * scale->group_stride + at);
}

/* The e4m3 code of weight k of the row of B that starts at element `row`: section 3 for int4. */
static __device__ uint32_t weight(const oracle_params *p, int64_t row, int64_t k)
{
    const uint8_t *b = (const uint8_t *)p->b.data;
    if (!p->int4) {
        return b[row + k];
    }
    const int nibble = (b[(row + k) >> 1] >> (4 * (k & 1))) & 15;
    const int v = nibble >= 8 ? nibble - 16 : nibble;
    return (uint32_t)(v < 0 ? 0x80 | -v : v);
}

/* The operands at k = first .. first + 31, as far as they lie in [0, end). */
static __device__ void steps_load(const oracle_params *p, const uint8_t *a_row, int64_t b_row,
                                  int64_t first, int64_t end, step *a, step *b)
{
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const int64_t k = first + i;
        uint32_t code_a = 0, code_b = 0;
        if (k >= 0 && k < end) {
            code_a = a_row[k];
            code_b = weight(p, b_row, k);
        }
        a->word[i / 4] = (i % 4 ? a->word[i / 4] : 0) | code_a << (i % 4 * 8);
        b->word[i / 4] = (i % 4 ? b->word[i / 4] : 0) | code_b << (i % 4 * 8);
    }
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
            step x, y;
            steps_load(p, a, b_row, k0, k_end, &x, &y);
            partial = block32(&x, &y, partial);
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

/* Counts differing bytes; result[0] their number, result[1] the lowest index of one, result[2] how many
 * bytes were compared. */
extern "C" __global__ void compare_bytes(const uint8_t *x, const uint8_t *y, uint64_t bytes,
                                         unsigned long long *result)
{
    unsigned long long compared = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < bytes;
         i += (uint64_t)gridDim.x * blockDim.x) {
        compared++;
        if (x[i] != y[i]) {
            atomicAdd(&result[0], 1ull);
            atomicMin(&result[1], (unsigned long long)i);
        }
    }
    if (compared != 0) {
        atomicAdd(&result[2], compared);
    }
}
