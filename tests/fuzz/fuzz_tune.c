/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tune files: any bytes are read or refused with a sentence that names the line; what is read is in
 * order, and each entry is found again unless a later one hides it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "api/tune.h"
#include "cuda/kernel_table.h"
#include "fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const tune_table *table, const tune_entry *entry)
{
    halfbyte_problem problem = halfbyte_problem_init();
    problem.family = entry->family;
    problem.grouping = entry->grouping;
    problem.n = entry->n;
    problem.k = entry->k;
    problem.groups = entry->groups > 0 ? entry->groups : 1;
    FUZZ_CHECK(entry->kernel >= 0 && entry->kernel < KERNEL_COUNT);
    FUZZ_CHECK(entry->first_rows <= entry->last_rows);
    const int sms = entry->sms > 0 ? (int)entry->sms : 132;
    const uint64_t only = (uint64_t)1 << entry->kernel;
    FUZZ_CHECK(tune_find(table, only, &problem, entry->first_rows, sms) == entry->kernel);
    FUZZ_CHECK(tune_find(table, UINT64_MAX, &problem, entry->last_rows, sms) >= 0);
    FUZZ_CHECK(tune_find(table, 0, &problem, entry->last_rows, sms) == -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tune_table *table = NULL;
    /* A copy of just that size, so that a byte read too many is seen. */
    char *text = malloc(size > 0 ? size : 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    const halfbyte_status status = tune_parse(text, size, "f", &table);
    if (status == HALFBYTE_SUCCESS) {
        for (size_t i = 0; i < table->count && i < 1000; i++)
            check_entry(table, &table->entries[i]);
        tune_free(table);
    } else {
        FUZZ_CHECK(status == HALFBYTE_ERR_INVALID_ARGUMENT);
        FUZZ_CHECK(strncmp(halfbyte_last_error(), "tune file f", 11) == 0);
        for (const char *at = halfbyte_last_error(); *at != '\0'; at++)
            FUZZ_CHECK(*at >= ' ' && *at <= '~');
    }
    free(text);
    return 0;
}
