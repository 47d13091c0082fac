/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte_quantize_activations() on a GPU device whose driver only writes down what it is asked
 * for. It knows how to launch and how to clear; any other call (to take memory, to wait) would end
 * the test. What the kernels do with their parameters is tested on the emulator and on GPUs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/device.h"
#include "api/quantize_launch.h"
#include "cuda/gpu.h"

enum { MOST_CALLS = 4, CLEAR = -1, M = 20, K = 4096 };

/* Of the driver, in order: CLEAR, or the index of the kernel. */
static int calls[MOST_CALLS];
static int call_count;
static int contexts;
static cuda_launch_config launched;
static quantize_params passed;
static cuda_result answer;
static cuda_stream cleared_on;
static cuda_pointer cleared;

static gpu fake;

static void call_record(int what)
{
    assert_true(call_count < MOST_CALLS);
    assert_int_equal(contexts, 1);
    calls[call_count++] = what;
}

static cuda_result fake_push(cuda_context context)
{
    (void)context;
    contexts++;
    return 0;
}

static cuda_result fake_pop(cuda_context *context)
{
    *context = NULL;
    contexts--;
    return 0;
}

static cuda_result fake_error_name(cuda_result result, const char **name)
{
    (void)result;
    *name = "CUDA_ERROR_OF_THE_TEST";
    return 0;
}

/* A kernel's function is the address of its entry in the table. */
static cuda_result fake_launch(const cuda_launch_config *config, cuda_function function,
                               void **parameters, void **extra)
{
    assert_null(extra);
    for (int i = KERNEL_COUNT; i < KERNEL_ALL; i++) {
        if (function == fake.kernels[i].function) {
            call_record(i);
        }
    }
    launched = *config;
    memcpy(&passed, parameters[0], sizeof passed);
    return answer;
}

static cuda_result fake_clear(cuda_pointer dst, size_t pitch, unsigned char value, size_t width,
                              size_t height, cuda_stream stream)
{
    assert_true(pitch >= width && width * height == sizeof(float) && value == 0);
    call_record(CLEAR);
    cleared = dst;
    cleared_on = stream;
    return answer;
}

static const cuda_driver driver = {.error_name = fake_error_name,
                                   .context_push = fake_push,
                                   .context_pop = fake_pop,
                                   .launch = fake_launch,
                                   .memset_rows = fake_clear};

static halfbyte_device device = {.executor = HALFBYTE_EXECUTOR_GPU, .gpu = &fake};
static const halfbyte_stream stream = (halfbyte_stream)(uintptr_t)0x1230;

/* Addresses that nobody may touch here. */
static halfbyte_activation_quantization arguments_make(halfbyte_scale_mode mode)
{
    halfbyte_activation_quantization a = halfbyte_activation_quantization_init();
    a.mode = mode;
    a.src_type = HALFBYTE_TYPE_BF16;
    a.m = M;
    a.k = K;
    a.src.data = (const void *)(uintptr_t)0x100000;
    a.src.ld = a.dst.ld = K + 16;
    a.dst.data = (void *)(uintptr_t)0x800000;
    a.scale.data = (void *)(uintptr_t)0x900000;
    a.scale.stride_mn = 1;
    a.scale.stride_k = M;
    return a;
}

static int fresh(void **state)
{
    (void)state;
    call_count = contexts = 0;
    answer = 0;
    fake.driver = &driver;
    fake.sm_count = 132;
    for (int i = 0; i < KERNEL_ALL; i++) {
        fake.kernels[i].function = (cuda_function)(uintptr_t)(i + 1);
    }
    return 0;
}

static halfbyte_status run(const halfbyte_activation_quantization *a)
{
    call_count = 0;
    return halfbyte_quantize_activations(&device, a, stream);
}

static void test_sequences(void **state)
{
    halfbyte_activation_quantization a = arguments_make(HALFBYTE_SCALE_TENSOR);
    (void)state;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 3);
    assert_int_equal(calls[0], CLEAR);
    assert_true(cleared == 0x900000 && cleared_on == stream);
    assert_int_equal(calls[1], KERNEL_INDEX_halfbyte_sm90_quantize_amax);
    assert_int_equal(calls[2], KERNEL_INDEX_halfbyte_sm90_quantize_tensor);
    assert_true(passed.is_computed == 1 && passed.epsilon == 1e-4f);

    a.flags = HALFBYTE_QUANTIZE_STATIC;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0], KERNEL_INDEX_halfbyte_sm90_quantize_tensor);
    assert_int_equal(passed.is_computed, 0);

    a = arguments_make(HALFBYTE_SCALE_OUTER);
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0], KERNEL_INDEX_halfbyte_sm90_quantize_rows);
    assert_true(launched.grid_x == M && launched.block_x == K / 32);

    a = arguments_make(HALFBYTE_SCALE_1X128);
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0], KERNEL_INDEX_halfbyte_sm90_quantize_blocks);
    assert_true(launched.stream == stream && launched.grid_y == 1 && launched.grid_z == 1);
    assert_int_equal(contexts, 0);
}

/* A tensor that a block can keep takes one launch, and so does the scale of no element. */
static void test_short_ways(void **state)
{
    halfbyte_activation_quantization a = arguments_make(HALFBYTE_SCALE_TENSOR);
    (void)state;
    a.src.ld = a.dst.ld = K;
    a.m = 4;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 1);
    assert_int_equal(calls[0], KERNEL_INDEX_halfbyte_sm90_quantize_rows);
    assert_true(passed.m == 1 && passed.k == 4 * K && launched.block_x <= QUANTIZE_ROWS_THREADS);

    a.k = 0;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 1);
    assert_true(passed.m == 1 && passed.k == 0 && launched.grid_x == 1);

    a.flags = HALFBYTE_QUANTIZE_STATIC;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 0);
    a = arguments_make(HALFBYTE_SCALE_1X128);
    a.m = 0;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 0);
}

/* Whole vectors are for rows that begin where vectors may. */
static void test_alignment(void **state)
{
    halfbyte_activation_quantization a = arguments_make(HALFBYTE_SCALE_1X128);
    (void)state;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_true(passed.src_is_aligned == 1 && passed.dst_is_aligned == 1);
    a.src.data = (const void *)(uintptr_t)0x100002;
    a.dst.data = (void *)(uintptr_t)0x800004;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_true(passed.src_is_aligned == 0 && passed.dst_is_aligned == 0);
    a.src_type = HALFBYTE_TYPE_F32;
    a.src.data = (const void *)(uintptr_t)0x100008;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_true(passed.src_is_aligned == 0 && passed.dst_is_aligned == 1);
    a = arguments_make(HALFBYTE_SCALE_OUTER);
    a.src.ld = a.dst.ld = K + 4;
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_true(passed.src_is_aligned == 0 && passed.dst_is_aligned == 0);
    a.m = 1; /* one row has no stride that matters */
    assert_int_equal(run(&a), HALFBYTE_SUCCESS);
    assert_true(passed.src_is_aligned == 1 && passed.dst_is_aligned == 1);
}

/* Refused before the driver hears of it. */
static void test_refusals(void **state)
{
    halfbyte_activation_quantization a = arguments_make(HALFBYTE_SCALE_1X128);
    (void)state;
    a.src.data = (const void *)(uintptr_t)0x100001;
    assert_int_equal(run(&a), HALFBYTE_ERR_MISALIGNED);
    a = arguments_make(HALFBYTE_SCALE_1X128);
    a.dst.ld = K - 1;
    assert_int_equal(run(&a), HALFBYTE_ERR_INVALID_ARGUMENT);
    a = arguments_make(HALFBYTE_SCALE_1X128);
    a.scale.data = (void *)(uintptr_t)0x100000;
    assert_int_equal(run(&a), HALFBYTE_ERR_INVALID_ARGUMENT);
    a = arguments_make(HALFBYTE_SCALE_1X128);
    a.m = a.scale.stride_k = INT32_MAX; /* 2^58 elements */
    a.k = a.src.ld = a.dst.ld = 1 << 27;
    a.src.data = (const void *)(uintptr_t)64;
    a.dst.data = (void *)(uintptr_t)0x9000000000000000;
    a.scale.data = (void *)(uintptr_t)0xe000000000000000;
    assert_int_equal(run(&a), HALFBYTE_ERR_UNSUPPORTED);
    assert_non_null(strstr(halfbyte_last_error(), "arguments.m = 2147483647"));
    assert_int_equal(call_count, 0);
}

/* The driver's failure is the caller's; what would have followed is not enqueued. */
static void test_failures(void **state)
{
    halfbyte_activation_quantization a = arguments_make(HALFBYTE_SCALE_TENSOR);
    (void)state;
    answer = 700;
    assert_int_equal(run(&a), HALFBYTE_ERR_CUDA);
    assert_non_null(strstr(halfbyte_last_error(), "CUDA_ERROR_OF_THE_TEST"));
    assert_int_equal(call_count, 1);
    a.flags = HALFBYTE_QUANTIZE_STATIC;
    assert_int_equal(run(&a), HALFBYTE_ERR_CUDA);
    assert_int_equal(call_count, 1);
    assert_int_equal(contexts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sequences, fresh),
        cmocka_unit_test_setup(test_short_ways, fresh),
        cmocka_unit_test_setup(test_alignment, fresh),
        cmocka_unit_test_setup(test_refusals, fresh),
        cmocka_unit_test_setup(test_failures, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
