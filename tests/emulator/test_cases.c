/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator on every case of cases/: what races is reported with its class and lines under every
 * policy and order, its corrected twin is clean and gives the same bits under all of them.
 *
 *     cases [SUBSTRING]     only cases with such names; with -v what each run found
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "emulator/case_run.h"
#include "emulator/expectation.h"
#include "emulator/harness/schedules.h"

/* So that no case is lost in silence. */
enum { NUM_CASES = 73, FIXED_SEEDS = 20, RACING_SEEDS = 3 };

#define CASE(name) extern const race_case racing_##name##_case, fixed_##name##_case;
#include "emulator/cases.def"
#undef CASE

static const struct {
    const char *name;
    const race_case *racing, *fixed;
} cases[] = {
#define CASE(name) {#name, &racing_##name##_case, &fixed_##name##_case},
#include "emulator/cases.def"
#undef CASE
};
enum { LISTED_CASES = sizeof cases / sizeof cases[0] };

static const char *only;
static bool verbose;
static size_t ran;

static bool wanted(const char *name)
{
    return only == NULL || strstr(name, only) != NULL;
}

static const char *schedule_text(const emu_config *config)
{
    static char text[EMU_CONFIG_TEXT_BYTES];
    emu_config_format(config, text, sizeof text);
    return text;
}

/* True if the report has one of the expectations; those it has are added to *shown. */
static bool report_meets(const emu_report *report, const expectations *all, const char *file,
                         uint32_t *shown)
{
    bool met = false;
    for (size_t i = 0; i < emu_report_count(report); i++) {
        for (int j = 0; j < all->count; j++) {
            if (expectation_met(&all->all[j], file, emu_report_finding(report, i))) {
                met = true;
                *shown |= 1u << j;
            }
        }
    }
    return met;
}

typedef struct case_state {
    case_data *data;
    emu_report *report;
    int failures;
} case_state;

static void run_racing(case_state *state, const char *name, const race_case *racing,
                       const expectations *all, const emu_config *config, uint32_t *shown)
{
    uint64_t digest;
    emu_report_clear(state->report);
    const emu_status status = case_run(state->data, racing, config, state->report, &digest);
    const bool met = report_meets(state->report, all, racing->file, shown);
    const bool due = (all->policies >> config->policy & 1u) && (all->orders >> config->order & 1u);
    ran++;
    if ((status == EMU_OK || status == EMU_STOPPED) && (met || !due) && !verbose) {
        return;
    }
    if (status != EMU_OK && status != EMU_STOPPED) {
        state->failures++;
        print_message("%s: status %d, %s\n", name, (int)status, schedule_text(config));
    } else if (!met && due) {
        state->failures++;
        print_message("%s: not reported as expected, %s\n", name, schedule_text(config));
    }
    if (state->failures < 4) {
        emu_report_print(state->report, config, stdout);
    }
}

static void test_racing(void **context)
{
    case_state *state = *context;
    for (size_t i = 0; i < LISTED_CASES; i++) {
        if (!wanted(cases[i].name)) {
            continue;
        }
        const race_case *racing = cases[i].racing;
        const schedule_axes axes = {emu_site_count(), racing->threads / 32};
        expectations all;
        uint32_t shown = 0;
        const int before = state->failures;
        if (!expectations_read(&all, racing->file)) {
            state->failures++;
            continue;
        }
        for (int policy = 0; policy < EMU_POLICY_COUNT; policy++) {
            for (int order = 0; order < EMU_ORDER_COUNT; order++) {
                for (uint64_t seed = 0; seed < RACING_SEEDS && state->failures < before + 3;
                     seed++) {
                    const emu_config config =
                        schedule_make(&axes, (emu_policy)policy, (emu_order)order, seed);
                    run_racing(state, cases[i].name, racing, &all, &config, &shown);
                }
            }
        }
        if (state->failures == before && shown != (1u << all.count) - 1u) {
            print_message("%s: an expectation that no run shows (mask %x)\n", cases[i].name, shown);
            state->failures++;
        }
    }
    assert_int_equal(state->failures, 0);
}

/* Clean, and the bits of the first run. */
static bool run_fixed(case_state *state, const char *name, const race_case *fixed,
                      const emu_config *config, uint64_t untouched, uint64_t *first)
{
    uint64_t digest;
    emu_report_clear(state->report);
    const emu_status status = case_run(state->data, fixed, config, state->report, &digest);
    *first = *first == untouched ? digest : *first;
    ran++;
    if (status == EMU_OK && emu_report_count(state->report) == 0 && digest == *first &&
        digest != untouched) {
        return true;
    }
    print_message("%s, corrected: status %d, %zu findings, digest %016llx, first %016llx, %s\n",
                  name, (int)status, emu_report_count(state->report), (unsigned long long)digest,
                  (unsigned long long)*first, schedule_text(config));
    emu_report_print(state->report, config, stdout);
    return false;
}

static void test_fixed(void **context)
{
    case_state *state = *context;
    const uint64_t untouched = case_data_untouched(state->data);
    for (size_t i = 0; i < LISTED_CASES; i++) {
        if (!wanted(cases[i].name)) {
            continue;
        }
        const race_case *fixed = cases[i].fixed;
        const schedule_axes axes = {emu_site_count(), fixed->threads / 32};
        uint64_t first = untouched;
        bool good = true;
        for (int policy = 0; policy < EMU_POLICY_COUNT; policy++) {
            for (int order = 0; order < EMU_ORDER_COUNT; order++) {
                for (uint64_t seed = 0; seed < FIXED_SEEDS && good; seed++) {
                    const emu_config config =
                        schedule_make(&axes, (emu_policy)policy, (emu_order)order, seed);
                    good = run_fixed(state, cases[i].name, fixed, &config, untouched, &first);
                }
            }
        }
        state->failures += !good;
    }
    assert_int_equal(state->failures, 0);
}

static void test_number_of_cases(void **context)
{
    (void)context;
    assert_int_equal(LISTED_CASES, NUM_CASES);
}

static int setup(void **context)
{
    static case_state state;
    state.data = case_data_create();
    state.report = emu_report_create();
    state.failures = 0;
    *context = &state;
    return state.data == NULL || state.report == NULL;
}

static int teardown(void **context)
{
    case_state *state = *context;
    emu_report_destroy(state->report);
    case_data_destroy(state->data);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_of_cases),
        cmocka_unit_test_setup_teardown(test_racing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fixed, setup, teardown),
    };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0) {
            verbose = true;
        } else {
            only = argv[i];
        }
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%zu runs of %zu cases\n", ran, (size_t)LISTED_CASES);
    return failed;
}
