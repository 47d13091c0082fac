/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the subcommand; the rest of the command line is its business. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common.h"
#include "io/atomic_file.h"

typedef struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
#define XX(name, summary) {#name, summary, command_##name},
    CLI_COMMAND_MAP(XX)
#undef XX
};
enum { NUM_COMMANDS = sizeof commands / sizeof commands[0] };

static const command *command_find(const char *name)
{
    for (int i = 0; i < NUM_COMMANDS; ++i) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void print_help(FILE *stream)
{
    const char *heading = cli_style_on(stream, STYLE_HEADING);
    const char *reset = cli_style_on(stream, STYLE_RESET);
    fprintf(stream,
            "halfbyte: exact low-bit matrix products (FP8, W4A8) for LLM inference\n"
            "\n"
            "%sExamples:%s\n"
            "  halfbyte inspect model.safetensors\n"
            "  halfbyte quantize model.safetensors -o w4.safetensors --scheme w4afp8\n"
            "  halfbyte gemm --problem w4a8:m16n4096k7168:a1x128:bk128:dbf16\n"
            "  halfbyte check\n"
            "  halfbyte race --all\n"
            "\n"
            "%sUsage:%s halfbyte COMMAND [OPTION...]\n"
            "\n"
            "%sCommands:%s\n",
            heading, reset, heading, reset, heading, reset);
    for (int i = 0; i < NUM_COMMANDS; ++i)
        fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream,
            "  %-9s %s\n"
            "\n"
            "More: halfbyte COMMAND --help, halfbyte help problem, halfbyte help exit-codes, "
            "man halfbyte\n",
            "help", "help on a command or a topic");
}

static void print_exit_codes(void)
{
    printf("%sExit codes%s\n"
           "  0  success\n"
           "  1  a check failed: mismatches (check, gemm, bench), faults in the file (inspect),\n"
           "     findings (race)\n"
           "  2  usage: unknown option, tensor or name; arguments that do not fit together\n"
           "  3  no device of this machine or build serves the problem\n"
           "  4  environment: files, disk, memory, CUDA\n"
           "\n"
           "Statuses of the library become these:\n",
           cli_style_on(stdout, STYLE_HEADING), cli_style_on(stdout, STYLE_RESET));
    static const struct {
        const char *name;
        int code;
    } statuses[] = {
#define XX(name, code, text) {#name, code},
        HALFBYTE_STATUS_MAP(XX)
#undef XX
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; ++i) {
        printf("  %d  %s\n", cli_exit_of((halfbyte_status)statuses[i].code), statuses[i].name);
    }
}

static void print_problem_help(void)
{
    const char *heading = cli_style_on(stdout, STYLE_HEADING);
    const char *reset = cli_style_on(stdout, STYLE_RESET);
    printf(
        "%sProblem strings%s say what is multiplied: D[m,n] = A[m,k] * B[n,k] with scales.\n"
        "\n"
        "  w4a8:m16n4096k7168:a1x128:bk128,bf16:dbf16       int4 weights, groups of 128\n"
        "  fp8:m64n2112k7168:a1x128:b128x128:df32           DeepSeek-V3 blocks\n"
        "  w4a8:m96n2048k7168g8:ranges:atensor:bk128        8 experts, rows side by side\n"
        "\n"
        "%sFields%s, between colons, the first two in this place, the others in any order:\n"
        "  fp8 | w4a8           family\n"
        "  mMnNkK[gG]           sizes; G weight matrices (masked: m is rows a group)\n"
        "  ranges masked labels dense\n"
        "                       how rows belong to groups; default: ranges if g > 1\n"
        "  aMODE[,LAYOUT]       scales of A: none, tensor, token, 1x128\n"
        "  bMODE[,TYPE][,LAYOUT][,oOFFSET]\n"
        "                       scales of B: none, tensor, channel; fp8 also 1x128, 128x128;\n"
        "                       w4a8 also k32, k64, k128, kall (weights along k that share one)\n"
        "  dTYPE                type of D: bf16 (default), f16, f32\n"
        "  packed               int4 weights in packed form\n"
        "  channelscale         a further f32 factor for each output channel\n"
        "  alpha cTYPE biasTYPE alpha *, + beta * C, + bias[n]\n"
        "  splitS               k_splits = S\n"
        "  zero                 rows without a group are set to zero\n"
        "  i64                  group sizes are 64-bit\n"
        "TYPE: f32 (default), bf16, f16, e4m3. LAYOUT: mn (default), k, i4.\n",
        heading, reset, heading, reset);
}

int command_help(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "exit-codes") == 0) {
        print_exit_codes();
        return CLI_OK;
    }
    if (strcmp(argv[1], "problem") == 0) {
        print_problem_help();
        return CLI_OK;
    }
    const command *found = command_find(argv[1]);
    if (found == NULL)
        return cli_fail(CLI_USAGE, "no command or topic %s; topics are exit-codes and problem",
                        io_quote(argv[1]).text);
    char help[] = "--help";
    char *arguments[] = {argv[0], help, NULL};
    return found->run(2, arguments);
}

/* A signal that ends the program takes the half-written temporary along. */
static void remove_and_die(int signal_number)
{
    atomic_file_remove_pending();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void handle_signals(void)
{
    static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = remove_and_die;
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; ++i) {
        struct sigaction old;
        /* nohup and shells that ignore a signal for us keep their way. */
        if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(fatal[i], &action, NULL);
    }
    /* A file size limit then is an error with a sentence. */
    signal(SIGXFSZ, SIG_IGN);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "-?") == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("halfbyte %s\n", halfbyte_version_text());
        return CLI_OK;
    }
    if (strcmp(name, "help") == 0)
        return command_help(argc - 1, argv + 1);
    const command *found = command_find(name);
    if (found != NULL)
        return found->run(argc - 1, argv + 1);
    if (name[0] == '-')
        return cli_fail(CLI_USAGE, "%s before a command; options follow it: halfbyte COMMAND %s",
                        io_quote(name).text, name);
    return cli_fail(CLI_USAGE, "no command %s; 'halfbyte help' lists them", io_quote(name).text);
}

int main(int argc, char **argv)
{
    handle_signals();
    int code = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_fail(CLI_ENVIRONMENT, "cannot write to standard output");
        if (code == CLI_OK)
            code = CLI_ENVIRONMENT;
    }
    return code;
}
