/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantisers' kernels on the emulator: launched as a GPU would be, equal to the CPU in every
 * byte of the images, and nothing to report.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/quantize_launch.h"
#include "emulator/emulator.h"
#include "gpu/quantize_case.h"

#define QUANTIZER_ROW(name, threads, smem_bytes) void name(const void *params);
#include "api/quantize_kernels.def"
#undef QUANTIZER_ROW

typedef void kernel_function(const void *params);

static kernel_function *const functions[KERNEL_QUANTIZERS_END - KERNEL_GROUPS_END] = {
#define QUANTIZER_ROW(name, threads, smem_bytes) name,
#include "api/quantize_kernels.def"
#undef QUANTIZER_ROW
};

static int launches_seen[KERNEL_QUANTIZERS_END - KERNEL_GROUPS_END];
static int64_t bytes_compared;

static void launch_run(const quantize_launch *one, emu_memory *memory, const emu_config *config,
                       emu_report *report)
{
    const kernel_row *row = &kernel_table[one->kernel];
    emu_launch launch = {.name = row->name,
                         .kernel = functions[one->kernel - KERNEL_GROUPS_END],
                         .params = &one->params,
                         .params_bytes = sizeof one->params,
                         .blocks = one->blocks,
                         .cluster = 1,
                         .threads = one->threads,
                         .smem_bytes = row->smem_bytes};
    assert_true(one->threads <= row->threads);
    assert_int_equal(emu_run(config, memory, &launch, 1, report), EMU_OK);
    launches_seen[one->kernel - KERNEL_GROUPS_END]++;
}

/* The kernels may touch the tensors, gaps included, and no guard. */
static void case_run(quantize_case *c, const emu_config *config)
{
    quantize_launches launches;
    emu_memory *memory = emu_memory_create();
    emu_report *report = emu_report_create();
    const halfbyte_activation_quantization a =
        quantize_case_at(c, c->src.bytes, c->dst.bytes, c->scale.bytes);
    halfbyte_activation_quantization resolved = a;
    resolved.epsilon = a.epsilon == 0 ? 1e-4f : a.epsilon;
    assert_non_null(memory);
    assert_non_null(report);
    assert_int_equal(quantize_launches_make(&resolved, 2, &launches), HALFBYTE_SUCCESS);
    assert_true(emu_memory_add(memory, a.src.data, c->src.data_size, "src", EMU_READ_ONLY));
    assert_true(emu_memory_add(memory, a.dst.data, c->dst.data_size, "dst", EMU_READ_WRITE));
    assert_true(emu_memory_add(memory, a.scale.data, c->scale.data_size, "scale", EMU_READ_WRITE));
    if (launches.clears_scale) {
        memset(a.scale.data, 0, sizeof(float));
    }
    for (int i = 0; i < launches.count; i++) {
        launch_run(&launches.launch[i], memory, config, report);
    }
    if (emu_report_count(report) != 0) {
        emu_report_print(report, config, stderr);
    }
    assert_int_equal(emu_report_count(report), 0);
    assert_memory_equal(c->dst.bytes, c->dst_expected, c->dst.size);
    assert_memory_equal(c->scale.bytes, c->scale_expected, c->scale.size);
    bytes_compared += (int64_t)(c->dst.data_size + c->scale.data_size);
    emu_report_destroy(report);
    emu_memory_destroy(memory);
}

static const quantize_shape shapes[] = {
    {1, 1, false},    {3, 31, false},   {2, 1030, false}, {9, 264, true},  {5, 333, true},
    {1, 4200, false}, {17, 129, false}, {2, 2056, true},  {10, 40, false}, {9, 1100, false},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };
static const halfbyte_type types[] = {HALFBYTE_TYPE_F32, HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16};

static int rounds = 1; /* the program's argument */

/* Every type and shape, each time under another order, policy and seed. */
static void form_check(quantize_form form)
{
    struct random r = {(uint64_t)form + 1};
    int cases = 0;
    for (int type = 0; type < 3 * rounds; type++) {
        for (int i = 0; i < SHAPES; i++) {
            quantize_case c;
            emu_config config = emu_config_default();
            config.order = (emu_order)(cases % EMU_ORDER_COUNT);
            config.policy = (emu_policy)(cases % EMU_POLICY_COUNT);
            config.starved_warp = cases % 4;
            config.seed = (uint64_t)cases;
            quantize_case_make(&c, &r, form, types[type % 3],
                               (quantize_fill)(cases % QUANTIZE_FILLS), cases % 2 == 1, shapes[i]);
            case_run(&c, &config);
            quantize_case_free(&c);
            cases++;
        }
    }
    assert_int_equal(cases, 3 * SHAPES * rounds);
}

static void test_static(void **state)
{
    (void)state;
    form_check(QUANTIZE_FORM_STATIC);
}

static void test_tensor(void **state)
{
    (void)state;
    form_check(QUANTIZE_FORM_TENSOR);
}

static void test_outer(void **state)
{
    (void)state;
    form_check(QUANTIZE_FORM_OUTER);
}

static void test_blocks(void **state)
{
    (void)state;
    form_check(QUANTIZE_FORM_BLOCKS_MN);
    form_check(QUANTIZE_FORM_BLOCKS_K);
}

/* Two passes over a tensor that one block cannot keep; a row that a block must read twice. */
static void test_large(void **state)
{
    struct random r = {77};
    quantize_case c;
    emu_config config = emu_config_default();
    (void)state;
    config.order = EMU_SHUFFLED;
    quantize_case_make(&c, &r, QUANTIZE_FORM_TENSOR, HALFBYTE_TYPE_F32, QUANTIZE_FILL_NORMAL, false,
                       (quantize_shape){3, 4100, true});
    case_run(&c, &config);
    quantize_case_free(&c);
    quantize_case_make(&c, &r, QUANTIZE_FORM_OUTER, HALFBYTE_TYPE_F32, QUANTIZE_FILL_NORMAL, true,
                       (quantize_shape){2, 9001, false});
    case_run(&c, &config);
    quantize_case_free(&c);
}

static void test_everything_ran(void **state)
{
    (void)state;
    for (int i = 0; i < KERNEL_QUANTIZERS_END - KERNEL_GROUPS_END; i++) {
        assert_true(launches_seen[i] > 0);
    }
    assert_true(bytes_compared > 100000);
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_static), cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_outer),  cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_large),  cmocka_unit_test(test_everything_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
