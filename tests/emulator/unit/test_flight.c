/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers in flight: who touched them is named whether C code did or an instruction of the layer;
 * other elements of a fragment are nobody's business; relaxed mode lifts what it says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emulator/emulator.h"
#include "emulator/unit/all_schedules.h"
#include "kernels/hopper/hopper.h"

enum { TOUCH_NOTHING, TOUCH_BY_LOAD, TOUCH_BY_CODE, TOUCH_OTHER_ELEMENTS, READ_ACCUMULATOR };

typedef struct flight_params {
    float *out; /* 128 */
    uint32_t touch;
} flight_params;

enum { LOAD_LINE = __LINE__ + 21, CODE_LINE = LOAD_LINE + 2, READ_LINE = LOAD_LINE + 8 };

KERNEL(flight_kernel, flight_params, p, 128)
{
    FRAGMENT_F32(d, 4);
    FRAGMENT_U32(a, 8);
    const smem_addr base = smem_base();
    float sum;
    uint32_t i;
    for (i = 0; i < 8; i++) {
        a[i] = 0x38383838u;
    }
    for (i = thread_index(); i < 256 / 4; i += 128) {
        smem_store_u32(base + i * 4u, 0x38383838u);
    }
    fence_proxy_async();
    block_sync();
    wgmma_fence();
    wgmma_e4m3_rs_n8(d, a, wgmma_desc(base, 128, 256, SWIZZLE_NONE), 0);
    wgmma_commit();
    if (p->touch == TOUCH_BY_LOAD) {
        smem_load_u32x4(base, a);
    } else if (p->touch == TOUCH_BY_CODE) {
        a[2] = 0;
    } else if (p->touch == TOUCH_OTHER_ELEMENTS) {
        a[6] = 0;
    }
    sum = 0.0f;
    if (p->touch == READ_ACCUMULATOR) {
        sum = d[1];
    }
    wgmma_wait(0);
    global_store_f32(p->out + thread_index(), add_rn(mul_rn(sum, 0.0f), d[0]));
}

static float out[128];

static void run(emu_memory *memory, emu_report *report, uint32_t touch, const emu_config *config)
{
    const flight_params params = {out, touch};
    const emu_launch launch = {"flight", flight_kernel, &params, sizeof params, 1, 1, 128, 4096, 0};
    memset(out, 0, sizeof out);
    emu_report_clear(report);
    assert_int_equal(emu_run(config, memory, &launch, 1, report), EMU_OK);
}

static void expect_one(const emu_report *report, const char *hazard, int line,
                       const char *instruction)
{
    assert_int_equal(emu_report_count(report), 1);
    const emu_finding *finding = emu_report_finding(report, 0);
    assert_string_equal(finding->hazard, hazard);
    assert_non_null(finding->place.file);
    assert_non_null(strstr(finding->place.file, "test_flight.c"));
    assert_int_equal(finding->place.line, line);
    if (instruction == NULL) {
        assert_null(finding->place.instruction);
    } else {
        assert_string_equal(finding->place.instruction, instruction);
    }
    assert_string_equal(finding->other.instruction, "wgmma");
    assert_int_equal(finding->count, 128);
}

static void test_touches(void **state)
{
    (void)state;
    emu_memory *memory = emu_memory_create();
    emu_report *report = emu_report_create();
    assert_true(emu_memory_add(memory, out, sizeof out, "out", EMU_READ_WRITE));
    for (int index = 0; index < ALL_SCHEDULES; index++) {
        const emu_config config = schedule_numbered(index, 3, NULL, 0);
        run(memory, report, TOUCH_NOTHING, &config);
        assert_int_equal(emu_report_count(report), 0);
        for (int t = 0; t < 128; t++) {
            assert_true(out[t] == 32.0f);
        }
        run(memory, report, TOUCH_OTHER_ELEMENTS, &config);
        assert_int_equal(emu_report_count(report), 0);
        run(memory, report, TOUCH_BY_LOAD, &config);
        expect_one(report, "b", LOAD_LINE, "smem_load");
        run(memory, report, TOUCH_BY_CODE, &config);
        expect_one(report, "b", CODE_LINE, NULL);
        run(memory, report, READ_ACCUMULATOR, &config);
        expect_one(report, "a", READ_LINE, NULL);
    }
    emu_report_destroy(report);
    emu_memory_destroy(memory);
}

typedef struct relaxed_params {
    uint32_t *out;
    const uint8_t *in;
} relaxed_params;

/* Ordinary reads, then a copy over what was read: ordered by a barrier, without a proxy fence. */
KERNEL(relaxed_kernel, relaxed_params, p, 64)
{
    const smem_addr base = smem_base();
    const smem_addr bar = base + 1024;
    uint32_t round, sum = 0;
    if (thread_index() == 0) {
        mbarrier_init(bar, 1);
    }
    block_sync();
    for (round = 0; round < 2; round++) {
        if (thread_index() == 0) {
            mbarrier_arrive_expect_tx(bar, 256);
            bulk_load(base, p->in + round * 256, 256, bar);
        }
        mbarrier_wait(bar, round);
        sum += smem_load_u32(base + thread_index() * 4u);
        block_sync();
    }
    global_store_u32(p->out + thread_index(), sum);
}

static void test_relaxed(void **state)
{
    (void)state;
    static _Alignas(16) uint8_t in[512];
    emu_memory *memory = emu_memory_create();
    emu_report *report = emu_report_create();
    const relaxed_params params = {(uint32_t *)(void *)out, in};
    const emu_launch launch = {"relaxed", relaxed_kernel, &params, sizeof params, 1, 1,
                               64,        4096,           0};
    assert_true(emu_memory_add(memory, out, sizeof out, "out", EMU_READ_WRITE));
    assert_true(emu_memory_add(memory, in, sizeof in, "in", EMU_READ_ONLY));
    emu_config config = emu_config_default();
    assert_int_equal(emu_run(&config, memory, &launch, 1, report), EMU_OK);
    assert_int_equal(emu_report_count(report), 1);
    assert_string_equal(emu_report_finding(report, 0)->hazard, "e");
    emu_report_clear(report);
    config.relaxed = true;
    assert_int_equal(emu_run(&config, memory, &launch, 1, report), EMU_OK);
    assert_int_equal(emu_report_count(report), 0);
    emu_report_destroy(report);
    emu_memory_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_touches),
                                       cmocka_unit_test(test_relaxed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
