/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_COMMON_H
#define HALFBYTE_CLI_COMMON_H

/*
 * What all subcommands share: exit codes, settings, messages, styles, JSON output.
 *
 * Data go to stdout, messages and progress to stderr. A function that fails prints its sentence
 * where the failure is known and returns the exit code that belongs to it; callers pass it on.
 */

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "halfbyte.h"
#include "io/io_error.h"

/* Exit codes; `halfbyte help exit-codes` and the manual page document them. */
enum cli_exit {
    CLI_OK = 0,
    CLI_CHECK_FAILED = 1, /* the program worked and what it looked at is wrong */
    CLI_USAGE = 2,        /* the command line asks for something that does not exist or fit */
    CLI_NO_DEVICE = 3,    /* no device on this machine serves the problem */
    CLI_ENVIRONMENT = 4   /* files, memory, CUDA */
};

typedef enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER } cli_color;

/* Set once by the argument parser of the subcommand, then only read. */
typedef struct cli_settings {
    const char *command; /* "halfbyte gemm": opens every message */
    bool json;
    int verbosity; /* -1 quiet, 0, 1 verbose */
    cli_color color;
} cli_settings;

extern cli_settings cli;

typedef enum cli_style { STYLE_HEADING, STYLE_GOOD, STYLE_BAD, STYLE_DIM, STYLE_RESET } cli_style;

/* The escape sequence of a style on `stream`, "" where colour is off. */
const char *cli_style_on(const FILE *stream, cli_style style);

/* True if `stream` is a terminal that understands escape sequences. */
bool cli_is_terminal(const FILE *stream);

#if defined(__GNUC__)
#define CLI_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define CLI_PRINTF(format_index, first)
#endif

/* "COMMAND: sentence" on stderr; returns `code`. */
int cli_fail(int code, const char *format, ...) CLI_PRINTF(2, 3);

/* The exit code of a status of the library. */
int cli_exit_of(halfbyte_status status);

/* The sentence of a failed library call; `what` (may be NULL) says what was tried. */
int cli_fail_status(halfbyte_status status, const char *what);

/* The sentence of the file library; CLI_ENVIRONMENT. */
int cli_fail_io(const io_error *error);

int cli_fail_memory(uint64_t bytes);

/* A remark on stderr, left out with -q. */
void cli_note(const char *format, ...) CLI_PRINTF(1, 2);

/* `name` for a table: like io_quote, without the quotes. */
io_quoted cli_bare_name(const char *name);

/* CLI_OK, or a sentence and CLI_ENVIRONMENT if the machine cannot hold so much. Linux grants more
 * than there is and ends the program when it is touched. */
int cli_check_memory(uint64_t bytes);

/* malloc aligned to 64 bytes and zeroed; NULL if count * size overflows or memory is short.
 * Never NULL for 0 bytes. Freed with free(). */
void *cli_alloc(uint64_t count, uint64_t size);

/* Prints `object` with "schema": 1 in front as one line on stdout and releases it. */
int cli_emit(json_t *object);

/* JSON string of any bytes: what is not UTF-8 is escaped as in messages. */
json_t *cli_json_text(const char *text);

/* "1.5 GiB", "768 B" into `text` of at least 24 bytes; returns it. */
const char *cli_format_bytes(uint64_t bytes, char *text);

/* `%.4g`, but "inf" and "nan" alike on every C library. At least 24 bytes. */
const char *cli_format_real(double value, char *text);

/* The whole of `text` as a decimal integer of [low, high]. */
bool cli_parse_int(const char *text, int64_t low, int64_t high, int64_t *value);

/* The whole of `text` as a finite number. */
bool cli_parse_real(const char *text, double *value);

/* True if both paths lead to one file that exists: the same name, a link, another spelling. */
bool cli_same_file(const char *one, const char *other);

/* Seconds of a clock that only runs forward. */
double cli_seconds(void);

/* ---- argument parsing ------------------------------------------------------------------------ */

/* Options of every subcommand (--json, -q, -v, --color); goes into .children with no input. */
extern const struct argp cli_common_argp;

/* The same without --json, for subcommands whose --json takes a file. */
extern const struct argp cli_output_argp;

/* Parses with argp; sets cli.command to `name`. Wrong options end the program with CLI_USAGE,
 * --help ends it with CLI_OK. Returns CLI_OK, or CLI_ENVIRONMENT if memory was short. */
int cli_parse(const struct argp *argp, const char *name, int argc, char **argv, void *input);

/* ---- devices --------------------------------------------------------------------------------- */

/* --threads, --isa, --profile, --executor. Input of cli_device_argp. */
extern const struct argp cli_device_argp;

/* Opens the device that `options` asks for; prints the reason where it cannot. */
int cli_open_device(halfbyte_device **device, const halfbyte_device_options *options);

/* All defaults, with the CPU model as executor. */
halfbyte_device_options cli_default_device(void);

#endif
