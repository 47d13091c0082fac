/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

cli_settings cli = {.command = "halfbyte"};

static bool set_and_not_empty(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

bool cli_is_terminal(const FILE *stream)
{
    const char *term = getenv("TERM");
    if (term == NULL || strcmp(term, "dumb") == 0)
        return false;
    return isatty(stream == stdout ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

static bool color_enabled(const FILE *stream)
{
    if (cli.color != CLI_COLOR_AUTO)
        return cli.color == CLI_COLOR_ALWAYS;
    if (set_and_not_empty("NO_COLOR"))
        return false;
    return set_and_not_empty("FORCE_COLOR") || cli_is_terminal(stream);
}

const char *cli_style_on(const FILE *stream, cli_style style)
{
    static const char *const sequences[] = {
        [STYLE_HEADING] = "\033[1m", [STYLE_GOOD] = "\033[32m", [STYLE_BAD] = "\033[1;31m",
        [STYLE_DIM] = "\033[2m",     [STYLE_RESET] = "\033[0m",
    };
    return color_enabled(stream) ? sequences[style] : "";
}

int cli_fail(int code, const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "%s%s:%s ", cli_style_on(stderr, STYLE_BAD), cli.command,
            cli_style_on(stderr, STYLE_RESET));
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return code;
}

int cli_exit_of(halfbyte_status status)
{
    switch ((int)status / 1000) {
    case 0: return CLI_OK;
    case 1: return CLI_USAGE;
    case 2: return CLI_NO_DEVICE;
    default: return CLI_ENVIRONMENT;
    }
}

int cli_fail_status(halfbyte_status status, const char *what)
{
    const char *detail = halfbyte_last_error();
    if (detail[0] == '\0')
        detail = halfbyte_status_text(status);
    return cli_fail(cli_exit_of(status), "%s%s%s", what != NULL ? what : "",
                    what != NULL ? ": " : "", detail);
}

int cli_fail_io(const io_error *error)
{
    return cli_fail(CLI_ENVIRONMENT, "%s", error->text);
}

int cli_fail_memory(uint64_t bytes)
{
    char text[24];
    return cli_fail(CLI_ENVIRONMENT, "out of memory: %s were asked for",
                    cli_format_bytes(bytes, text));
}

void cli_note(const char *format, ...)
{
    if (cli.verbosity < 0)
        return;
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "%s: ", cli.command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

io_quoted cli_bare_name(const char *name)
{
    io_quoted quoted = io_quote(name);
    size_t bytes = strlen(quoted.text);
    memmove(quoted.text, quoted.text + 1, bytes);
    quoted.text[bytes - 2] = '\0';
    return quoted;
}

/* What the machine has, or what the control group of the process may have if that is less. */
static uint64_t memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t limit =
        pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
    char text[32];
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "r");
    if (file != NULL) {
        /* "max" is no number and gives 0. */
        unsigned long long group =
            fgets(text, sizeof text, file) != NULL ? strtoull(text, NULL, 10) : 0;
        if (group > 0 && group < limit)
            limit = group;
        fclose(file);
    }
    return limit;
}

int cli_check_memory(uint64_t bytes)
{
    char wanted[24], there[24];
    uint64_t limit = memory_limit();
    if (bytes <= limit)
        return CLI_OK;
    return cli_fail(CLI_ENVIRONMENT, "out of memory: this takes %s or more, the limit is %s",
                    cli_format_bytes(bytes, wanted), cli_format_bytes(limit, there));
}

void *cli_alloc(uint64_t count, uint64_t size)
{
    if (size != 0 && count > (SIZE_MAX - 64) / size)
        return NULL;
    size_t bytes = ((size_t)(count * size) + 63) / 64 * 64;
    if (bytes == 0)
        bytes = 64;
    void *memory = aligned_alloc(64, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

/* ---- JSON and numbers ------------------------------------------------------------------------ */

int cli_emit(json_t *object)
{
    json_t *line = json_pack("{s:i}", "schema", 1);
    bool ok = object != NULL && line != NULL && json_object_update(line, object) == 0 &&
              json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0;
    json_decref(line);
    json_decref(object);
    if (!ok)
        return cli_fail(CLI_ENVIRONMENT, "cannot write JSON to standard output");
    fputc('\n', stdout);
    return CLI_OK;
}

json_t *cli_json_text(const char *text)
{
    json_t *value = json_string(text);
    return value != NULL ? value : json_string(io_quote(text).text);
}

const char *cli_format_bytes(uint64_t bytes, char *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        ++unit;
    }
    snprintf(text, 24, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

const char *cli_format_real(double value, char *text)
{
    if (isnan(value))
        snprintf(text, 24, "nan");
    else if (isinf(value))
        snprintf(text, 24, value < 0 ? "-inf" : "inf");
    else
        snprintf(text, 24, "%.4g", value);
    return text;
}

bool cli_parse_int(const char *text, int64_t low, int64_t high, int64_t *value)
{
    char *end = NULL;
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
        return false;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || parsed < low || parsed > high)
        return false;
    *value = parsed;
    return true;
}

bool cli_parse_real(const char *text, double *value)
{
    char *end = NULL;
    double parsed = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}

bool cli_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
