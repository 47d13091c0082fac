/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on the machine or on the inside of a plan: code paths, and the workspace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/call.h"
#include "api/plan.h"
#include "model/chain.h"

/* A code path opens if this CPU has it, gives everybody's bits, and is refused by name if not. */
static void code_paths(void **state)
{
    (void)state;
    static const struct {
        halfbyte_isa isa;
        chain_isa chain;
        const char *name;
    } paths[] = {
        {HALFBYTE_ISA_AUTO, CHAIN_ISA_AUTO, "auto"},
        {HALFBYTE_ISA_PORTABLE, CHAIN_ISA_PORTABLE, "portable"},
        {HALFBYTE_ISA_AVX2, CHAIN_ISA_AVX2, "avx2"},
        {HALFBYTE_ISA_AVX512, CHAIN_ISA_AVX512, "avx512"},
    };
    static call made;
    static unsigned char portable[CALL_D_BYTES];
    call_make(&made, BASE_W4A8);
    made.options.isa = HALFBYTE_ISA_PORTABLE;
    call_run(&made);
    memcpy(portable, call_d(), sizeof portable);
    char untouched;
    int opened = 0;
    int refused = 0;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        made.options.isa = paths[i].isa;
        if (chain_ops_get(paths[i].chain) != NULL) {
            call_run(&made);
            assert_memory_equal(call_d(), portable, sizeof portable);
            opened++;
            continue;
        }
        halfbyte_device *device = (halfbyte_device *)&untouched;
        assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_ERR_NO_DEVICE);
        assert_ptr_equal(device, &untouched);
        assert_non_null(strstr(halfbyte_last_error(), "options.isa = "));
        assert_non_null(strstr(halfbyte_last_error(), paths[i].name));
        refused++;
    }
    assert_true(opened >= 2);
    assert_int_equal(opened + refused, 4);
}

/*
 * The GPU executor opens where there is a Hopper GPU and is refused by a sentence elsewhere; AUTO
 * takes the model then.
 */
static void gpu_or_model(void **state)
{
    (void)state;
    char text[HALFBYTE_TEXT_BYTES];
    char untouched;
    halfbyte_device *device = (halfbyte_device *)&untouched;
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_GPU;
    const halfbyte_status status = halfbyte_device_open(&device, &options);
    const bool has_gpu = status == HALFBYTE_SUCCESS;
    if (has_gpu) {
        halfbyte_device_close(device);
    } else {
        assert_true(status == HALFBYTE_ERR_NO_DEVICE || status == HALFBYTE_ERR_UNSUPPORTED);
        assert_ptr_equal(device, &untouched);
        assert_ptr_equal(strstr(halfbyte_last_error(), "options.executor = gpu: "),
                         halfbyte_last_error());
    }
    options.executor = HALFBYTE_EXECUTOR_AUTO;
    assert_int_equal(halfbyte_device_open(&device, &options), HALFBYTE_SUCCESS);
    assert_int_equal(halfbyte_device_describe(device, text, sizeof text), HALFBYTE_SUCCESS);
    assert_non_null(strstr(text, has_gpu ? "executor=gpu" : "executor=model"));
    halfbyte_device_close(device);
    options.executor = HALFBYTE_EXECUTOR_GPU;
    options.profile = HALFBYTE_PROFILE_ANY;
    assert_int_equal(halfbyte_device_open(&device, &options), HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(halfbyte_last_error(), "options.profile = any"));
}

/* The model needs no workspace, so a plan that needs one is made by hand. */
static void workspace_of_a_plan(void **state)
{
    (void)state;
    enum { NEEDED = 512 };
    static _Alignas(256) unsigned char workspace[NEEDED];
    static call made;
    halfbyte_device *device;
    halfbyte_plan *plan;
    call_make(&made, BASE_FP8);
    call_run(&made);
    memset(made.operands.d.data, CALL_POISON, CALL_D_BYTES);
    assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_SUCCESS);
    assert_int_equal(halfbyte_plan_create(&plan, &made.problem, device), HALFBYTE_SUCCESS);
    plan->workspace_bytes = NEEDED;
    assert_int_equal(halfbyte_plan_workspace_bytes(plan), NEEDED);
    assert_int_equal(halfbyte_run(plan, &made.operands, NULL, 0, NULL),
                     HALFBYTE_ERR_BUFFER_TOO_SMALL);
    assert_non_null(strstr(halfbyte_last_error(), "workspace_bytes = 0: this plan needs 512"));
    assert_int_equal(halfbyte_run(plan, &made.operands, workspace, NEEDED - 1, NULL),
                     HALFBYTE_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(halfbyte_run(plan, &made.operands, NULL, NEEDED, NULL),
                     HALFBYTE_ERR_INVALID_ARGUMENT);
    for (size_t i = 0; i < CALL_D_BYTES; i++) {
        assert_int_equal(call_d()[i], CALL_POISON);
    }
    assert_int_equal(halfbyte_run(plan, &made.operands, workspace, NEEDED, NULL), HALFBYTE_SUCCESS);
    halfbyte_plan_destroy(plan);
    halfbyte_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_paths),
        cmocka_unit_test(gpu_or_model),
        cmocka_unit_test(workspace_of_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
