/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte_pack_weights() and halfbyte_unpack_weights() on a GPU device whose driver writes down
 * what it is asked for, and whose scan finds what the test says.  Any call that is not here (to
 * take memory) would end the test.  What the kernels do with their parameters is tested on the
 * emulator and on GPUs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/device.h"
#include "api/pack_launch.h"
#include "cuda/gpu.h"

enum { MOST_CALLS = 12, CLEAR = -1, SET = -2, FETCH = -3, WAIT = -4, ASK = -5, BYTES = 8192 };

/* Of the driver, in order: one of the above, or the index of the kernel. */
static int calls[MOST_CALLS];
static int call_count;
static int contexts;
static int capturing;
static uint32_t scan_finds;
static int fails_at; /* number of the call that fails, -1: none */
static cuda_launch_config launched;
static pack_params passed;

static gpu fake;
static _Alignas(256) uint8_t plain[BYTES], packed[BYTES];

static cuda_result call_record(int what)
{
    assert_true(call_count < MOST_CALLS);
    assert_int_equal(contexts, 1);
    calls[call_count] = what;
    return call_count++ == fails_at ? 700 : 0;
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

static const halfbyte_stream stream = (halfbyte_stream)(uintptr_t)0x1230;

/* A kernel's function is the address of its entry in the table. */
static cuda_result fake_launch(const cuda_launch_config *config, cuda_function function,
                               void **parameters, void **extra)
{
    int kernel = -100;
    assert_null(extra);
    assert_true(config->stream == stream);
    for (int i = KERNEL_QUANTIZERS_END; i < KERNEL_ALL; i++) {
        if (function == fake.kernels[i].function) {
            kernel = i;
        }
    }
    launched = *config;
    memcpy(&passed, parameters[0], sizeof passed);
    if (kernel == KERNEL_INDEX_halfbyte_sm90_pack_scan) {
        assert_int_equal(*passed.flag, 0);
        *passed.flag = scan_finds;
    }
    return call_record(kernel);
}

static cuda_result fake_memset(cuda_pointer dst, size_t pitch, unsigned char value, size_t width,
                               size_t height, cuda_stream on)
{
    assert_true(pitch >= width && height == 1 && on == stream);
    assert_true((width == 4 && value == 0) || width == 1);
    memset((void *)(uintptr_t)dst, value, width);
    return call_record(width == 1 ? SET : CLEAR);
}

static cuda_result fake_fetch(void *dst, cuda_pointer src, size_t bytes, cuda_stream on)
{
    assert_true(bytes == 4 && on == stream);
    memcpy(dst, (const void *)(uintptr_t)src, bytes);
    return call_record(FETCH);
}

static cuda_result fake_wait(cuda_stream on)
{
    assert_true(on == stream);
    return call_record(WAIT);
}

static cuda_result fake_ask(cuda_stream on, int *status)
{
    assert_true(on == stream);
    *status = capturing;
    return call_record(ASK);
}

static const cuda_driver driver = {.error_name = fake_error_name,
                                   .context_push = fake_push,
                                   .context_pop = fake_pop,
                                   .launch = fake_launch,
                                   .memset_rows = fake_memset,
                                   .copy_to_host = fake_fetch,
                                   .stream_synchronize = fake_wait,
                                   .stream_is_capturing = fake_ask};

static halfbyte_device device = {.executor = HALFBYTE_EXECUTOR_GPU, .gpu = &fake};
static halfbyte_packed_header header;

static halfbyte_int4_desc desc_make(void)
{
    halfbyte_int4_desc d = halfbyte_int4_desc_init();
    d.n = 64;
    d.k = d.ld = 256;
    d.weight_group_size = 128;
    return d;
}

static int fresh(void **state)
{
    (void)state;
    call_count = contexts = capturing = 0;
    scan_finds = 0;
    fails_at = -1;
    fake.driver = &driver;
    fake.sm_count = 132;
    for (int i = 0; i < KERNEL_ALL; i++) {
        fake.kernels[i].function = (cuda_function)(uintptr_t)(i + 1);
    }
    for (size_t i = 0; i < BYTES; i++) {
        plain[i] = packed[i] = (uint8_t)(i % 7 + 1);
    }
    memset(&header, 0, sizeof header);
    return 0;
}

static void expect_calls(const int *expected, int count)
{
    assert_int_equal(call_count, count);
    assert_int_equal(contexts, 0);
    for (int i = 0; i < count; i++) {
        assert_int_equal(calls[i], expected[i]);
    }
}

static halfbyte_status pack(const halfbyte_int4_desc *d, const void *src)
{
    call_count = 0;
    return halfbyte_pack_weights(&device, d, src, packed, BYTES, &header, stream);
}

static void test_pack(void **state)
{
    static const int expected[] = {ASK,   CLEAR, KERNEL_INDEX_halfbyte_sm90_pack_scan,
                                   FETCH, WAIT,  KERNEL_INDEX_halfbyte_sm90_pack_weights};
    halfbyte_int4_desc d = desc_make();
    (void)state;
    assert_int_equal(pack(&d, plain), HALFBYTE_SUCCESS);
    expect_calls(expected, 6);
    assert_true(header.version == 1 && header.flags == 0 && header.n == 64 && header.k == 256 &&
                header.groups == 1 && header.weight_group_size == 128);
    assert_true(passed.holds_minus8 == 0 && passed.flip == 0 && passed.is_aligned == 1);
    assert_true(launched.grid_x == 1 && launched.block_x == PACK_THREADS);
    scan_finds = 1;
    d.layout = HALFBYTE_INT4_INT32_OFFSET;
    assert_int_equal(pack(&d, plain), HALFBYTE_SUCCESS);
    expect_calls(expected, 6);
    assert_int_equal(header.flags, HALFBYTE_PACKED_HOLDS_MINUS8);
    assert_true(passed.holds_minus8 == 1 && passed.flip == 0x88888888u);
    d = desc_make();
    assert_int_equal(pack(&d, plain), HALFBYTE_SUCCESS);
    d.ld = 260; /* rows at multiples of 2 bytes; 66 of them would not fit into plain */
    assert_int_equal(pack(&d, plain + 1), HALFBYTE_SUCCESS);
    assert_int_equal(passed.is_aligned, 0);
}

/* The flag's word comes back, and the weights in it count. */
static void test_in_place(void **state)
{
    static const int expected[] = {
        ASK, FETCH, WAIT, CLEAR, KERNEL_INDEX_halfbyte_sm90_pack_scan,    FETCH, WAIT,
        SET, SET,   SET,  SET,   KERNEL_INDEX_halfbyte_sm90_pack_in_place};
    const halfbyte_int4_desc d = desc_make();
    uint8_t before[BYTES];
    (void)state;
    for (int finds = 0; finds < 3; finds++) {
        scan_finds = finds == 1;
        packed[3] = finds == 2 ? 0x83 : 0x13;
        memcpy(before, packed, BYTES);
        assert_int_equal(pack(&d, packed), HALFBYTE_SUCCESS);
        expect_calls(expected, 12);
        assert_memory_equal(packed, before, BYTES);
        assert_int_equal(header.flags, finds > 0 ? HALFBYTE_PACKED_HOLDS_MINUS8 : 0);
    }
    assert_int_equal(launched.smem_bytes, PACK_IN_PLACE_SMEM(2));
}

static void test_unpack(void **state)
{
    static const int expected[] = {KERNEL_INDEX_halfbyte_sm90_unpack_weights};
    static const int in_place[] = {KERNEL_INDEX_halfbyte_sm90_pack_in_place};
    const halfbyte_int4_desc d = desc_make();
    (void)state;
    assert_int_equal(pack(&d, plain), HALFBYTE_SUCCESS);
    header.flags = HALFBYTE_PACKED_HOLDS_MINUS8;
    call_count = 0;
    capturing = 1;
    assert_int_equal(halfbyte_unpack_weights(&device, &header, packed, BYTES, &d, plain, stream),
                     HALFBYTE_SUCCESS);
    expect_calls(expected, 1);
    assert_int_equal(passed.holds_minus8, 1);
    call_count = 0;
    assert_int_equal(halfbyte_unpack_weights(&device, &header, packed, BYTES, &d, packed, stream),
                     HALFBYTE_SUCCESS);
    expect_calls(in_place, 1);
    assert_int_equal(passed.unpacks, 1);
}

static void test_empty(void **state)
{
    static const int zeros[] = {ASK, KERNEL_INDEX_halfbyte_sm90_pack_weights};
    halfbyte_int4_desc d = desc_make();
    (void)state;
    d.n = 0;
    assert_int_equal(pack(&d, NULL), HALFBYTE_SUCCESS);
    expect_calls(NULL, 0);
    assert_int_equal(header.version, 1);
    d = desc_make();
    d.k = d.ld = 0;
    d.group_k_offset = 32;
    assert_int_equal(pack(&d, NULL), HALFBYTE_SUCCESS);
    expect_calls(zeros, 2);
}

static void test_refusals(void **state)
{
    static const int asked[] = {ASK};
    halfbyte_int4_desc d = desc_make();
    (void)state;
    capturing = 1;
    assert_int_equal(pack(&d, plain), HALFBYTE_ERR_UNSUPPORTED);
    assert_non_null(strstr(halfbyte_last_error(), "stream = 0x1230: is being captured"));
    expect_calls(asked, 1);
    capturing = 0;
    assert_int_equal(pack(&d, packed + 16), HALFBYTE_ERR_INVALID_ARGUMENT);
    expect_calls(NULL, 0);
    assert_int_equal(header.version, 0);
}

/* The driver's failure is the caller's.  In place the weights are put back all the same. */
static void test_failures(void **state)
{
    const halfbyte_int4_desc d = desc_make();
    uint8_t before[BYTES];
    (void)state;
    memcpy(before, packed, BYTES);
    for (fails_at = 0; fails_at < 12; fails_at++) {
        memcpy(packed, before, BYTES);
        assert_int_equal(pack(&d, packed), HALFBYTE_ERR_CUDA);
        assert_non_null(strstr(halfbyte_last_error(), "CUDA_ERROR_OF_THE_TEST"));
        assert_int_equal(contexts, 0);
        assert_int_equal(header.version, 0);
        if (fails_at < 7 || fails_at > 10) { /* not that of putting back */
            assert_memory_equal(packed, before, BYTES);
        }
    }
    for (fails_at = 0; fails_at < 6; fails_at++) {
        assert_int_equal(pack(&d, plain), HALFBYTE_ERR_CUDA);
        assert_int_equal(call_count, fails_at + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_pack, fresh),     cmocka_unit_test_setup(test_in_place, fresh),
        cmocka_unit_test_setup(test_unpack, fresh),   cmocka_unit_test_setup(test_empty, fresh),
        cmocka_unit_test_setup(test_refusals, fresh), cmocka_unit_test_setup(test_failures, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
