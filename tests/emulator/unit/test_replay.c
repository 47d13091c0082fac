/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run is determined by its configuration: findings, their counts and texts, and all bits of the
 * output come again, also from the text that a report prints for --replay.
 */
#define _GNU_SOURCE /* open_memstream */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulator/unit/fp8_case.h"

typedef struct outcome {
    char *text;
    uint16_t *d;
    size_t findings;
} outcome;

static outcome run(fp8_case *c, const emu_config *config)
{
    outcome result = {NULL, NULL, 0};
    size_t bytes;
    emu_report *report = emu_report_create();
    const emu_status status = fp8_case_run(c, &fp8_kernel_3, config, report);
    assert_true(status == EMU_OK || status == EMU_STOPPED);
    FILE *stream = open_memstream(&result.text, &bytes);
    assert_non_null(stream);
    emu_report_print(report, config, stream);
    fclose(stream);
    result.findings = emu_report_count(report);
    result.d = malloc(c->d_count * sizeof *result.d);
    assert_non_null(result.d);
    memcpy(result.d, c->d, c->d_count * sizeof *result.d);
    emu_report_destroy(report);
    return result;
}

static void release(outcome *result)
{
    free(result->text);
    free(result->d);
}

/* The sites of the kernel that a mutant can change. */
static size_t mutants(emu_config *configs, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < emu_site_count(); i++) {
        const emu_site *site = emu_site_at(i);
        const uint32_t kinds = emu_mutation_kinds(site);
        for (int kind = 1; kind < EMU_MUTATION_COUNT && count < most; kind++) {
            if (kinds >> kind & 1) {
                configs[count] = emu_config_default();
                configs[count].policy = EMU_RANDOM;
                configs[count].order = EMU_SHUFFLED;
                configs[count].mutate_file = site->file;
                configs[count].mutate_line = site->line;
                configs[count].mutate_instruction = site->instruction;
                configs[count].mutation = (emu_mutation)kind;
                configs[count].seed = 17 + count;
                count++;
            }
        }
    }
    return count;
}

static void test_replay(void **state)
{
    (void)state;
    const fp8_case_shape shape = {30, 20, 640, 1, false};
    emu_config configs[64];
    char text[EMU_CONFIG_TEXT_BYTES];
    size_t reported = 0;
    fp8_case c;
    fp8_case_make(&c, &shape, 9);
    emu_config plain = emu_config_default();
    outcome clean = run(&c, &plain); /* meets the sites */
    assert_int_equal(clean.findings, 0);
    assert_string_equal(clean.text, "");
    release(&clean);
    const size_t count = mutants(configs, 64);
    assert_true(count > 15);
    for (size_t i = 0; i < count; i++) {
        emu_config again;
        emu_config_format(&configs[i], text, sizeof text);
        assert_true(emu_config_parse(&again, text));
        outcome first = run(&c, &configs[i]);
        outcome second = run(&c, &again);
        assert_string_equal(first.text, second.text);
        assert_memory_equal(first.d, second.d, c.d_count * sizeof *c.d);
        if (first.findings > 0) {
            assert_non_null(strstr(first.text, text));
            reported++;
        } else {
            print_message("no finding: %s\n", text);
        }
        release(&first);
        release(&second);
    }
    print_message("%zu of %zu mutants reported by one schedule\n", reported, count);
    assert_true(reported > count / 2);
    fp8_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
