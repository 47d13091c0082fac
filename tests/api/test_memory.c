/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: every allocation of opening and planning fails once, and nothing leaks; running allocates
 * nothing.  The program is linked with --wrap, so that malloc and its kin come by here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/call.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __wrap_free(void *memory);

/* The counted stretch of a test; one thread allocates in it. */
static int64_t allocations;
static int64_t live;
static int64_t fail_at; /* number of the allocation that fails, from 1; 0 = none */

static bool allocation_fails(void)
{
    allocations++;
    return allocations == fail_at;
}

static void *counted(void *memory)
{
    live += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return allocation_fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return allocation_fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (allocation_fails()) {
        return NULL;
    }
    return memory == NULL ? counted(__real_realloc(memory, bytes)) : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return allocation_fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (allocation_fails()) {
        return 12; /* ENOMEM */
    }
    const int result = __real_posix_memalign(memory, alignment, bytes);
    live += result == 0;
    return result;
}

void __wrap_free(void *memory)
{
    live -= memory != NULL;
    __real_free(memory);
}

static void counting_begin(int64_t failing)
{
    allocations = 0;
    live = 0;
    fail_at = failing;
}

static char untouched;

/* Lets the allocations of opening a device fail, one after the other, until none is left. */
static void open_out_of_memory(void **state)
{
    (void)state;
    halfbyte_device_options options = halfbyte_device_options_init();
    int64_t failures = 0;
    for (options.threads = 1; options.threads <= 3; options.threads++) {
        for (int64_t failing = 1;; failing++) {
            halfbyte_device *device = (halfbyte_device *)&untouched;
            counting_begin(failing);
            const halfbyte_status status = halfbyte_device_open(&device, &options);
            fail_at = 0;
            if (status == HALFBYTE_SUCCESS) {
                assert_true(live > 0);
                halfbyte_device_close(device);
                assert_int_equal(live, 0);
                assert_true(allocations < failing);
                break;
            }
            assert_int_equal(status, HALFBYTE_ERR_OUT_OF_MEMORY);
            assert_ptr_equal(device, &untouched);
            assert_int_equal(live, 0);
            assert_non_null(strstr(halfbyte_last_error(), "out of memory"));
            failures++;
        }
    }
    assert_true(failures >= 2 * 3); /* the device and its pool, each time */
}

static void plan_out_of_memory(void **state)
{
    (void)state;
    static call made;
    halfbyte_device *device;
    call_make(&made, BASE_W4A8);
    assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_SUCCESS);
    halfbyte_plan *plan = (halfbyte_plan *)&untouched;
    counting_begin(1);
    assert_int_equal(halfbyte_plan_create(&plan, &made.problem, device),
                     HALFBYTE_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(plan, &untouched);
    assert_int_equal(live, 0);
    assert_non_null(strstr(halfbyte_last_error(), "out of memory"));
    counting_begin(2);
    assert_int_equal(halfbyte_plan_create(&plan, &made.problem, device), HALFBYTE_SUCCESS);
    assert_int_equal(allocations, 1);
    fail_at = 0;
    halfbyte_plan_destroy(plan);
    assert_int_equal(live, 0);
    halfbyte_device_close(device);
}

/* Neither running nor checking nor failing nor describing allocates. */
static void the_rest_allocates_nothing(void **state)
{
    (void)state;
    static call made;
    char text[HALFBYTE_TEXT_BYTES];
    int runs = 0;
    for (call_base base = 0; base < CALL_BASES; base++) {
        halfbyte_device *device;
        halfbyte_plan *plan;
        call_make(&made, base);
        made.options.threads = 2;
        assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_SUCCESS);
        assert_int_equal(halfbyte_plan_create(&plan, &made.problem, device), HALFBYTE_SUCCESS);
        counting_begin(1);
        assert_int_equal(halfbyte_run(plan, &made.operands, NULL, 0, NULL), HALFBYTE_SUCCESS);
        assert_int_equal(halfbyte_check_groups(plan, &made.operands, NULL), HALFBYTE_SUCCESS);
        made.operands.m = -1;
        assert_int_equal(halfbyte_run(plan, &made.operands, NULL, 0, NULL),
                         HALFBYTE_ERR_INVALID_ARGUMENT);
        assert_int_equal(halfbyte_plan_describe(plan, text, sizeof text), HALFBYTE_SUCCESS);
        assert_int_equal(halfbyte_device_describe(device, text, sizeof text), HALFBYTE_SUCCESS);
        assert_int_equal(allocations, 0);
        assert_int_equal(live, 0);
        fail_at = 0;
        halfbyte_plan_destroy(plan);
        halfbyte_device_close(device);
        runs++;
    }
    assert_int_equal(runs, CALL_BASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_out_of_memory),
        cmocka_unit_test(plan_out_of_memory),
        cmocka_unit_test(the_rest_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
