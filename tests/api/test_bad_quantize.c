/* SPDX-License-Identifier: Apache-2.0 */
/* Every argument and field of the quantisers, spoiled; nothing may be written. */
#include "api/device.h"
#include "api/spoil.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define INVALID HALFBYTE_ERR_INVALID_ARGUMENT
#define MISALIGNED HALFBYTE_ERR_MISALIGNED
#define UNSUPPORTED HALFBYTE_ERR_UNSUPPORTED
#define HUGE_STRIDE INT64_C(0x3fffffffffffff00)

enum { M = 3, K = 200, GROUPS = 2, N = 5, POISON = 0xa5 };

/* A device without a GPU behind it, and one that this library cannot make. */
static halfbyte_device gpu = {.executor = HALFBYTE_EXECUTOR_GPU};
static halfbyte_device emulator = {.executor = HALFBYTE_EXECUTOR_EMULATOR};

/* ---- activations ----------------------------------------------------------------------------- */

typedef struct activation_call {
    halfbyte_activation_quantization a;
    halfbyte_device *device;
    halfbyte_stream stream;
    int64_t null_arguments;
    float src[M * K];
    uint8_t dst[M * K];
    float scale[M * 4];
} activation_call;

static activation_call activations;

static void activations_make(void *call)
{
    activation_call *c = call;
    memset(c, 0, sizeof *c);
    memset(c->dst, POISON, sizeof c->dst);
    memset(c->scale, POISON, sizeof c->scale);
    c->a = halfbyte_activation_quantization_init();
    c->a.mode = HALFBYTE_SCALE_1X128;
    c->a.src_type = HALFBYTE_TYPE_F32;
    c->a.m = M;
    c->a.k = K;
    c->a.src.data = c->src;
    c->a.dst.data = c->dst;
    c->a.src.ld = c->a.dst.ld = K;
    c->a.scale.data = c->scale;
    c->a.scale.stride_k = M;
    c->a.scale.stride_mn = 1;
}

static halfbyte_status activations_run(void *call)
{
    activation_call *c = call;
    return halfbyte_quantize_activations(c->device, c->null_arguments != 0 ? NULL : &c->a,
                                         c->stream);
}

/* Fields of the call, set, increased or copied from another. */
#define SET(field, number)                                                                         \
    {                                                                                              \
        SPOIL_FIELD(activation_call, field), SPOIL_SET, (int64_t)(number)                          \
    }
#define ADD(field, number)                                                                         \
    {                                                                                              \
        SPOIL_FIELD(activation_call, field), SPOIL_ADD, (int64_t)(number)                          \
    }
#define COPY(field, from)                                                                          \
    {                                                                                              \
        SPOIL_FIELD(activation_call, field), SPOIL_COPY, (int64_t)offsetof(activation_call, from)  \
    }
#define TENSOR SET(a.mode, HALFBYTE_SCALE_TENSOR)
#define OUTER SET(a.mode, HALFBYTE_SCALE_OUTER), SET(a.scale.stride_mn, 1)
#define K_MAJOR                                                                                    \
    SET(a.layout, HALFBYTE_SCALE_K_MAJOR), SET(a.scale.stride_mn, 2), SET(a.scale.stride_k, 1)
#define BF16 SET(a.src_type, HALFBYTE_TYPE_BF16)

static const spoil_row activation_rows[] = {
    {{SET(null_arguments, 1)}, INVALID, "arguments = NULL"},
    {{SET(stream, 8)}, INVALID, "stream = 0x8: must be NULL"},
    {{SET(a.struct_size, 0)}, INVALID, "arguments.struct_size = 0"},
    {{ADD(a.struct_size, -1)}, INVALID, "arguments.struct_size = "},
    {{SET(a.mode, HALFBYTE_SCALE_NONE)}, INVALID, "arguments.mode = none (0): accepted: tensor"},
    {{SET(a.mode, HALFBYTE_SCALE_128X128)}, INVALID, "arguments.mode = 128x128 (4)"},
    {{SET(a.mode, HALFBYTE_SCALE_K_GROUP)}, INVALID, "arguments.mode = k_group (5)"},
    {{SET(a.mode, 6)}, INVALID, "arguments.mode = unknown (6)"},
    {{SET(a.mode, -1)}, INVALID, "arguments.mode = unknown (-1)"},
    {{SET(a.layout, HALFBYTE_SCALE_INTERLEAVED4)}, INVALID, "arguments.layout = interleaved4 (2)"},
    {{SET(a.layout, 3)}, INVALID, "arguments.layout = unknown (3)"},
    {{SET(a.layout, -1)}, INVALID, "arguments.layout = unknown (-1)"},
    {{SET(a.src_type, HALFBYTE_TYPE_NONE)}, INVALID, "arguments.src_type = none (0)"},
    {{SET(a.src_type, HALFBYTE_TYPE_E4M3)}, INVALID, "arguments.src_type = e4m3 (4)"},
    {{SET(a.src_type, HALFBYTE_TYPE_INT4)}, INVALID, "arguments.src_type = int4 (7)"},
    {{SET(a.src_type, 8)}, INVALID, "arguments.src_type = unknown (8)"},
    {{SET(a.src_type, -1)}, INVALID, "arguments.src_type = unknown (-1)"},
    {{SET(a.flags, 4)}, INVALID, "arguments.flags = 0x4: accepted bits: 0x3"},
    {{SET(a.flags, 0x80000000)}, INVALID, "arguments.flags = 0x80000000"},
    {{SET(a.flags, 1)}, INVALID, "arguments.flags = 0x1: STATIC needs mode tensor, not 1x128"},
    {{OUTER, SET(a.flags, 1)}, INVALID, "STATIC needs mode tensor, not outer"},
    {{TENSOR, SET(a.flags, 3)}, INVALID, "arguments.flags = 0x3: STATIC computes no scale"},
    {{SET(a.m, -1)}, INVALID, "arguments.m = -1: must be in [0, 2147483647]"},
    {{SET(a.m, INT64_C(1) << 31)}, INVALID, "arguments.m = 2147483648"},
    {{SET(a.m, INT64_MIN)}, INVALID, "arguments.m = -9223372036854775808"},
    {{SET(a.k, -1)}, INVALID, "arguments.k = -1: must be in [0, 2147483647]"},
    {{SET(a.k, INT64_MAX)}, INVALID, "arguments.k = 9223372036854775807"},
    {{SET(a.src.data, 0)}, INVALID, "arguments.src = NULL"},
    {{ADD(a.src.data, 2)}, MISALIGNED, "must be aligned to 4 bytes"},
    {{BF16, ADD(a.src.data, 1)}, MISALIGNED, "must be aligned to 2 bytes"},
    {{ADD(a.src.ld, -1)}, INVALID, "arguments.src.ld = 199: must be at least 200"},
    {{SET(a.src.ld, 0)}, INVALID, "arguments.src.ld = 0"},
    {{SET(a.src.ld, -K)}, INVALID, "arguments.src.ld = -200"},
    {{SET(a.src.ld, HUGE_STRIDE)}, INVALID, "would not fit into the address space"},
    {{SET(a.src.ld, INT64_MAX)}, INVALID, "arguments.src.ld = 9223372036854775807"},
    {{SET(a.dst.data, 0)}, INVALID, "arguments.dst = NULL"},
    {{ADD(a.dst.ld, -1)}, INVALID, "arguments.dst.ld = 199: must be at least 200"},
    {{SET(a.dst.ld, INT64_MIN)}, INVALID, "arguments.dst.ld = -9223372036854775808"},
    {{SET(a.dst.ld, INT64_MAX)}, INVALID, "would not fit into the address space"},
    {{COPY(a.dst.data, a.src.data)}, INVALID, "arguments.dst = 0x"},
    {{SET(a.scale.data, 0)}, INVALID, "arguments.scale = NULL"},
    {{ADD(a.scale.data, 1)}, MISALIGNED, "arguments.scale = 0x"},
    {{SET(a.scale.stride_k, M - 1)}, INVALID, "arguments.scale.stride_k = 2: must be at least 3"},
    {{SET(a.scale.stride_k, INT64_MAX)}, INVALID, "would not fit into the address space"},
    {{K_MAJOR, SET(a.scale.stride_mn, 1)}, INVALID, "arguments.scale.stride_mn = 1"},
    {{K_MAJOR, SET(a.scale.stride_mn, -2)}, INVALID, "arguments.scale.stride_mn = -2"},
    {{SET(a.scale.stride_mn, 2)}, INVALID, "arguments.scale.stride_mn = 2: must be 1 (or 0"},
    {{K_MAJOR, SET(a.scale.stride_k, 3)}, INVALID, "arguments.scale.stride_k = 3: must be 1 (or 0"},
    {{OUTER, SET(a.scale.stride_mn, 2)}, INVALID, "arguments.scale.stride_mn = 2: must be 1 (or 0"},
    {{OUTER, SET(a.scale.stride_mn, -1)}, INVALID, "arguments.scale.stride_mn = -1: must be 1"},
    {{COPY(a.scale.data, a.src.data)}, INVALID, "arguments.scale = 0x"},
    {{TENSOR, COPY(a.scale.data, a.src.data)}, INVALID, "overlaps arguments.src"},
    {{TENSOR, SET(a.flags, 1), COPY(a.dst.data, a.scale.data)},
     INVALID,
     "overlaps arguments.scale"},
    {{SET(a.epsilon, 0x80000001)}, INVALID, "arguments.epsilon = -"},
    {{SET(a.epsilon, 0xbf800000)}, INVALID, "arguments.epsilon = -1: must be finite"},
    {{SET(a.epsilon, 0x7f800000)}, INVALID, "arguments.epsilon = inf: must be finite"},
    {{SET(a.epsilon, 0x7fc00000)}, INVALID, "arguments.epsilon = nan: must be finite"},
    {{SET(a.epsilon, 225), SET(a.epsilon, 224)}, INVALID, "epsilon / 448 must not round to 0"},
    {{SET(a.epsilon, 1)}, INVALID, "arguments.epsilon = bits 0x00000001"},
};

static void test_activations(void **state)
{
    (void)state;
    spoil_check(activation_rows, COUNT(activation_rows), &activations, sizeof activations,
                activations_make, activations_run);
}

/* A later program's larger struct: accepted while its tail is zero. */
static void test_struct_size(void **state)
{
    (void)state;
    for (int tail = 0; tail < 2; tail++) {
        struct {
            halfbyte_activation_quantization a;
            int64_t later;
        } larger;
        activations_make(&activations);
        memset(&larger, 0, sizeof larger);
        larger.a = activations.a;
        larger.a.struct_size = sizeof larger;
        larger.later = tail;
        assert_int_equal(halfbyte_quantize_activations(NULL, &larger.a, NULL),
                         tail == 0 ? HALFBYTE_SUCCESS : HALFBYTE_ERR_UNSUPPORTED);
        assert_true((activations.dst[0] == POISON) == (tail != 0));
    }
}

/* The stride that the mode or layout fixes at 1 may also be left 0. */
static void test_unit_stride(void **state)
{
    static const halfbyte_scale_mode modes[] = {HALFBYTE_SCALE_OUTER, HALFBYTE_SCALE_1X128,
                                                HALFBYTE_SCALE_1X128};
    static activation_call zero;
    (void)state;

    for (int i = 0; i < 3; i++) {
        activations_make(&activations);
        activations_make(&zero);
        for (int j = 0; j < M * K; j++) {
            activations.src[j] = zero.src[j] = (float)(j % 29) * 0.375f - 4.0f;
        }
        activations.a.mode = zero.a.mode = modes[i];
        zero.a.scale.stride_mn = 0;
        if (i == 2) {
            activations.a.layout = zero.a.layout = HALFBYTE_SCALE_K_MAJOR;
            activations.a.scale.stride_mn = zero.a.scale.stride_mn = 2;
            activations.a.scale.stride_k = 1;
            zero.a.scale.stride_k = 0;
        }
        assert_int_equal(activations_run(&activations), HALFBYTE_SUCCESS);
        assert_int_equal(activations_run(&zero), HALFBYTE_SUCCESS);
        assert_memory_equal(activations.dst, zero.dst, sizeof zero.dst);
        assert_memory_equal(activations.scale, zero.scale, sizeof zero.scale);
        assert_true(zero.dst[0] != POISON);
    }
}

/* q and its scales in one buffer, row after row, as messages between machines carry them. */
static void test_interleaved_outputs(void **state)
{
    enum { PITCH = 208 };
    static _Alignas(4) uint8_t buffer[M * PITCH];
    (void)state;

    activations_make(&activations);
    for (int i = 0; i < M * K; i++) {
        activations.src[i] = (float)(i % 13) - 6.0f;
    }
    activations.a.dst.data = buffer;
    activations.a.dst.ld = PITCH;
    activations.a.layout = HALFBYTE_SCALE_K_MAJOR;
    activations.a.scale.stride_k = 1;
    activations.a.scale.data = buffer + K;
    activations.a.scale.stride_mn = PITCH / 4;
    assert_int_equal(halfbyte_quantize_activations(NULL, &activations.a, NULL), HALFBYTE_SUCCESS);

    static uint8_t apart[M * K];
    float scales[M * 2];
    activations.a.dst.data = apart;
    activations.a.dst.ld = K;
    activations.a.scale.data = scales;
    activations.a.scale.stride_mn = 2;
    assert_int_equal(halfbyte_quantize_activations(NULL, &activations.a, NULL), HALFBYTE_SUCCESS);
    for (int row = 0; row < M; row++) {
        assert_memory_equal(buffer + row * PITCH, apart + row * K, K);
        assert_memory_equal(buffer + row * PITCH + K, scales + row * 2, 8);
    }

    activations.a.dst.data = buffer;
    activations.a.dst.ld = PITCH;
    activations.a.scale.data = buffer + K - 4; /* the last four values */
    activations.a.scale.stride_mn = PITCH / 4;
    assert_int_equal(halfbyte_quantize_activations(NULL, &activations.a, NULL), INVALID);
    activations.a.scale.data = buffer + K + 4; /* the next row's first ones */
    assert_int_equal(halfbyte_quantize_activations(NULL, &activations.a, NULL), INVALID);
}

#undef SET
#undef ADD
#undef COPY
#undef K_MAJOR
#undef BF16

/* ---- weights --------------------------------------------------------------------------------- */

typedef struct weight_call {
    halfbyte_weight_quantization a;
    halfbyte_matrix_out out;
    halfbyte_device *device;
    int64_t null_arguments, null_out;
    float src[GROUPS * N * K];
    uint8_t dst[GROUPS * N * K];
    float scale[GROUPS * N * 8];
    float back[GROUPS * N * K];
} weight_call;

static weight_call weights;

static void weights_make(void *call)
{
    weight_call *c = call;
    memset(c, 0, sizeof *c);
    memset(c->dst, POISON, sizeof c->dst);
    memset(c->scale, POISON, sizeof c->scale);
    memset(c->back, POISON, sizeof c->back);
    c->a = halfbyte_weight_quantization_init();
    c->a.type = HALFBYTE_TYPE_INT4;
    c->a.src_type = HALFBYTE_TYPE_F32;
    c->a.n = N;
    c->a.k = K;
    c->a.groups = GROUPS;
    c->a.weight_group_size = 64;
    c->a.src = (halfbyte_matrix_in){c->src, K, N * K};
    c->a.dst = (halfbyte_matrix_out){c->dst, K, N * K};
    c->a.scale.data = c->scale;
    c->a.scale.stride_mn = 1;
    c->a.scale.stride_k = N;
    c->a.scale.group_stride = N * 8;
    c->out = (halfbyte_matrix_out){c->back, K, N * K};
}

static halfbyte_status weights_run(void *call)
{
    weight_call *c = call;
    return halfbyte_quantize_weights(c->device, c->null_arguments != 0 ? NULL : &c->a);
}

static halfbyte_status back_run(void *call)
{
    weight_call *c = call;
    return halfbyte_dequantize_weights(c->device, c->null_arguments != 0 ? NULL : &c->a,
                                       c->null_out != 0 ? NULL : &c->out);
}

#define SET(field, number)                                                                         \
    {                                                                                              \
        SPOIL_FIELD(weight_call, field), SPOIL_SET, (int64_t)(number)                              \
    }
#define ADD(field, number)                                                                         \
    {                                                                                              \
        SPOIL_FIELD(weight_call, field), SPOIL_ADD, (int64_t)(number)                              \
    }
#define COPY(field, from)                                                                          \
    {                                                                                              \
        SPOIL_FIELD(weight_call, field), SPOIL_COPY, (int64_t)offsetof(weight_call, from)          \
    }
#define E4M3 SET(a.weight_group_size, 0), SET(a.type, HALFBYTE_TYPE_E4M3)
#define K_MAJOR                                                                                    \
    SET(a.layout, HALFBYTE_SCALE_K_MAJOR), SET(a.scale.stride_mn, 4), SET(a.scale.stride_k, 1)
#define BF16_SCALE SET(a.scale_type, HALFBYTE_TYPE_BF16)

/* What both directions check. */
static const spoil_row weight_rows[] = {
    {{SET(null_arguments, 1)}, INVALID, "arguments = NULL"},
    {{SET(a.struct_size, 1)}, INVALID, "arguments.struct_size = 1"},
    {{SET(a.type, HALFBYTE_TYPE_NONE)}, INVALID, "arguments.type = none (0): accepted: int4, e4m3"},
    {{SET(a.type, HALFBYTE_TYPE_E5M2)}, INVALID, "arguments.type = e5m2 (5)"},
    {{SET(a.type, 8)}, INVALID, "arguments.type = unknown (8)"},
    {{SET(a.scale_type, HALFBYTE_TYPE_E4M3)}, INVALID, "arguments.scale_type = e4m3 (4)"},
    {{SET(a.scale_type, -1)}, INVALID, "arguments.scale_type = unknown (-1)"},
    {{E4M3, BF16_SCALE}, INVALID, "arguments.scale_type = bf16 (2): accepted for e4m3: f32"},
    {{SET(a.layout, 2)}, INVALID, "arguments.layout = interleaved4 (2)"},
    {{SET(a.layout, -5)}, INVALID, "arguments.layout = unknown (-5)"},
    {{SET(a.flags, 1)}, INVALID, "arguments.flags = 0x1: accepted bits: 0x2"},
    {{SET(a.flags, 6)}, INVALID, "arguments.flags = 0x6"},
    {{SET(a.n, -1)}, INVALID, "arguments.n = -1"},
    {{SET(a.n, INT64_C(1) << 31)}, INVALID, "arguments.n = 2147483648"},
    {{SET(a.k, -7)}, INVALID, "arguments.k = -7"},
    {{SET(a.k, INT64_C(1) << 31)}, INVALID, "arguments.k = 2147483648"},
    {{SET(a.groups, -1)}, INVALID, "arguments.groups = -1: must be in [0, 1048576]"},
    {{SET(a.groups, (1 << 20) + 1)}, INVALID, "arguments.groups = 1048577"},
    {{SET(a.weight_group_size, 16)},
     INVALID,
     "arguments.weight_group_size = 16: accepted for int4"},
    {{SET(a.weight_group_size, -64)}, INVALID, "arguments.weight_group_size = -64"},
    {{SET(a.weight_group_size, 256)}, INVALID, "arguments.weight_group_size = 256"},
    {{E4M3, SET(a.weight_group_size, 128)},
     INVALID,
     "weight_group_size = 128: accepted for e4m3: 0"},
    {{SET(a.dst.data, 0)}, INVALID, "arguments.dst = NULL"},
    {{SET(a.dst.ld, K - 2)}, INVALID, "arguments.dst.ld = 198: must be at least 200"},
    {{SET(a.dst.ld, K + 1)}, MISALIGNED, "arguments.dst.ld = 201: must be a multiple of 2"},
    {{SET(a.dst.group_stride, N *K + 1)},
     MISALIGNED,
     "dst.group_stride = 1001: must be a multiple"},
    {{SET(a.dst.group_stride, -2)}, INVALID, "arguments.dst.group_stride = -2"},
    {{SET(a.dst.group_stride, INT64_MAX - 1)}, INVALID, "would not fit into the address space"},
    {{SET(a.scale.data, 0)}, INVALID, "arguments.scale = NULL"},
    {{ADD(a.scale.data, 2)}, MISALIGNED, "must be aligned to 4 bytes"},
    {{BF16_SCALE, ADD(a.scale.data, 1)}, MISALIGNED, "must be aligned to 2 bytes"},
    {{SET(a.scale.stride_k, N - 1)}, INVALID, "arguments.scale.stride_k = 4: must be at least 5"},
    {{K_MAJOR, SET(a.scale.stride_mn, 3)}, INVALID, "scale.stride_mn = 3: must be at least 4"},
    {{SET(a.scale.stride_mn, 4)}, INVALID, "arguments.scale.stride_mn = 4: must be 1 (or 0"},
    {{K_MAJOR, SET(a.scale.stride_k, N)}, INVALID, "arguments.scale.stride_k = 5: must be 1 (or 0"},
    {{SET(a.scale.group_stride, -1)}, INVALID, "arguments.scale.group_stride = -1"},
    {{SET(a.scale.group_stride, INT64_MAX)}, INVALID, "would not fit into the address space"},
};

static const spoil_row quantize_rows[] = {
    {{SET(a.src_type, HALFBYTE_TYPE_NONE)}, INVALID, "arguments.src_type = none (0)"},
    {{SET(a.src_type, HALFBYTE_TYPE_E8M0)}, INVALID, "arguments.src_type = e8m0 (6)"},
    {{SET(a.src_type, 99)}, INVALID, "arguments.src_type = unknown (99)"},
    {{SET(a.src.data, 0)}, INVALID, "arguments.src = NULL"},
    {{ADD(a.src.data, 1)}, MISALIGNED, "arguments.src = 0x"},
    {{SET(a.src.ld, K - 1)}, INVALID, "arguments.src.ld = 199"},
    {{SET(a.src.group_stride, -1)}, INVALID, "arguments.src.group_stride = -1"},
    {{SET(a.src.group_stride, INT64_MAX)}, INVALID, "would not fit into the address space"},
    {{SET(a.dst.group_stride, 0)}, INVALID, "groups would overlap"},
    {{SET(a.dst.group_stride, N *K - 2)}, INVALID, "groups would overlap; must be at least 1000"},
    {{SET(a.scale.group_stride, 0)}, INVALID, "arguments.scale.group_stride = 0: groups would"},
    {{SET(a.scale.group_stride, N * 4 - 1)}, INVALID, "must be at least 20"},
    {{COPY(a.dst.data, a.src.data)}, INVALID, "overlaps arguments.src"},
    {{COPY(a.scale.data, a.src.data)}, INVALID, "overlaps arguments.src"},
    {{COPY(a.dst.data, a.scale.data)}, INVALID, "overlaps arguments.scale"},
};

static const spoil_row dequantize_rows[] = {
    {{SET(null_out, 1)}, INVALID, "out = NULL"},
    {{SET(out.data, 0)}, INVALID, "out = NULL"},
    {{ADD(out.data, 3)}, MISALIGNED, "out = 0x"},
    {{SET(out.ld, K - 1)}, INVALID, "out.ld = 199"},
    {{SET(out.group_stride, 0)}, INVALID, "groups would overlap"},
    {{SET(out.group_stride, -4)}, INVALID, "out.group_stride = -4"},
    {{COPY(out.data, a.dst.data)}, INVALID, "overlaps arguments.dst"},
    {{COPY(out.data, a.scale.data)}, INVALID, "overlaps arguments.scale"},
};

static void test_weights(void **state)
{
    (void)state;
    spoil_check(weight_rows, COUNT(weight_rows), &weights, sizeof weights, weights_make,
                weights_run);
    spoil_check(quantize_rows, COUNT(quantize_rows), &weights, sizeof weights, weights_make,
                weights_run);
}

static void test_weights_back(void **state)
{
    (void)state;
    spoil_check(weight_rows, COUNT(weight_rows), &weights, sizeof weights, weights_make, back_run);
    spoil_check(dequantize_rows, COUNT(dequantize_rows), &weights, sizeof weights, weights_make,
                back_run);
}

/* Weights are the CPU's work whatever the device.  (Activations on a GPU: test_gpu_quantize.c.) */
static void test_other_executor(void **state)
{
    static weight_call on_gpu;
    (void)state;
    activations_make(&activations);
    activations.device = &emulator;
    assert_int_equal(activations_run(&activations), UNSUPPORTED);
    assert_non_null(strstr(halfbyte_last_error(), "executor emulator"));
    assert_true(activations.dst[0] == POISON);

    weights_make(&weights);
    weights_make(&on_gpu);
    on_gpu.device = &gpu;
    for (int i = 0; i < GROUPS * N * K; i++) {
        weights.src[i] = on_gpu.src[i] = (float)(i % 37 - 18);
    }
    assert_int_equal(weights_run(&weights), HALFBYTE_SUCCESS);
    assert_int_equal(back_run(&weights), HALFBYTE_SUCCESS);
    assert_int_equal(weights_run(&on_gpu), HALFBYTE_SUCCESS);
    assert_int_equal(back_run(&on_gpu), HALFBYTE_SUCCESS);
    assert_memory_equal(on_gpu.dst, weights.dst, sizeof weights.dst);
    assert_memory_equal(on_gpu.scale, weights.scale, sizeof weights.scale);
    assert_memory_equal(on_gpu.back, weights.back, sizeof weights.back);
    assert_true(weights.dst[0] != POISON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),         cmocka_unit_test(test_struct_size),
        cmocka_unit_test(test_interleaved_outputs), cmocka_unit_test(test_weights),
        cmocka_unit_test(test_weights_back),        cmocka_unit_test(test_other_executor),
        cmocka_unit_test(test_unit_stride),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
