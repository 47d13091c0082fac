/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mbarrier machine through kernels: phases go round, numbers of a deadlock are told, what a
 * barrier publishes is known after it and nothing else.
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

enum { THREADS = 128, ROUNDS = 9 };

typedef struct barrier_params {
    uint32_t *out; /* THREADS */
    uint32_t arrivals, bytes;
    uint32_t publish; /* 0: the words of the ring are read without the barrier */
} barrier_params;

/* Each round every thread writes its word, arrives and waits, then reads its neighbour's; rounds
 * take turns between two sets of words, so that one barrier a round is enough. */
KERNEL(ring_kernel, barrier_params, p, THREADS)
{
    const smem_addr base = smem_base();
    const smem_addr bar = base + 2 * THREADS * 4;
    const uint32_t t = thread_index();
    uint32_t round, sum = 0;
    if (t == 0) {
        mbarrier_init(bar, THREADS);
    }
    block_sync();
    for (round = 0; round < ROUNDS; round++) {
        const smem_addr words = base + round % 2 * (THREADS * 4);
        smem_store_u32(words + t * 4u, t * 100 + round);
        mbarrier_arrive(bar);
        if (p->publish || t % 2 == 0) {
            mbarrier_wait(bar, round & 1u);
        }
        sum += smem_load_u32(words + (t + 1) % THREADS * 4u);
    }
    global_store_u32(p->out + t, sum);
}

/* Waits for what never comes in full. */
KERNEL(hanging_kernel, barrier_params, p, THREADS)
{
    const smem_addr bar = smem_base();
    if (thread_index() == 0) {
        mbarrier_init(bar, p->arrivals);
    }
    block_sync();
    if (thread_index() == 1) {
        mbarrier_arrive_expect_tx(bar, p->bytes);
    }
    if (thread_index() >= 64) {
        mbarrier_wait(bar, 0);
    }
}

/* A thread that polls and may give up. */
KERNEL(polling_kernel, barrier_params, p, THREADS)
{
    const smem_addr bar = smem_base();
    uint32_t polls = 0;
    if (thread_index() == 0) {
        mbarrier_init(bar, 1);
    }
    block_sync();
    if (thread_index() == 0) {
        while (!mbarrier_try_wait(bar, 0)) {
            polls++;
        }
        global_store_u32(p->out, 1000 + (polls < 100000));
    } else if (thread_index() == THREADS - 1) {
        mbarrier_arrive(bar);
    }
}

/* Copies that arrive, all of a round in flight at once, for so many rounds that the emulator must
 * use again what it gave to earlier ones. */
enum { COPY_ROUNDS = 60 };
KERNEL(arriving_copies_kernel, barrier_params, p, THREADS)
{
    const smem_addr base = smem_base();
    const smem_addr bar = base + THREADS * 4;
    const uint32_t t = thread_index();
    uint32_t round, sum = 0;
    if (t == 0) {
        mbarrier_init(bar, THREADS);
    }
    block_sync();
    for (round = 0; round < COPY_ROUNDS; round++) {
        cp_async_4(base + t * 4u, p->out + t);
        cp_async_mbarrier_arrive_noinc(bar);
        mbarrier_wait(bar, round & 1u);
        sum += smem_load_u32(base + (t + 1) % THREADS * 4u);
        block_sync();
    }
    global_store_u32(p->out + t, sum);
}

typedef struct fixture {
    _Alignas(64) uint32_t out[THREADS];
    emu_memory *memory;
    emu_report *report;
} fixture;

static int setup(void **state)
{
    static fixture f;
    f.memory = emu_memory_create();
    f.report = emu_report_create();
    *state = &f;
    return !emu_memory_add(f.memory, f.out, sizeof f.out, "out", EMU_READ_WRITE);
}

static int teardown(void **state)
{
    fixture *f = *state;
    emu_memory_destroy(f->memory);
    emu_report_destroy(f->report);
    return 0;
}

static emu_status run(fixture *f, void (*kernel)(const void *), const barrier_params *params,
                      const emu_config *config)
{
    const emu_launch launch = {"barrier", kernel, params, sizeof *params, 1, 1, THREADS, 4096, 0};
    memset(f->out, 0, sizeof f->out);
    emu_report_clear(f->report);
    return emu_run(config, f->memory, &launch, 1, f->report);
}

static void test_rounds(void **state)
{
    fixture *f = *state;
    const barrier_params params = {f->out, 0, 0, 1};
    int compared = 0;
    for (int index = 0; index < ALL_SCHEDULES; index++) {
        const emu_config config = schedule_numbered(index, 5, NULL, 0);
        assert_int_equal(run(f, ring_kernel, &params, &config), EMU_OK);
        assert_int_equal(emu_report_count(f->report), 0);
        for (uint32_t t = 0; t < THREADS; t++) {
            const uint32_t neighbour = (t + 1) % THREADS;
            assert_int_equal(f->out[t], neighbour * 100 * ROUNDS + ROUNDS * (ROUNDS - 1) / 2);
            compared++;
        }
    }
    assert_int_equal(compared, ALL_SCHEDULES * THREADS);
}

static void test_unordered(void **state)
{
    fixture *f = *state;
    const barrier_params params = {f->out, 0, 0, 0};
    for (int index = 0; index < ALL_SCHEDULES; index++) {
        const emu_config config = schedule_numbered(index, 5, NULL, 0);
        bool race = false;
        run(f, ring_kernel, &params, &config);
        for (size_t i = 0; i < emu_report_count(f->report); i++) {
            race |= strcmp(emu_report_finding(f->report, i)->hazard, "race") == 0;
        }
        assert_true(race);
    }
}

static void test_deadlock_numbers(void **state)
{
    fixture *f = *state;
    const barrier_params params = {f->out, 3, 4096, 0};
    const emu_config config = emu_config_default();
    assert_int_equal(run(f, hanging_kernel, &params, &config), EMU_STOPPED);
    assert_int_equal(emu_report_count(f->report), 1);
    const emu_finding *finding = emu_report_finding(f->report, 0);
    assert_string_equal(finding->hazard, "d");
    assert_string_equal(finding->place.instruction, "mbarrier_wait");
    assert_string_equal(finding->other.instruction, "mbarrier_init");
    assert_non_null(strstr(finding->message, "threads 64-127 wait for parity 0"));
    assert_non_null(strstr(finding->message, "phase 0: 2 of 3 arrivals missing"));
    assert_non_null(strstr(finding->message, "transaction count 4096"));
}

static void test_polling(void **state)
{
    fixture *f = *state;
    const barrier_params params = {f->out, 0, 0, 0};
    for (int index = 0; index < ALL_SCHEDULES; index++) {
        const emu_config config = schedule_numbered(index, 5, NULL, 0);
        assert_int_equal(run(f, polling_kernel, &params, &config), EMU_OK);
        assert_int_equal(emu_report_count(f->report), 0);
        assert_int_equal(f->out[0], 1001);
    }
}

static void test_arriving_copies(void **state)
{
    fixture *f = *state;
    const barrier_params params = {f->out, 0, 0, 0};
    const emu_launch launch = {
        "barrier", arriving_copies_kernel, &params, sizeof params, 1, 1, THREADS, 4096, 0};
    for (int index = 0; index < ALL_SCHEDULES; index++) {
        const emu_config config = schedule_numbered(index, 7, NULL, 0);
        for (uint32_t i = 0; i < THREADS; i++) {
            f->out[i] = i;
        }
        assert_int_equal(emu_run(&config, f->memory, &launch, 1, f->report), EMU_OK);
        assert_int_equal(emu_report_count(f->report), 0);
        for (uint32_t i = 0; i < THREADS; i++) {
            assert_int_equal(f->out[i], (i + 1) % THREADS * COPY_ROUNDS);
        }
    }
}

static void test_arguments(void **state)
{
    fixture *f = *state;
    const barrier_params params = {f->out, 0, 0, 0};
    const emu_config config = emu_config_default();
    const emu_launch good = {"barrier", polling_kernel, &params, sizeof params, 1, 1,
                             THREADS,   4096,           0};
    emu_launch bad[7];
    for (int i = 0; i < 7; i++) {
        bad[i] = good;
    }
    bad[0].kernel = NULL;
    bad[1].blocks = 0;
    bad[2].cluster = 0;
    bad[3].cluster = 2; /* does not divide 1 */
    bad[4].threads = 100;
    bad[5].threads = 2048;
    bad[6].smem_bytes = 300000;
    for (int i = 0; i < 7; i++) {
        assert_int_equal(emu_run(&config, f->memory, &bad[i], 1, f->report), EMU_BAD_ARGUMENT);
    }
    assert_int_equal(emu_run(&config, f->memory, &good, 0, f->report), EMU_BAD_ARGUMENT);
    assert_int_equal(emu_run(&config, f->memory, &good, 3, f->report), EMU_BAD_ARGUMENT);
    assert_int_equal(emu_run(&config, f->memory, &good, 1, f->report), EMU_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unordered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deadlock_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_polling, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arriving_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
