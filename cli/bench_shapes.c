/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes to measure, from CSV files and problem strings. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common.h"

enum { LINE_BYTES = 1024, MOST_COLUMNS = 64 };

/* ---- one shape ------------------------------------------------------------------------------- */

static const char *layout_of(const halfbyte_problem *problem)
{
    switch (problem->grouping) {
    case HALFBYTE_GROUPING_RANGES:
        return problem->family == HALFBYTE_FAMILY_W4A8 ? "offsets" : "contiguous";
    case HALFBYTE_GROUPING_MASKED: return "masked";
    case HALFBYTE_GROUPING_LABELS: return "labels";
    default: return "dense";
    }
}

static const char *family_of(const halfbyte_problem *problem)
{
    if (problem->family == HALFBYTE_FAMILY_W4A8)
        return "w4a8";
    return problem->a_scale.mode == HALFBYTE_SCALE_1X128 &&
                   problem->b_scale.mode == HALFBYTE_SCALE_128X128
               ? "fp8_block"
               : "fp8";
}

static int append(bench_shapes *shapes, const halfbyte_problem *problem, const bench_load *load,
                  double goal_us, const char *where)
{
    bench_shape *list = realloc(shapes->list, (shapes->count + 1) * sizeof *list);
    if (list == NULL)
        return cli_fail_memory((shapes->count + 1) * sizeof *list);
    shapes->list = list;
    bench_shape *shape = &list[shapes->count++];
    shape->problem = *problem;
    shape->family = family_of(problem);
    shape->layout = layout_of(problem);
    shape->groups = problem->groups > 0 ? problem->groups : 1;
    bool each = problem->grouping == HALFBYTE_GROUPING_MASKED;
    shape->m = each ? problem->m_max : (problem->m_max + shape->groups - 1) / shape->groups;
    shape->goal_us = goal_us;
    shape->load = load != NULL ? *load : (bench_load){.kind = BENCH_LOAD_NONE};
    return bench_load_check(shape, where);
}

int bench_shapes_add(bench_shapes *shapes, const char *text, const char *where)
{
    char error[PROBLEM_ERROR_BYTES], before[LINE_BYTES];
    const char *at = strchr(text, '@');
    const char *place = where != NULL ? where : "", *colon = where != NULL ? ": " : "";
    halfbyte_problem problem;
    bench_load load = {.kind = BENCH_LOAD_NONE};
    if (at != NULL && !bench_load_parse(at + 1, &load))
        return cli_fail(CLI_USAGE, "%s%safter @ stands even, one or zipfN, not %s", place, colon,
                        io_quote(at + 1).text);
    if (at != NULL) {
        snprintf(before, sizeof before, "%.*s", (int)(at - text), text);
        text = before;
    }
    if (!problem_parse(text, &problem, error))
        return cli_fail(CLI_USAGE, "%s%s%s", place, colon, error);
    return append(shapes, &problem, &load, 0, where);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

typedef enum column {
    COLUMN_FAMILY,
    COLUMN_LAYOUT,
    COLUMN_GROUPS,
    COLUMN_M,
    COLUMN_N,
    COLUMN_K,
    COLUMN_GOAL,
    COLUMN_LOAD,
    NUM_COLUMNS
} column;

static const char *const column_names[NUM_COLUMNS] = {"family", "layout", "groups",  "m",
                                                      "n",      "k",      "goal_us", "load"};

typedef struct csv {
    char where[320]; /* FILE:LINE */
    int at[NUM_COLUMNS];
    bool has_header;
} csv;

/* Cuts a line at its commas, which become NUL; spaces around the fields go. */
static int split(char *line, char *fields[MOST_COLUMNS])
{
    int count = 0;
    for (char *rest = line; rest != NULL && count < MOST_COLUMNS; ++count) {
        char *field = strsep(&rest, ",");
        field += strspn(field, " \t");
        size_t length = strlen(field);
        while (length > 0 && isspace((unsigned char)field[length - 1]))
            field[--length] = '\0';
        fields[count] = field;
    }
    return count;
}

static int read_header(csv *state, char *line)
{
    char *fields[MOST_COLUMNS];
    int count = split(line, fields);
    for (int c = 0; c < NUM_COLUMNS; ++c) {
        state->at[c] = -1;
        for (int i = 0; i < count; ++i)
            state->at[c] = strcmp(fields[i], column_names[c]) == 0 ? i : state->at[c];
        if (state->at[c] < 0 && (c == COLUMN_M || c == COLUMN_N || c == COLUMN_K))
            return cli_fail(CLI_USAGE,
                            "%s: no column %s; the first line names the columns (m, n, k, family, "
                            "layout, groups), or each line is a problem string",
                            state->where, column_names[c]);
    }
    state->has_header = true;
    return CLI_OK;
}

/* The problems that the names of families and layouts stand for. */
static bool set_family(halfbyte_problem *problem, const char *family)
{
    problem->d_type = HALFBYTE_TYPE_BF16;
    if (strcmp(family, "fp8_block") == 0) {
        problem->family = HALFBYTE_FAMILY_FP8;
        problem->a_scale.mode = HALFBYTE_SCALE_1X128;
        problem->b_scale.mode = HALFBYTE_SCALE_128X128;
        problem->b_scale.layout = HALFBYTE_SCALE_K_MAJOR;
        return true;
    }
    problem->family = HALFBYTE_FAMILY_W4A8;
    problem->a_scale.mode = HALFBYTE_SCALE_OUTER;
    problem->b_scale.mode = HALFBYTE_SCALE_K_GROUP;
    problem->b_scale.type = HALFBYTE_TYPE_BF16;
    problem->b_scale.layout = HALFBYTE_SCALE_K_MAJOR;
    problem->weight_group_size = 128;
    problem->b_layout = HALFBYTE_B_PACKED;
    return strcmp(family, "w4a8") == 0;
}

static bool set_layout(halfbyte_problem *problem, const char *layout)
{
    static const struct {
        const char *name;
        halfbyte_grouping grouping;
    } layouts[] = {{"dense", HALFBYTE_GROUPING_DENSE},
                   {"contiguous", HALFBYTE_GROUPING_RANGES},
                   {"offsets", HALFBYTE_GROUPING_RANGES},
                   {"masked", HALFBYTE_GROUPING_MASKED},
                   {"labels", HALFBYTE_GROUPING_LABELS}};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; ++i) {
        if (strcmp(layout, layouts[i].name) == 0) {
            problem->grouping = layouts[i].grouping;
            return true;
        }
    }
    return false;
}

/* The text of a column, "" where the line has none. */
static const char *text_of(const csv *state, char *const *fields, int count, column which)
{
    int at = state->at[which];
    return at >= 0 && at < count ? fields[at] : "";
}

static int read_sizes(const csv *state, char *const *fields, int count, halfbyte_problem *problem)
{
    int64_t *const targets[] = {&problem->groups, &problem->m_max, &problem->n, &problem->k};
    problem->groups = 1;
    for (int i = 0; i < 4; ++i) {
        column which = (column)(COLUMN_GROUPS + i);
        const char *text = text_of(state, fields, count, which);
        if (which == COLUMN_GROUPS && text[0] == '\0')
            continue;
        if (!cli_parse_int(text, i == 0, i == 0 ? 1 << 20 : INT32_MAX, targets[i]))
            return cli_fail(CLI_USAGE, "%s: %s is a number, not %s", state->where,
                            column_names[which], io_quote(text).text);
    }
    if (problem->grouping != HALFBYTE_GROUPING_MASKED)
        problem->m_max *= problem->groups;
    return CLI_OK;
}

static int read_row(const csv *state, bench_shapes *shapes, char *line)
{
    char *fields[MOST_COLUMNS];
    int count = split(line, fields);
    halfbyte_problem problem = halfbyte_problem_init();
    const char *family = text_of(state, fields, count, COLUMN_FAMILY);
    const char *layout = text_of(state, fields, count, COLUMN_LAYOUT);
    const char *goal = text_of(state, fields, count, COLUMN_GOAL);
    const char *said = text_of(state, fields, count, COLUMN_LOAD);
    bench_load load = {.kind = BENCH_LOAD_NONE};
    double goal_us = 0;
    if (!set_family(&problem, family[0] == '\0' ? "fp8_block" : family))
        return cli_fail(CLI_USAGE, "%s: family is fp8_block or w4a8, not %s", state->where,
                        io_quote(family).text);
    if (!set_layout(&problem, layout[0] == '\0' ? "dense" : layout))
        return cli_fail(CLI_USAGE,
                        "%s: layout is dense, contiguous, offsets, masked or labels, not %s",
                        state->where, io_quote(layout).text);
    if (goal[0] != '\0' && !cli_parse_real(goal, &goal_us))
        return cli_fail(CLI_USAGE, "%s: goal_us is a number, not %s", state->where,
                        io_quote(goal).text);
    if (said[0] != '\0' && !bench_load_parse(said, &load))
        return cli_fail(CLI_USAGE, "%s: load is even, one or zipfN, not %s", state->where,
                        io_quote(said).text);
    int code = read_sizes(state, fields, count, &problem);
    return code == CLI_OK ? append(shapes, &problem, &load, goal_us, state->where) : code;
}

static int read_line(csv *state, bench_shapes *shapes, char *line)
{
    char *comment = strchr(line, '#');
    if (comment != NULL)
        *comment = '\0';
    line += strspn(line, " \t\r\n");
    size_t length = strlen(line);
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        line[--length] = '\0';
    if (length == 0)
        return CLI_OK;
    if (strchr(line, ':') != NULL)
        return bench_shapes_add(shapes, line, state->where);
    return state->has_header ? read_row(state, shapes, line) : read_header(state, line);
}

int bench_shapes_read(bench_shapes *shapes, const char *path)
{
    char line[LINE_BYTES];
    csv state = {.has_header = false};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return cli_fail(CLI_ENVIRONMENT, "cannot read %s", io_quote_path(path).text);
    int code = CLI_OK;
    for (int number = 1; code == CLI_OK && fgets(line, sizeof line, file) != NULL; ++number) {
        snprintf(state.where, sizeof state.where, "%.300s:%d", path, number);
        if (strchr(line, '\n') == NULL && strlen(line) == sizeof line - 1)
            code = cli_fail(CLI_USAGE, "%s: more than %d characters", state.where, LINE_BYTES - 2);
        else
            code = read_line(&state, shapes, line);
    }
    if (code == CLI_OK && ferror(file) != 0)
        code = cli_fail(CLI_ENVIRONMENT, "cannot read %s", io_quote_path(path).text);
    fclose(file);
    return code;
}

/* ---- choosing among them --------------------------------------------------------------------- */

static bool value_fits(const bench_shape *shape, const char *word, size_t name_bytes)
{
    const struct {
        const char *name;
        int64_t value;
    } values[] = {{"m", shape->m},
                  {"n", shape->problem.n},
                  {"k", shape->problem.k},
                  {"groups", shape->groups}};
    int64_t wanted = 0;
    if (!cli_parse_int(word + name_bytes + 1, 0, INT64_MAX, &wanted))
        return false;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        if (strlen(values[i].name) == name_bytes && memcmp(values[i].name, word, name_bytes) == 0)
            return values[i].value == wanted;
    }
    return false;
}

static bool fits(const bench_shape *shape, const char *words)
{
    char word[64], load[BENCH_LOAD_BYTES];
    while (*words != '\0') {
        size_t length = strcspn(words, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), words);
        const char *equals = strchr(word, '=');
        bool good = equals != NULL
                        ? value_fits(shape, word, (size_t)(equals - word))
                        : strcmp(word, shape->family) == 0 || strcmp(word, shape->layout) == 0 ||
                              strcmp(word, bench_load_text(&shape->load, load)) == 0;
        if (length > 0 && !good)
            return false;
        words += length + (words[length] == ',');
    }
    return true;
}

void bench_shapes_filter(bench_shapes *shapes, const char *words)
{
    size_t kept = 0;
    for (size_t i = 0; i < shapes->count; ++i) {
        if (fits(&shapes->list[i], words))
            shapes->list[kept++] = shapes->list[i];
    }
    shapes->count = kept;
}

void bench_shapes_free(bench_shapes *shapes)
{
    free(shapes->list);
    *shapes = (bench_shapes){NULL, 0};
}
