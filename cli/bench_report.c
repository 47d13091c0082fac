/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `halfbyte bench`: a table for people, JSON Lines and CSV for programs. */
#include <jansson.h>
#include <string.h>

#include "bench_row.h"
#include "common.h"

static const char csv_header[] = "family,layout,groups,m,n,k,time_us,least_us,most_us,graph_us,"
                                 "baseline,baseline_us,read_us_run,mma_tflops_run,tflops,"
                                 "gbytes_per_s,kernel,bits_right,device,driver,cuda,date,commit,"
                                 "load,limit_us\n";

static const char baseline_name[] = "cublasLtMatmul";

/* ---- derived --------------------------------------------------------------------------------- */

static double multiply_adds(const bench_shape *shape)
{
    return (double)shape->groups * (double)shape->m * (double)shape->problem.n *
           (double)shape->problem.k;
}

static double operand_bytes(const bench_row *row)
{
    const bench_shape *shape = row->shape;
    const double weight = shape->problem.family == HALFBYTE_FAMILY_W4A8 ? 0.5 : 1;
    const double n = (double)shape->problem.n, k = (double)shape->problem.k;
    return k * ((double)row->used_groups * n * weight + (double)shape->groups * (double)shape->m);
}

static bool bits_right(const bench_row *row)
{
    return row->different == 0 && row->repeats_equal;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_file(const char *path, FILE **file)
{
    *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "a");
    return *file != NULL
               ? CLI_OK
               : cli_fail(CLI_ENVIRONMENT, "cannot write to %s", io_quote_path(path).text);
}

int bench_report_open(bench_report *report)
{
    int code = CLI_OK;
    report->table = cli.verbosity >= 0;
    if (report->json_path != NULL)
        code = open_file(report->json_path, &report->json);
    if (code == CLI_OK && report->csv_path != NULL)
        code = open_file(report->csv_path, &report->csv);
    if (report->json == stdout || report->csv == stdout)
        report->table = false;
    if (code == CLI_OK && report->csv != NULL && (report->csv == stdout || ftell(report->csv) == 0))
        fputs(csv_header, report->csv);
    return code;
}

static int close_file(FILE *file, const char *path)
{
    if (file == NULL || file == stdout)
        return CLI_OK;
    bool good = ferror(file) == 0;
    good = fclose(file) == 0 && good;
    return good ? CLI_OK
                : cli_fail(CLI_ENVIRONMENT, "cannot write to %s", io_quote_path(path).text);
}

int bench_report_close(bench_report *report)
{
    int json = close_file(report->json, report->json_path);
    int csv = close_file(report->csv, report->csv_path);
    return json != CLI_OK ? json : csv;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A positive number, else null: not measured. */
static json_t *measured(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static int write_json(const bench_report *report, const bench_row *row)
{
    const bench_shape *shape = row->shape;
    const bench_run_facts *facts = &report->facts;
    char problem[PROBLEM_TEXT_BYTES + 1 + BENCH_LOAD_BYTES];
    problem_print(&shape->problem, problem);
    if (shape->load.kind != BENCH_LOAD_NONE) {
        strcat(problem, "@");
        bench_load_text(&shape->load, problem + strlen(problem));
    }
    json_t *line = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:f, s:f, s:f, s:o, s:s?, s:o, s:o, s:o, "
        "s:f, s:f}",
        "family", shape->family, "layout", shape->layout, "groups", (json_int_t)shape->groups, "m",
        (json_int_t)shape->m, "n", (json_int_t)shape->problem.n, "k", (json_int_t)shape->problem.k,
        "problem", problem, "executor", row->on_gpu ? "gpu" : "model", "kernel", row->kernel,
        "time_us", row->event.median_us, "least_us", row->event.least_us, "most_us",
        row->event.most_us, "graph_us", measured(row->graph_us), "baseline",
        row->baseline_us > 0 ? baseline_name : NULL, "baseline_us", measured(row->baseline_us),
        "read_us_run", measured(row->read_us), "mma_tflops_run", measured(row->mma_tflops),
        "tflops", 2e-6 * multiply_adds(shape) / row->event.median_us, "gbytes_per_s",
        1e-3 * operand_bytes(row) / row->event.median_us);
    json_t *more =
        json_pack("{s:I, s:I, s:s, s:s, s:s, s:s, s:s}", "repeats", (json_int_t)facts->repeats,
                  "seed", (json_int_t)facts->seed, "device", facts->device, "driver", facts->driver,
                  "cuda", facts->cuda, "date", facts->date, "commit", facts->commit);
    bool good = line != NULL && more != NULL && json_object_update(line, more) == 0;
    if (good && row->checked)
        good =
            json_object_set_new(line, "compared", json_integer((json_int_t)row->compared)) == 0 &&
            json_object_set_new(line, "different", json_integer((json_int_t)row->different)) == 0 &&
            json_object_set_new(line, "bits_right", json_boolean(bits_right(row))) == 0;
    if (good && shape->goal_us > 0)
        good = json_object_set_new(line, "goal_us", json_real(shape->goal_us)) == 0;
    if (good && shape->problem.family == HALFBYTE_FAMILY_W4A8)
        good = json_object_set_new(line, "minus8", json_boolean(row->minus8)) == 0;
    if (good && row->limit_us > 0) {
        char load[BENCH_LOAD_BYTES];
        good = json_object_set_new(line, "load",
                                   json_string(bench_load_text(&shape->load, load))) == 0 &&
               json_object_set_new(line, "used_groups", json_integer(row->used_groups)) == 0 &&
               json_object_set_new(line, "most_rows", json_integer(row->most_rows)) == 0 &&
               json_object_set_new(line, "limit_us", json_real(row->limit_us)) == 0;
    }
    good = good && json_dumpf(line, report->json, JSON_COMPACT | JSON_REAL_PRECISION(5)) == 0 &&
           fputc('\n', report->json) != EOF && fflush(report->json) == 0;
    json_decref(line);
    json_decref(more);
    return good ? CLI_OK
                : cli_fail(CLI_ENVIRONMENT, "cannot write to %s",
                           io_quote_path(report->json_path).text);
}

/* ---- CSV and table --------------------------------------------------------------------------- */

/* `%.Nf` or the text for what was not measured. */
static const char *number(double value, const char *absent, int digits, char text[24])
{
    if (value > 0)
        snprintf(text, 24, "%.*f", digits, value);
    else
        snprintf(text, 24, "%s", absent);
    return text;
}

static int write_csv(const bench_report *report, const bench_row *row)
{
    const bench_shape *shape = row->shape;
    const bench_run_facts *facts = &report->facts;
    char graph[24], baseline[24], read[24], mma[24], limit[24], load[BENCH_LOAD_BYTES];
    fprintf(report->csv,
            "%s,%s,%lld,%lld,%lld,%lld,%.3f,%.3f,%.3f,%s,%s,%s,%s,%s,%.1f,%.1f,%s,%s,%s,%s,%s,%s,"
            "%s,%s,%s\n",
            shape->family, shape->layout, (long long)shape->groups, (long long)shape->m,
            (long long)shape->problem.n, (long long)shape->problem.k, row->event.median_us,
            row->event.least_us, row->event.most_us, number(row->graph_us, "", 3, graph),
            row->baseline_us > 0 ? baseline_name : "", number(row->baseline_us, "", 3, baseline),
            number(row->read_us, "", 3, read), number(row->mma_tflops, "", 1, mma),
            2e-6 * multiply_adds(shape) / row->event.median_us,
            1e-3 * operand_bytes(row) / row->event.median_us, row->kernel,
            !row->checked     ? ""
            : bits_right(row) ? "yes"
                              : "no",
            facts->device, facts->driver, facts->cuda, facts->date, facts->commit,
            bench_load_text(&shape->load, load), number(row->limit_us, "", 3, limit));
    return fflush(report->csv) == 0 ? CLI_OK
                                    : cli_fail(CLI_ENVIRONMENT, "cannot write to %s",
                                               io_quote_path(report->csv_path).text);
}

static void print_row(const bench_report *report, const bench_row *row)
{
    const bench_shape *shape = row->shape;
    char graph[24], baseline[24], read[24], goal[24];
    if (!report->any)
        printf("%sfamily    layout     groups     m      n      k       us    graph TFLOP/s   GB/s "
               "vendor us read us goal us kernel%s\n",
               cli_style_on(stdout, STYLE_HEADING), cli_style_on(stdout, STYLE_RESET));
    printf("%-9s %-10s %6lld %5lld %6lld %6lld %8.1f %8s %7.0f %6.0f %9s %7s %7s %s", shape->family,
           shape->layout, (long long)shape->groups, (long long)shape->m,
           (long long)shape->problem.n, (long long)shape->problem.k, row->event.median_us,
           number(row->graph_us, "-", 1, graph), 2e-6 * multiply_adds(shape) / row->event.median_us,
           1e-3 * operand_bytes(row) / row->event.median_us,
           number(row->baseline_us, "-", 1, baseline), number(row->read_us, "-", 1, read),
           number(shape->goal_us, "-", 1, goal), row->kernel);
    if (row->limit_us > 0) {
        char load[BENCH_LOAD_BYTES];
        printf(" @%s", bench_load_text(&shape->load, load));
    }
    if (row->limit_us > 0 && row->on_gpu)
        printf(" %s the limit of %.1f us",
               row->event.median_us <= row->limit_us ? "within" : "over", row->limit_us);
    if (row->checked && !bits_right(row))
        printf(" %sBITS DIFFER%s", cli_style_on(stdout, STYLE_BAD),
               cli_style_on(stdout, STYLE_RESET));
    printf("\n");
    fflush(stdout);
}

int bench_report_row(bench_report *report, const bench_row *row)
{
    int code = CLI_OK;
    if (report->table)
        print_row(report, row);
    report->any = true;
    if (report->json != NULL)
        code = write_json(report, row);
    if (code == CLI_OK && report->csv != NULL)
        code = write_csv(report, row);
    return code;
}
