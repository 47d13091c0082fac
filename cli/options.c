/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several subcommands take. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { KEY_JSON = 0x200, KEY_COLOR, KEY_THREADS, KEY_ISA, KEY_PROFILE, KEY_EXECUTOR };

/* ---- every subcommand ------------------------------------------------------------------------ */

static const struct argp_option common_options[] = {
    {NULL, 0, NULL, 0, "Output:", 90},
    {"json", KEY_JSON, NULL, 0, "Print JSON, one object a line", 0},
    {"quiet", 'q', NULL, 0, "Errors and results only", 0},
    {"verbose", 'v', NULL, 0, "More detail", 0},
    {"color", KEY_COLOR, "WHEN", 0, "auto (default), always or never", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

/* Where --json means something else. */
static const struct argp_option output_options[] = {
    {NULL, 0, NULL, 0, "Output:", 90},
    {"quiet", 'q', NULL, 0, "Errors and results only", 0},
    {"verbose", 'v', NULL, 0, "More detail", 0},
    {"color", KEY_COLOR, "WHEN", 0, "auto (default), always or never", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static bool parse_color(const char *text)
{
    if (strcmp(text, "auto") == 0)
        cli.color = CLI_COLOR_AUTO;
    else if (strcmp(text, "always") == 0)
        cli.color = CLI_COLOR_ALWAYS;
    else if (strcmp(text, "never") == 0)
        cli.color = CLI_COLOR_NEVER;
    else
        return false;
    return true;
}

static error_t parse_common(int key, char *text, struct argp_state *state)
{
    switch (key) {
    case KEY_JSON: cli.json = true; break;
    case 'q': cli.verbosity = -1; break;
    case 'v': cli.verbosity = 1; break;
    case KEY_COLOR:
        if (!parse_color(text))
            argp_error(state, "--color takes auto, always or never, not '%s'", text);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

const struct argp cli_common_argp = {.options = common_options, .parser = parse_common};
const struct argp cli_output_argp = {.options = output_options, .parser = parse_common};

int cli_parse(const struct argp *argp, const char *name, int argc, char **argv, void *input)
{
    char *arguments[256];
    if (argc >= (int)(sizeof arguments / sizeof arguments[0]))
        return cli_fail(CLI_USAGE, "more than 254 arguments");
    for (int i = 0; i < argc; ++i)
        arguments[i] = argv[i];
    arguments[argc] = NULL;
    /* argp opens its messages with argv[0]. */
    arguments[0] = (char *)(uintptr_t)name;
    cli.command = name;
    setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
    argp_err_exit_status = CLI_USAGE;
    if (argp_parse(argp, argc, arguments, 0, NULL, input) != 0)
        return cli_fail(CLI_ENVIRONMENT, "out of memory while reading the arguments");
    return CLI_OK;
}

/* ---- devices --------------------------------------------------------------------------------- */

static const struct argp_option device_options[] = {
    {NULL, 0, NULL, 0, "Device:", 80},
    {"threads", KEY_THREADS, "N", 0, "Threads; changes no bit (default: all CPUs)", 0},
    {"isa", KEY_ISA, "NAME", 0,
     "Code path: auto (default), portable, avx2 or avx512; changes no bit", 0},
    {"profile", KEY_PROFILE, "NAME", 0,
     "sm90 (default): refuse what the GPU kernels refuse; any: take every shape", 0},
    {"executor", KEY_EXECUTOR, "NAME", 0, "model (default: the CPU model), gpu or emulator", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

typedef struct named_value {
    const char *name;
    int value;
} named_value;

/* The value of `text` in a table that ends with a NULL name; refuses other names. */
static int choose(struct argp_state *state, const char *option, const char *text,
                  const named_value *table, const char *accepted)
{
    for (; table->name != NULL; ++table) {
        if (strcmp(table->name, text) == 0)
            return table->value;
    }
    argp_error(state, "%s takes %s, not '%s'", option, accepted, text);
    return 0;
}

static error_t parse_device(int key, char *text, struct argp_state *state)
{
    static const named_value isas[] = {{"auto", HALFBYTE_ISA_AUTO},
                                       {"portable", HALFBYTE_ISA_PORTABLE},
                                       {"avx2", HALFBYTE_ISA_AVX2},
                                       {"avx512", HALFBYTE_ISA_AVX512},
                                       {NULL, 0}};
    static const named_value profiles[] = {
        {"sm90", HALFBYTE_PROFILE_SM90}, {"any", HALFBYTE_PROFILE_ANY}, {NULL, 0}};
    static const named_value executors[] = {{"model", HALFBYTE_EXECUTOR_MODEL},
                                            {"gpu", HALFBYTE_EXECUTOR_GPU},
                                            {"emulator", HALFBYTE_EXECUTOR_EMULATOR},
                                            {NULL, 0}};
    halfbyte_device_options *options = state->input;
    int64_t threads = 0;
    switch (key) {
    case KEY_THREADS:
        if (!cli_parse_int(text, 1, 1024, &threads))
            argp_error(state, "--threads takes a number from 1 to 1024, not '%s'", text);
        options->threads = (int32_t)threads;
        break;
    case KEY_ISA:
        options->isa =
            (halfbyte_isa)choose(state, "--isa", text, isas, "auto, portable, avx2 or avx512");
        break;
    case KEY_PROFILE:
        options->profile =
            (halfbyte_profile)choose(state, "--profile", text, profiles, "sm90 or any");
        break;
    case KEY_EXECUTOR:
        options->executor = (halfbyte_executor)choose(state, "--executor", text, executors,
                                                      "model, gpu or emulator");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

const struct argp cli_device_argp = {.options = device_options, .parser = parse_device};

halfbyte_device_options cli_default_device(void)
{
    halfbyte_device_options options = halfbyte_device_options_init();
    /* The tool keeps its tensors in host memory, so it does not let the library pick a GPU. */
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    return options;
}

int cli_open_device(halfbyte_device **device, const halfbyte_device_options *options)
{
    halfbyte_status status = halfbyte_device_open(device, options);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, "cannot open a device");
    if (options->executor != HALFBYTE_EXECUTOR_GPU)
        return CLI_OK;
    halfbyte_device_close(*device);
    *device = NULL;
    return cli_fail(CLI_NO_DEVICE, "--executor gpu: this command keeps its tensors in host memory, "
                                   "which the gpu executor does not read; use model");
}
