/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte_check_groups() on a GPU device, whose memory is the host's here: what it copies, that it
 * waits, and that it gives all memory back, also where a copy or an allocation fails.  malloc and
 * free come by here: see CMakeLists.txt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/device.h"
#include "api/plan.h"
#include "api/problem_check.h"
#include "cuda/gpu.h"

enum { M = 100, GROUPS = 3 };

void *__real_malloc(size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void __wrap_free(void *memory);

static int allocations, live, allocation_fails_at;
static int contexts, entered, copies, waits, copy_fails_at;

static const halfbyte_stream stream = (halfbyte_stream)(uintptr_t)0x1230;

void *__wrap_malloc(size_t bytes)
{
    void *const memory = ++allocations == allocation_fails_at ? NULL : __real_malloc(bytes);
    live += memory != NULL;
    return memory;
}

void __wrap_free(void *memory)
{
    live -= memory != NULL;
    __real_free(memory);
}

static cuda_result fake_push(cuda_context context)
{
    (void)context;
    contexts++;
    entered++;
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

static cuda_result fake_copy(void *dst, cuda_pointer src, size_t bytes, cuda_stream on)
{
    assert_ptr_equal(on, stream);
    memcpy(dst, (const void *)(uintptr_t)src, bytes);
    copies++;
    return copies == copy_fails_at ? 700 : 0;
}

static cuda_result fake_wait(cuda_stream on)
{
    assert_ptr_equal(on, stream);
    waits++;
    return 0;
}

static const cuda_driver driver = {.error_name = fake_error_name,
                                   .context_push = fake_push,
                                   .context_pop = fake_pop,
                                   .copy_to_host = fake_copy,
                                   .stream_synchronize = fake_wait};

static gpu fake = {.driver = &driver};
static halfbyte_device device = {.executor = HALFBYTE_EXECUTOR_GPU, .gpu = &fake};
static halfbyte_problem problem;
static halfbyte_operands operands;

static void problem_make(halfbyte_grouping grouping)
{
    problem = halfbyte_problem_init();
    problem.family = HALFBYTE_FAMILY_FP8;
    problem.grouping = grouping;
    problem.groups = grouping == HALFBYTE_GROUPING_DENSE ? 1 : GROUPS;
    problem.m_max = M;
    problem.d_type = HALFBYTE_TYPE_F32;
    operands = halfbyte_operands_init();
    operands.m = M;
}

static halfbyte_status check(void)
{
    halfbyte_problem resolved = problem;
    problem_resolve(&resolved, HALFBYTE_PROFILE_SM90);
    const halfbyte_plan plan = {.problem = resolved, .device = &device};
    const int before = live;
    entered = copies = waits = allocations = 0;
    const halfbyte_status status = halfbyte_check_groups(&plan, &operands, stream);
    assert_int_equal(live, before);
    assert_int_equal(contexts, 0);
    return status;
}

static void test_check_groups(void **state)
{
    static const int64_t starts[] = {0, 77, 20, 77, 40, 77};
    static const int64_t counts[] = {20, 10, 60};
    static const int64_t too_many[] = {20, 10, 61};
    static int32_t labels[M];
    (void)state;
    problem_make(HALFBYTE_GROUPING_RANGES);
    problem.index_type = HALFBYTE_INDEX_INT64;
    operands.groups = (halfbyte_groups){.starts = starts, .starts_stride = 2, .counts = counts};
    assert_int_equal(check(), HALFBYTE_SUCCESS);
    assert_true(copies == 2 && waits == 2);
    assert_int_equal(entered, 1);
    operands.groups.counts = too_many;
    assert_int_equal(check(), HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), "operands.groups.counts[2] = 61"));

    problem_make(HALFBYTE_GROUPING_LABELS);
    operands.groups.labels = labels;
    labels[3] = 2;
    assert_int_equal(check(), HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), "operands.groups.labels[4] = 0"));
    problem_make(HALFBYTE_GROUPING_DENSE);
    assert_int_equal(check(), HALFBYTE_SUCCESS);
    assert_int_equal(copies, 0);
}

static void test_check_groups_fails(void **state)
{
    static const int32_t starts[] = {0, 1, 2};
    static const int32_t counts[] = {1, 1, 1};
    (void)state;
    problem_make(HALFBYTE_GROUPING_RANGES);
    operands.groups = (halfbyte_groups){.starts = starts, .counts = counts};
    for (copy_fails_at = 1; copy_fails_at <= 2; copy_fails_at++) {
        assert_int_equal(check(), HALFBYTE_ERR_CUDA);
        assert_int_equal(entered, 1);
    }
    copy_fails_at = 0;
    for (allocation_fails_at = 1; allocation_fails_at <= 2; allocation_fails_at++) {
        assert_int_equal(check(), HALFBYTE_ERR_OUT_OF_MEMORY);
        assert_int_equal(entered, 0);
    }
    allocation_fails_at = 0;
    assert_int_equal(check(), HALFBYTE_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_groups),
        cmocka_unit_test(test_check_groups_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
