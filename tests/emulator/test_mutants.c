/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutation score of every built kernel: each mutant is reported, or stands in `equivalents`
 * with its reason; entries there are no longer needed if their mutant is reported or gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulator/harness/mutants.h"

/* So that a kernel whose sites were not met does not pass: no kernel has fewer. */
enum { FEWEST_MUTANTS = 25 };

typedef struct score {
    size_t total, reported, equivalent, faults;
} score;

static void print_mutant(const char *what, const mutant *one)
{
    print_message("%s: %s:%d %s (number %u) %s\n", what, one->site->file, one->site->line,
                  one->site->instruction, one->nth, emu_mutation_name(one->kind));
}

static void try_mutant(const harness_kernel *kernel, mutant_set *set, const mutant *one,
                       emu_report *report, bool *used, score *sum)
{
    size_t count;
    const equivalent_mutant *all = equivalents_all(&count);
    const equivalent_mutant *entry = equivalents_find(kernel, one);
    const mutant_result result = mutant_try(set, one, report);
    sum->total++;
    sum->reported += result.reported;
    if (entry != NULL) {
        used[entry - all] = true;
        sum->equivalent += !result.reported;
        if (result.reported) {
            print_mutant("reported, yet in equivalents", one);
            sum->faults++;
        }
    } else if (!result.reported) {
        print_mutant(result.wrong_bits ? "wrong bits, not reported" : "not reported", one);
        sum->faults++;
    }
}

static void test_every_mutant(void **state)
{
    (void)state;
    size_t kernel_count, entries;
    const harness_kernel *const *kernels = harness_all(&kernel_count);
    const equivalent_mutant *all = equivalents_all(&entries);
    bool *used = calloc(entries + 1, sizeof *used);
    emu_report *report = emu_report_create();
    score sum = {0, 0, 0, 0};
    assert_non_null(used);
    assert_non_null(report);
    for (size_t i = 0; i < kernel_count; i++) {
        mutant_set *set = mutant_set_create(kernels[i]);
        assert_non_null(set);
        assert_true(mutant_count(set) >= FEWEST_MUTANTS);
        for (size_t j = 0; j < mutant_count(set); j++) {
            const mutant one = mutant_at(set, j);
            try_mutant(kernels[i], set, &one, report, used, &sum);
        }
        mutant_set_destroy(set);
    }
    for (size_t i = 0; i < entries; i++) {
        if (!used[i]) {
            print_message("equivalents: no mutant %s %s number %u %s\n", all[i].file,
                          all[i].instruction, all[i].nth, emu_mutation_name(all[i].kind));
            sum.faults++;
        }
        assert_true(strlen(all[i].section) > 0);
        assert_true(strlen(all[i].reason) > 20);
    }
    print_message("%zu/%zu mutants reported, %zu equivalent\n", sum.reported, sum.total,
                  sum.equivalent);
    free(used);
    emu_report_destroy(report);
    assert_int_equal(sum.faults, 0);
    assert_int_equal(sum.reported + sum.equivalent, sum.total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_mutant)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
