/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fp32 operations and conversions of kernels against src/model/arith.h and src/format.
 */
#include "gpu/images.h"
#include "gpu/instructions.h"
#include "gpu/tests.h"
#include "model/arith.h"
#include "oracle/splitmix.h"

static cuda_function kernel_of(const session *s, const char *name)
{
    return session_function(s, session_module(s, kernel_image_instructions), name, 0);
}

/*
 * fp32 numbers by index: each of the 2^20 upper parts with sixteen lower parts around the places
 * where a conversion rounds (quick: 2^16 upper parts, one lower part drawn for each).
 */
static float number_at(const session *s, uint64_t i)
{
    static const uint32_t low[16] = {0,     1,     0x7ff, 0x800, 0x801, 0xfff, 0x400, 0x3ff,
                                     0x401, 0xc00, 0xbff, 0xc01, 0x555, 0xaaa, 0x123, 0xedc};
    if (s->quick) {
        struct random r = {i};
        return float_from_bits((uint32_t)(i << 16) | (uint32_t)(random_bits(&r) & 0xffff));
    }
    return float_from_bits((uint32_t)(i >> 4 << 12) | low[i & 15]);
}

typedef struct convert_results {
    uint16_t *bf16, *f16;
    uint32_t *bf16_pair, *f16_pair;
    uint8_t *e4m3;
} convert_results;

static convert_results results_make(size_t count)
{
    convert_results results = {session_host(count * 2), session_host(count * 2),
                               session_host(count * 4), session_host(count * 4),
                               session_host(count)};
    return results;
}

static convert_results convert_expect(const float *x, size_t count)
{
    const convert_results e = results_make(count);
    for (size_t i = 0; i < count; i++) {
        e.bf16[i] = cvt_bf16(x[i]);
        e.f16[i] = cvt_f16(x[i]);
        e.bf16_pair[i] = (uint32_t)cvt_bf16(x[i]) | (uint32_t)cvt_bf16(x[i + 1]) << 16;
        e.f16_pair[i] = (uint32_t)cvt_f16(x[i]) | (uint32_t)cvt_f16(x[i + 1]) << 16;
        e.e4m3[i] = cvt_e4m3(x[i]);
    }
    return e;
}

static convert_results convert_run(session *s, const float *x, size_t count)
{
    const convert_results got = results_make(count);
    const cuda_pointer bf16 = session_memory(s, count * 2), f16 = session_memory(s, count * 2);
    const cuda_pointer bf16_pair = session_memory(s, count * 4);
    const cuda_pointer f16_pair = session_memory(s, count * 4);
    const cuda_pointer e4m3 = session_memory(s, count);
    convert_params params = {session_pointer(session_upload(s, x, (count + 1) * 4)),
                             session_pointer(bf16),
                             session_pointer(bf16_pair),
                             session_pointer(f16),
                             session_pointer(f16_pair),
                             session_pointer(e4m3),
                             count};
    session_launch(s, kernel_of(s, "test_convert"), 1024, 256, 0, 1, &params);
    session_download(s, got.bf16, bf16, count * 2);
    session_download(s, got.f16, f16, count * 2);
    session_download(s, got.bf16_pair, bf16_pair, count * 4);
    session_download(s, got.f16_pair, f16_pair, count * 4);
    session_download(s, got.e4m3, e4m3, count);
    return got;
}

/* Widening is exact; of a NaN only that it is one (arithmetic makes it canonical). */
static void widen_test(session *s)
{
    enum { CODES = 65536 };
    static float bf16[CODES], f16[CODES];
    const cuda_pointer bf16_at = session_memory(s, sizeof bf16);
    const cuda_pointer f16_at = session_memory(s, sizeof f16);
    widen_params params = {session_pointer(bf16_at), session_pointer(f16_at)};
    session_launch(s, kernel_of(s, "test_widen"), CODES / 256, 256, 0, 1, &params);
    session_download(s, bf16, bf16_at, sizeof bf16);
    session_download(s, f16, f16_at, sizeof f16);
    for (uint32_t code = 0; code < CODES; code++) {
        bf16[code] = nan_canonical(bf16[code]);
        f16[code] = nan_canonical(f16[code]);
        const float expected_bf16 = bf16_decode((uint16_t)code);
        const float expected_f16 = fp16_decode((uint16_t)code);
        session_compare(s, "bf16 widened", &bf16[code], &expected_bf16, 4, 1);
        session_compare(s, "f16 widened", &f16[code], &expected_f16, 4, 1);
    }
}

void gpu_test_convert(session *s)
{
    const size_t all = s->quick ? 1 << 16 : 1 << 24;
    const size_t piece = s->quick ? all : 1 << 22;
    for (size_t from = 0; from < all; from += piece) {
        float *x = session_host((piece + 1) * 4);
        session_reset(s);
        for (size_t i = 0; i <= piece; i++) {
            x[i] = number_at(s, (from + i) % all);
        }
        const convert_results expected = convert_expect(x, piece);
        const convert_results got = convert_run(s, x, piece);
        session_compare(s, "cvt_bf16", got.bf16, expected.bf16, 2, piece);
        session_compare(s, "cvt_f16", got.f16, expected.f16, 2, piece);
        session_compare(s, "cvt_bf16x2", got.bf16_pair, expected.bf16_pair, 4, piece);
        session_compare(s, "cvt_f16x2", got.f16_pair, expected.f16_pair, 4, piece);
        session_compare(s, "cvt_e4m3", got.e4m3, expected.e4m3, 1, piece);
    }
    widen_test(s);
}

/* Any bits, the odd ones often, and numbers of like size. */
static float operand_draw(struct random *r)
{
    static const uint32_t odd[] = {0,           0x80000000u, 1,           0x80000001u, 0x007fffffu,
                                   0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u,
                                   0x7fc00000u, 0xff800001u, 0x3f800000u, 0xbf800000u};
    const uint32_t bits = (uint32_t)random_bits(r);
    switch (random_below(r, 4)) {
    case 0: return float_from_bits(odd[random_below(r, (int64_t)(sizeof odd / sizeof odd[0]))]);
    case 1: return float_from_bits(bits);
    default:
        return float_from_bits((bits & 0x807fffffu) | (uint32_t)random_between(r, 120, 134) << 23);
    }
}

enum { OPERATIONS = 5 };

static void arith_expect(const float *x, const float *y, const float *z, float *const *out,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[0][i] = fma_rn(x[i], y[i], z[i]);
        out[1][i] = mul_rn(x[i], y[i]);
        out[2][i] = add_rn(x[i], y[i]);
        out[3][i] = div_rn(x[i], y[i]);
        out[4][i] = max_nan(x[i], y[i]);
    }
}

void gpu_test_arith(session *s)
{
    static const char *const names[OPERATIONS] = {"fma_rn", "mul_rn", "add_rn", "div_rn",
                                                  "max_nan"};
    const size_t count = s->quick ? 1 << 16 : 1 << 21;
    float *in[3], *expected[OPERATIONS];
    cuda_pointer in_at[3], out_at[OPERATIONS];
    float *got = session_host(count * 4);
    struct random r = {s->seed};
    for (int i = 0; i < 3; i++) {
        in[i] = session_host(count * 4);
        for (size_t j = 0; j < count; j++) {
            in[i][j] = operand_draw(&r);
        }
        in_at[i] = session_upload(s, in[i], count * 4);
    }
    for (int i = 0; i < OPERATIONS; i++) {
        expected[i] = session_host(count * 4);
        out_at[i] = session_memory(s, count * 4);
    }
    arith_params params = {
        session_pointer(in_at[0]),  session_pointer(in_at[1]),  session_pointer(in_at[2]),
        session_pointer(out_at[0]), session_pointer(out_at[1]), session_pointer(out_at[2]),
        session_pointer(out_at[3]), session_pointer(out_at[4]), count};
    session_launch(s, kernel_of(s, "test_arith"), 1024, 256, 0, 1, &params);
    arith_expect(in[0], in[1], in[2], expected, count);
    for (int i = 0; i < OPERATIONS; i++) {
        session_download(s, got, out_at[i], count * 4);
        session_compare(s, names[i], got, expected[i], 4, count);
    }
}
