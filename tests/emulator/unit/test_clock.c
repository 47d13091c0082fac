/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector clocks against plain loops, and configurations as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emulator/clock.h"
#include "emulator/emulator.h"
#include "emulator/unit/draw.h"

enum { VECTORS = 8, AGENTS = 101 };

static void test_join(void **state)
{
    (void)state;
    clock_table table;
    uint32_t *vectors[VECTORS], expected[VECTORS][AGENTS];
    uint64_t random = 1;
    assert_true(clock_table_create(&table, VECTORS, AGENTS));
    for (uint32_t v = 0; v < VECTORS; v++) {
        vectors[v] = clock_new(&table);
        assert_non_null(vectors[v]);
    }
    assert_null(clock_new(&table));
    for (uint32_t agent = 0; agent < AGENTS; agent++) {
        assert_int_equal(clock_new_agent(&table), agent);
        for (uint32_t v = 0; v < VECTORS; v++) {
            assert_int_equal(vectors[v][agent], 0);
            expected[v][agent] = vectors[v][agent] = draw_below(&random, 1u << 31);
        }
    }
    for (int round = 0; round < 100; round++) {
        const uint32_t to = draw_below(&random, VECTORS), from = draw_below(&random, VECTORS);
        const uint32_t changed = draw_below(&random, AGENTS);
        clock_join(&table, vectors[to], vectors[from]);
        for (uint32_t agent = 0; agent < AGENTS; agent++) {
            if (expected[from][agent] > expected[to][agent]) {
                expected[to][agent] = expected[from][agent];
            }
        }
        expected[to][changed] = vectors[to][changed] = draw_below(&random, 1u << 31);
        for (uint32_t v = 0; v < VECTORS; v++) {
            assert_memory_equal(vectors[v], expected[v], sizeof expected[v]);
        }
    }
    clock_table_reset(&table);
    for (uint32_t v = 0; v < VECTORS; v++) {
        const uint32_t *fresh = clock_new(&table);
        for (uint32_t agent = 0; agent < AGENTS; agent++) {
            assert_int_equal(fresh[agent], 0);
        }
    }
    clock_table_destroy(&table);
}

static void test_config_text(void **state)
{
    (void)state;
    char text[EMU_CONFIG_TEXT_BYTES], again[EMU_CONFIG_TEXT_BYTES];
    int compared = 0;
    for (int policy = 0; policy < EMU_POLICY_COUNT; policy++) {
        for (int order = 0; order < EMU_ORDER_COUNT; order++) {
            emu_config config = emu_config_default(), read;
            config.policy = (emu_policy)policy;
            config.order = (emu_order)order;
            config.seed = (uint64_t)policy << 60 | (uint64_t)order;
            config.poison = (uint8_t)(order * 85);
            config.starved_warp = order * 3;
            config.relaxed = policy % 2 == 1;
            config.no_guards = policy == 3;
            if (policy == EMU_DELAY_SITE) {
                config.delay_file = "dir:x/file.h";
                config.delay_line = 17;
            }
            if (order == 2) {
                config.mutate_file = "other.h";
                config.mutate_line = 4;
                config.mutate_instruction = "wgmma_wait";
                config.mutation = EMU_MUTATE_WEAKEN;
            }
            emu_config_format(&config, text, sizeof text);
            assert_true(emu_config_parse(&read, text));
            emu_config_format(&read, again, sizeof again);
            assert_string_equal(text, again);
            assert_int_equal(read.seed, config.seed);
            assert_int_equal(read.poison, config.poison);
            assert_int_equal(read.policy, config.policy);
            assert_int_equal(read.order, config.order);
            assert_int_equal(read.mutation, config.mutation);
            compared++;
        }
    }
    assert_int_equal(compared, EMU_POLICY_COUNT * EMU_ORDER_COUNT);
}

static void test_config_refusals(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "policy=soon",    "order=",
        "seed=x",         "seed=",
        "seed=-1",        "poison=100",
        "warp=32",        "delay=a.h",
        "mutate=a.h:1:b", "mutate=a.h:1:b:soften",
        "polic=earliest", "relaxed=1",
        "quick",          "seed=99999999999999999999999999999999x",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        emu_config config = emu_config_default();
        config.seed = 123;
        assert_false(emu_config_parse(&config, wrong[i]));
        assert_int_equal(config.seed, 123);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_join),
                                       cmocka_unit_test(test_config_text),
                                       cmocka_unit_test(test_config_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
