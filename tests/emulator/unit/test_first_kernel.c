/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first kernel on the emulator: the model's bits and no finding, under every policy and order.
 * Prints what a run costs.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "emulator/unit/all_schedules.h"
#include "emulator/unit/fp8_case.h"

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Line of the copies in the kernel: what DELAY_SITE delays is found by running it once. */
static int line_of(const char *instruction)
{
    for (size_t i = 0; i < emu_site_count(); i++) {
        if (strcmp(emu_site_at(i)->instruction, instruction) == 0) {
            return emu_site_at(i)->line;
        }
    }
    return 0;
}

static size_t run_all(fp8_case *c, const fp8_kernel *kernel, emu_report *report)
{
    size_t runs = 0;
    for (int index = 0; index < ALL_SCHEDULES; index++) {
        const emu_config config = schedule_numbered(index, 3 + runs, "gemm_fp8_any.h",
                                                    line_of(index % 2 == 0 ? "tma_load" : "wgmma"));
        emu_report_clear(report);
        const emu_status status = fp8_case_run(c, kernel, &config, report);
        const size_t different = fp8_case_differences(c);
        if (status != EMU_OK || emu_report_count(report) != 0 || different != 0) {
            emu_report_print(report, &config, stderr);
            fail_msg(
                "m %d n %d k %d blocks %d: status %d, %zu findings, %zu elements differ, %s, %s",
                c->shape.m, c->shape.n, c->shape.k, c->shape.blocks, (int)status,
                emu_report_count(report), different, emu_policy_name(config.policy),
                emu_order_name(config.order));
        }
        runs++;
    }
    return runs;
}

/* k blocks around the three stages of the ring; ragged edges; more tiles than blocks; more blocks
 * than tiles; specials. */
static const fp8_case_shape shapes[] = {
    {1, 8, 16, 1, false},     {128, 128, 128, 1, false}, {64, 40, 0, 1, false},
    {17, 24, 256, 1, false},  {65, 136, 384, 2, false},  {130, 8, 500, 1, false},
    {3, 129, 896, 1, false},  {127, 127, 130, 1, true},  {200, 260, 144, 2, true},
    {260, 140, 272, 1, true}, {128, 128, 400, 3, false}, {31, 57, 640, 1, true},
};

static void test_grid(void **state)
{
    (void)state;
    emu_report *report = emu_report_create();
    size_t runs = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        fp8_case c;
        fp8_case_make(&c, &shapes[i], i + 1);
        runs += run_all(&c, &fp8_kernel_3, report);
        fp8_case_free(&c);
    }
    assert_int_equal(runs, sizeof shapes / sizeof shapes[0] * ALL_SCHEDULES);
    emu_report_destroy(report);
}

/* As it is shipped: k blocks 0, 1, stages - 1, stages, stages + 1, 2 * stages + 1. */
static void test_shipped(void **state)
{
    (void)state;
    static const int k_blocks[] = {0, 1, 5, 6, 7, 13};
    emu_report *report = emu_report_create();
    for (size_t i = 0; i < sizeof k_blocks / sizeof k_blocks[0]; i++) {
        const fp8_case_shape shape = {20 + (int)i, 24, k_blocks[i] * 128, 1, i == 2};
        fp8_case c;
        fp8_case_make(&c, &shape, 100 + i);
        assert_int_equal(run_all(&c, &fp8_kernel_6, report), ALL_SCHEDULES);
        fp8_case_free(&c);
    }
    emu_report_destroy(report);
}

static void test_speed(void **state)
{
    (void)state;
    const fp8_case_shape shape = {128, 128, 512, 1, false};
    emu_report *report = emu_report_create();
    fp8_case c;
    fp8_case_make(&c, &shape, 1);
    for (int policy = 0; policy < EMU_POLICY_COUNT; policy++) {
        double least = 1e9;
        for (int repeat = 0; repeat < 5; repeat++) {
            emu_config config = emu_config_default();
            config.policy = (emu_policy)policy;
            const double start = cpu_ms();
            assert_int_equal(fp8_case_run(&c, &fp8_kernel_6, &config, report), EMU_OK);
            const double spent = cpu_ms() - start;
            least = spent < least ? spent : least;
            assert_int_equal(fp8_case_differences(&c), 0);
        }
        print_message("128x128x512, 384 threads, %s: %.1f ms of CPU\n",
                      emu_policy_name((emu_policy)policy), least);
    }
    fp8_case_free(&c);
    emu_report_destroy(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grid), cmocka_unit_test(test_shipped),
                                       cmocka_unit_test(test_speed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
