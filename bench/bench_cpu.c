/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of the CPU model on one core, in multiply-accumulates a second.
 *
 *     bench_cpu [--seconds S] [--json FILE]
 *
 * A row is a piece of work that is repeated for S seconds (0.5 by default) of this thread's CPU
 * time, in ten parts of which the fastest and the median count.  With --json each row is also
 * appended to FILE as one JSON object on a line of its own.
 *
 * To add rows: write a function of the type work_function, and call measure() from a function
 * that main() calls.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/chain.h"
#include "model/fp_env.h"

enum { PARTS = 10 };

struct report {
    double seconds;
    FILE *json; /* NULL: no file */
};

/* Does the work once. */
typedef void work_function(void *context);

struct row {
    const char *family;  /* what is measured: "chain", ... */
    const char *variant; /* code path: "avx2", ... */
    const char *work;    /* which part of it, in a word or two */
    double macs;         /* multiply-accumulates of one call, padding not counted */
};

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int double_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of `calls` calls. */
static double time_calls(work_function *work, void *context, long calls)
{
    const double start = cpu_seconds();
    for (long i = 0; i < calls; i++)
        work(context);
    return cpu_seconds() - start;
}

static void measure(const struct report *report, const struct row *row, work_function *work,
                    void *context)
{
    double seconds[PARTS];
    long calls = 1;

    while (time_calls(work, context, calls) < report->seconds / (2 * PARTS))
        calls *= 2; /* also the warm-up */
    for (int part = 0; part < PARTS; part++)
        seconds[part] = time_calls(work, context, calls) / (double)calls;
    qsort(seconds, PARTS, sizeof seconds[0], double_compare);

    const double best = seconds[0], median = seconds[PARTS / 2];
    printf("%-10s %-10s %-24s %12.3f %12.3f %12.3f\n", row->family, row->variant, row->work,
           1e6 * median, 1e-9 * row->macs / median, 1e-9 * row->macs / best);
    if (report->json) {
        fprintf(report->json,
                "{\"bench\":\"cpu\",\"family\":\"%s\",\"variant\":\"%s\",\"work\":\"%s\","
                "\"macs\":%.0f,\"time_us\":%.4f,\"best_us\":%.4f,"
                "\"macs_per_second_per_core\":%.4g}\n",
                row->family, row->variant, row->work, row->macs, 1e6 * median, 1e6 * best,
                row->macs / median);
    }
}

/* One step of a GEMM's inner loop: 64 rows of A times 32 columns of B over 128 k. */
enum { CHAIN_ROWS = 64 };

struct chain_work {
    const chain_ops *ops;
    uint8_t a[CHAIN_ROWS][CHAIN_MAX_K];
    uint8_t b[CHAIN_COLUMNS][CHAIN_MAX_K];
    chain_row rows[CHAIN_ROWS];
    chain_panel panel;
    float partial[CHAIN_ROWS][CHAIN_COLUMNS];
};

static void chain_decode_rows(void *context)
{
    struct chain_work *work = context;
    for (int i = 0; i < CHAIN_ROWS; i++)
        work->ops->decode_row(work->a[i], CHAIN_MAX_K, &work->rows[i]);
}

static void chain_decode_panel(void *context)
{
    struct chain_work *work = context;
    work->ops->decode_panel(work->b[0], CHAIN_MAX_K, CHAIN_COLUMNS, CHAIN_MAX_K, &work->panel);
}

static void chain_run(void *context)
{
    struct chain_work *work = context;
    memset(work->partial, 0, sizeof work->partial);
    for (int i = 0; i < CHAIN_ROWS; i++)
        work->ops->run(&work->rows[i], &work->panel, 0, CHAIN_MAX_BLOCKS, work->partial[i]);
}

static void chain_decode_and_run(void *context)
{
    chain_decode_rows(context);
    chain_decode_panel(context);
    chain_run(context);
}

/* Finite codes of all exponents; the speed does not depend on the values. */
static void codes_fill(uint8_t *codes, size_t count, uint32_t *state)
{
    for (size_t i = 0; i < count; i++) {
        *state = *state * 1664525u + 1013904223u;
        const uint8_t code = (uint8_t)(*state >> 24);
        codes[i] = (code & 0x7f) == 0x7f ? code ^ 1 : code;
    }
}

static void measure_chains(const struct report *report)
{
    static const chain_isa variants[] = {CHAIN_ISA_PORTABLE, CHAIN_ISA_AVX2, CHAIN_ISA_AVX512};
    static struct chain_work work;
    const double macs = (double)CHAIN_ROWS * CHAIN_COLUMNS * CHAIN_MAX_K;
    uint32_t state = 1;

    codes_fill(work.a[0], sizeof work.a, &state);
    codes_fill(work.b[0], sizeof work.b, &state);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        work.ops = chain_ops_get(variants[i]);
        if (!work.ops)
            continue;
        const char *name = work.ops->name;
        measure(report, &(struct row){"chain", name, "decode and run", macs}, chain_decode_and_run,
                &work);
        measure(report, &(struct row){"chain", name, "run alone", macs}, chain_run, &work);
        measure(report, &(struct row){"chain", name, "decode 64 rows alone", macs},
                chain_decode_rows, &work);
        measure(report, &(struct row){"chain", name, "decode panel alone", macs},
                chain_decode_panel, &work);
    }
}

static int usage(void)
{
    fputs("usage: bench_cpu [--seconds S] [--json FILE]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct report report = {.seconds = 0.5};
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) {
            report.seconds = strtod(argv[++i], NULL);
            if (!(report.seconds > 0))
                return usage();
        } else if (i + 1 < argc && strcmp(argv[i], "--json") == 0 && !report.json) {
            report.json = fopen(argv[++i], "a");
            if (!report.json) {
                perror(argv[i]);
                return 1;
            }
        } else {
            return usage();
        }
    }

    fp_env_set();
    printf("%-10s %-10s %-24s %12s %12s %12s\n", "family", "variant", "work", "median us",
           "G mac/s", "best G mac/s");
    measure_chains(&report);

    if (report.json && fclose(report.json) != 0) {
        perror("bench_cpu: writing JSON");
        return 1;
    }
    return 0;
}
