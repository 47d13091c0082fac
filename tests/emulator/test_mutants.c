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

#include "emulator/harness/isolate.h"
#include "emulator/harness/mutants.h"

/* So that a kernel whose sites were not met does not pass: no GEMM has fewer, no other kernel. */
enum { FEWEST_OF_GEMM = 15, FEWEST_OF_OTHERS = 1 };

typedef struct score {
    size_t total, reported, equivalent, faults;
    size_t grid_waits; /* reported mutants without the wait for the grid before */
} score;

static void print_mutant(const char *what, const mutant *one)
{
    print_message("%s: %s:%d %s (number %u) %s\n", what, one->site->file, one->site->line,
                  one->site->instruction, one->nth, emu_mutation_name(one->kind));
}

enum { MOST_ENTRIES = 256 };

/* What the children, one a kernel, have found. */
typedef struct findings {
    score sum;
    bool used[MOST_ENTRIES]; /* entries of equivalents */
} findings;

static void try_mutant(const harness_kernel *kernel, mutant_set *set, const mutant *one,
                       emu_report *report, findings *found)
{
    size_t count;
    const equivalent_mutant *all = equivalents_all(&count);
    const equivalent_mutant *entry = equivalents_find(kernel, one);
    const mutant_result result = mutant_try(set, one, report);
    score *sum = &found->sum;
    sum->total++;
    sum->reported += result.reported;
    sum->grid_waits +=
        result.reported && strcmp(one->site->instruction, "grid_dependency_wait") == 0;
    if (entry != NULL) {
        found->used[entry - all] = true;
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

typedef struct kernel_work {
    const harness_kernel *kernel;
    findings *found;
} kernel_work;

/* 0 if all mutants of the kernel were tried. */
static int try_kernel(void *argument)
{
    const kernel_work *work = argument;
    const size_t fewest = work->kernel->is_gemm ? FEWEST_OF_GEMM : FEWEST_OF_OTHERS;
    mutant_set *set = mutant_set_create(work->kernel);
    emu_report *report = emu_report_create();
    if (set == NULL || report == NULL || mutant_count(set) < fewest) {
        print_message("%s: not clean unchanged, or too few sites\n", work->kernel->name);
        return 1;
    }
    const size_t waits_before = work->found->sum.grid_waits;
    for (size_t i = 0; i < mutant_count(set); i++) {
        const mutant one = mutant_at(set, i);
        try_mutant(work->kernel, set, &one, report, work->found);
    }
    /* Every kernel may be started while the grid before it still writes what it reads. */
    if (work->found->sum.grid_waits == waits_before) {
        print_message("%s: none without its wait for the grid before is reported\n",
                      work->kernel->name);
        work->found->sum.faults++;
    }
    emu_report_destroy(report);
    mutant_set_destroy(set);
    return 0;
}

static void check_entries(findings *found)
{
    size_t count;
    const equivalent_mutant *all = equivalents_all(&count);
    assert_in_range(count, 0, MOST_ENTRIES);
    for (size_t i = 0; i < count; i++) {
        if (!found->used[i]) {
            print_message("equivalents: no mutant %s %s number %u %s\n", all[i].file,
                          all[i].instruction, all[i].nth, emu_mutation_name(all[i].kind));
            found->sum.faults++;
        }
        assert_true(strlen(all[i].section) > 0);
        assert_true(strlen(all[i].reason) > 20);
    }
}

static void test_every_mutant(void **state)
{
    (void)state;
    size_t kernel_count;
    const harness_kernel *kernels = harness_all(&kernel_count);
    findings *found = isolate_memory(sizeof *found);
    assert_non_null(found);
    for (size_t i = 0; i < kernel_count; i++) {
        kernel_work work = {&kernels[i], found};
        assert_int_equal(isolate_run(try_kernel, &work), 0);
    }
    check_entries(found);
    print_message("%zu/%zu mutants reported, %zu equivalent\n", found->sum.reported,
                  found->sum.total, found->sum.equivalent);
    assert_int_equal(found->sum.faults, 0);
    assert_int_equal(found->sum.reported + found->sum.equivalent, found->sum.total);
    isolate_free(found, sizeof *found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_mutant)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
