/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tune.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/error.h"

enum { TUNE_MOST_BYTES = 1 << 24 };

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_shapes(const tune_entry *a, halfbyte_family family, halfbyte_grouping grouping,
                          int64_t n, int64_t k)
{
    int order = compare_numbers((int64_t)a->family, (int64_t)family);
    order = order != 0 ? order : compare_numbers((int64_t)a->grouping, (int64_t)grouping);
    order = order != 0 ? order : compare_numbers(a->n, n);
    return order != 0 ? order : compare_numbers(a->k, k);
}

static int by_shape(const void *one, const void *other)
{
    const tune_entry *a = one, *b = other;
    const int order = compare_shapes(a, b->family, b->grouping, b->n, b->k);
    return order != 0 ? order : (a->position < b->position) - (a->position > b->position);
}

void tune_sort(tune_table *table)
{
    if (table->count > 1) {
        qsort(table->entries, table->count, sizeof *table->entries, by_shape);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static halfbyte_status read_file(FILE *file, const char *path, char **text, size_t *bytes)
{
    size_t room = 1 << 12;
    *bytes = 0;
    *text = malloc(room);
    while (*text != NULL) {
        *bytes += fread(*text + *bytes, 1, room - *bytes, file);
        CHECK_ARGUMENT(ferror(file) == 0, "tune file %s: cannot be read", path);
        CHECK_ARGUMENT(*bytes <= TUNE_MOST_BYTES, "tune file %s: more than %d bytes", path,
                       TUNE_MOST_BYTES);
        if (*bytes < room) {
            return HALFBYTE_SUCCESS;
        }
        room *= 2;
        char *larger = realloc(*text, room);
        if (larger == NULL) {
            break;
        }
        *text = larger;
    }
    return status_fail(HALFBYTE_ERR_OUT_OF_MEMORY, "out of memory reading tune file %s", path);
}

halfbyte_status tune_read(const char *path, tune_table **table)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = fopen(path, "rb");
    CHECK_ARGUMENT(file != NULL, "tune file %s: cannot be opened", path);
    halfbyte_status status = read_file(file, path, &text, &bytes);
    fclose(file);
    if (status == HALFBYTE_SUCCESS) {
        status = tune_parse(text, bytes, path, table);
    }
    free(text);
    return status;
}

void tune_free(tune_table *table)
{
    if (table != NULL) {
        free(table->entries);
        free(table);
    }
}

int tune_find(const tune_table *table, uint64_t kernels, const halfbyte_problem *problem,
              int64_t rows, int sms)
{
    size_t low = 0, high = table == NULL ? 0 : table->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_shapes(&table->entries[middle], problem->family, problem->grouping, problem->n,
                           problem->k) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; table != NULL && low < table->count; low++) {
        const tune_entry *entry = &table->entries[low];
        if (compare_shapes(entry, problem->family, problem->grouping, problem->n, problem->k) !=
            0) {
            break;
        }
        if (entry->first_rows <= rows && rows <= entry->last_rows &&
            (entry->groups == 0 || entry->groups == problem->groups) &&
            (entry->sms == 0 || entry->sms == sms) && (kernels >> entry->kernel & 1) != 0) {
            return entry->kernel;
        }
    }
    return -1;
}
