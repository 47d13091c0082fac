/* SPDX-License-Identifier: Apache-2.0 */
#include "tune_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "io/atomic_file.h"

static const char first_line[] = "halfbyte-tune 1\n";

/* An own choice stays in front unless another kernel takes this share less. */
static const double worth = 0.01;

/* ---- results --------------------------------------------------------------------------------- */

/* Where the kernel stands among the names; NULL: nowhere. */
static const char *launched_at(const char *names, const char *kernel)
{
    size_t length = strlen(kernel);
    while (*names != '\0') {
        size_t bytes = strcspn(names, "+");
        if (bytes == length && memcmp(names, kernel, length) == 0)
            return names;
        names += bytes + (names[bytes] == '+');
    }
    return NULL;
}

bool tune_launches(const char *names, const char *kernel)
{
    return launched_at(names, kernel) != NULL;
}

/* The candidate that is launched first: of two that share the groups the one for the mean.  -1:
 * none is launched. */
static int first_launched(const tune_result *result, const char *names)
{
    const char *earliest = NULL;
    int first = -1;
    for (int i = 0; i < result->count; ++i) {
        const char *at = launched_at(names, result->kernel[i].name);
        if (at != NULL && (earliest == NULL || at < earliest)) {
            earliest = at;
            first = i;
        }
    }
    return first;
}

/* Moves a candidate to an earlier place; those between move back by one. */
static void move_up(tune_candidate *kernels, int from, int to)
{
    tune_candidate moved = kernels[from];
    memmove(&kernels[to + 1], &kernels[to], (size_t)(from - to) * sizeof *kernels);
    kernels[to] = moved;
}

void tune_rank(tune_result *result, const char *own)
{
    tune_candidate *kernels = result->kernel;
    int count = 0;
    for (int i = 0; i < result->count; ++i) {
        int place = count;
        if (kernels[i].us <= 0)
            continue;
        kernels[count] = kernels[i];
        while (place > 0 && kernels[place - 1].us > kernels[count].us)
            --place;
        move_up(kernels, count++, place);
    }
    result->count = count;
    result->chosen = first_launched(result, own);
    int chosen = result->chosen;
    if (chosen > 0 && kernels[chosen].us * (1 - worth) <= kernels[0].us) {
        move_up(kernels, chosen, 0);
        result->chosen = 0;
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct buffer {
    char *text;
    size_t used, room;
} buffer;

static int add(buffer *to, const char *text, size_t bytes)
{
    if (to->room - to->used < bytes) {
        size_t room = 2 * (to->used + bytes) + 1024;
        char *larger = realloc(to->text, room);
        if (larger == NULL)
            return cli_fail_memory(room);
        to->text = larger;
        to->room = room;
    }
    memcpy(to->text + to->used, text, bytes);
    to->used += bytes;
    return CLI_OK;
}

static int add_file(buffer *to, const char *path)
{
    char chunk[4096];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return errno == ENOENT
                   ? CLI_OK
                   : cli_fail(CLI_ENVIRONMENT, "cannot read %s", io_quote_path(path).text);
    int code = CLI_OK;
    size_t bytes = 0;
    while (code == CLI_OK && (bytes = fread(chunk, 1, sizeof chunk, file)) > 0)
        code = add(to, chunk, bytes);
    if (code == CLI_OK && ferror(file) != 0)
        code = cli_fail(CLI_ENVIRONMENT, "cannot read %s", io_quote_path(path).text);
    fclose(file);
    if (code == CLI_OK && to->used > 0 && to->text[to->used - 1] != '\n')
        code = add(to, "\n", 1);
    return code;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Of the shapes, without their rows. */
static int compare_keys(const bench_shape *a, const bench_shape *b)
{
    int order = compare((int64_t)a->problem.family, (int64_t)b->problem.family);
    order =
        order != 0 ? order : compare((int64_t)a->problem.grouping, (int64_t)b->problem.grouping);
    order = order != 0 ? order : compare(a->groups, b->groups);
    order = order != 0 ? order : compare(a->problem.n, b->problem.n);
    return order != 0 ? order : compare(a->problem.k, b->problem.k);
}

static int by_entry(const void *one, const void *other)
{
    const bench_shape *a = ((const tune_result *)one)->shape;
    const bench_shape *b = ((const tune_result *)other)->shape;
    int order = compare_keys(a, b);
    return order != 0 ? order : compare(a->m, b->m);
}

void tune_results_sort(tune_result *results, size_t count)
{
    if (count > 1)
        qsort(results, count, sizeof *results, by_entry);
}

static int add_entry(buffer *to, const tune_result *result, int64_t first)
{
    static const char *const groupings[] = {[HALFBYTE_GROUPING_DENSE] = "dense",
                                            [HALFBYTE_GROUPING_RANGES] = "ranges",
                                            [HALFBYTE_GROUPING_MASKED] = "masked",
                                            [HALFBYTE_GROUPING_LABELS] = "labels"};
    const bench_shape *shape = result->shape;
    char line[512], groups[40] = "", next[TUNE_NAME_BYTES + 40] = "";
    if (shape->problem.grouping != HALFBYTE_GROUPING_DENSE)
        snprintf(groups, sizeof groups, " groups=%lld", (long long)shape->groups);
    if (result->count > 1)
        snprintf(next, sizeof next, ", then %.1f us %s", result->kernel[1].us,
                 result->kernel[1].name);
    int bytes = snprintf(
        line, sizeof line,
        "family=%s grouping=%s%s n=%lld k=%lld rows=%lld..%lld sms=%d kernel=%s # %.1f us%s\n",
        shape->problem.family == HALFBYTE_FAMILY_FP8 ? "fp8" : "w4a8",
        groupings[shape->problem.grouping], groups, (long long)shape->problem.n,
        (long long)shape->problem.k, (long long)first, (long long)shape->m, result->sms,
        result->kernel[0].name, result->kernel[0].us, next);
    return add(to, line, (size_t)bytes);
}

/* The first of the rows for which a result counts: behind those of the shape's next smaller one. */
static int64_t first_row(const tune_result *results, size_t at)
{
    const bench_shape *shape = results[at].shape;
    while (at > 0 && compare_keys(results[at - 1].shape, shape) == 0) {
        --at;
        if (results[at].shape->m < shape->m)
            return results[at].shape->m + 1;
    }
    return 1;
}

static int add_entries(buffer *to, const tune_result *results, size_t count)
{
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < count; ++i)
        code = add_entry(to, &results[i], first_row(results, i));
    return code;
}

int tune_file_write(const char *path, bool append, const char *remark, const tune_result *results,
                    size_t count)
{
    buffer text = {NULL, 0, 0};
    atomic_file *file = NULL;
    io_error error;
    int code = append ? add_file(&text, path) : CLI_OK;
    if (code == CLI_OK && text.used == 0)
        code = add(&text, first_line, sizeof first_line - 1);
    if (code == CLI_OK)
        code = add(&text, remark, strlen(remark));
    if (code == CLI_OK)
        code = add_entries(&text, results, count);
    if (code == CLI_OK && atomic_file_create(&file, path, &error) != IO_OK)
        code = cli_fail_io(&error);
    if (code == CLI_OK && atomic_file_write(file, 0, text.text, text.used, &error) != IO_OK) {
        atomic_file_abort(file);
        code = cli_fail_io(&error);
    } else if (code == CLI_OK && atomic_file_commit(file, &error) != IO_OK) {
        code = cli_fail_io(&error);
    }
    free(text.text);
    return code;
}
