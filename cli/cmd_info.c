/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte info: what this build can do on this machine. */
#include <string.h>

#include "command.h"
#include "common.h"

static error_t parse_info(int key, char *text, struct argp_state *state)
{
    (void)text;
    if (key == ARGP_KEY_ARG)
        argp_error(state, "info takes no arguments");
    return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp_child info_children[] = {{&cli_common_argp, 0, NULL, 0},
                                                  {NULL, 0, NULL, 0}};
static const struct argp info_argp = {
    .parser = parse_info,
    .doc = "Say what this build of halfbyte can do on this machine.\n"
           "\nExamples:\n"
           "  halfbyte info\n"
           "  halfbyte info --json\n",
    .children = info_children,
};

/* What came of an attempt to open a device. */
static const char *open_outcome(halfbyte_executor executor, halfbyte_isa isa)
{
    halfbyte_device_options options = halfbyte_device_options_init();
    halfbyte_device *device = NULL;
    options.executor = executor;
    options.isa = isa;
    options.threads = 1;
    halfbyte_status status = halfbyte_device_open(&device, &options);
    halfbyte_device_close(device);
    switch (status) {
    case HALFBYTE_SUCCESS: return "yes";
    case HALFBYTE_ERR_UNSUPPORTED: return "not built";
    case HALFBYTE_ERR_NO_DEVICE: return "not on this machine";
    default: return halfbyte_status_text(status);
    }
}

typedef struct probe {
    const char *name;
    const char *meaning;
    halfbyte_executor executor;
    halfbyte_isa isa;
    const char *outcome;
} probe;

static probe probes[] = {
    {"model", "CPU model", HALFBYTE_EXECUTOR_MODEL, HALFBYTE_ISA_AUTO, NULL},
    {"gpu", "Hopper kernels", HALFBYTE_EXECUTOR_GPU, HALFBYTE_ISA_AUTO, NULL},
    {"emulator", "kernels on the CPU", HALFBYTE_EXECUTOR_EMULATOR, HALFBYTE_ISA_AUTO, NULL},
    {"portable", "plain C", HALFBYTE_EXECUTOR_MODEL, HALFBYTE_ISA_PORTABLE, NULL},
    {"avx2", "x86-64", HALFBYTE_EXECUTOR_MODEL, HALFBYTE_ISA_AVX2, NULL},
    {"avx512", "x86-64", HALFBYTE_EXECUTOR_MODEL, HALFBYTE_ISA_AVX512, NULL},
};
enum { NUM_EXECUTORS = 3, NUM_PROBES = sizeof probes / sizeof probes[0] };

static const char *const families[][2] = {
    {"w4a8",
     "int4 weights (scales: group of 32, 64, 128 or all k; channel; tensor), e4m3 activations"},
    {"fp8", "e4m3 weights (scales: 128x128, 1x128, channel, tensor), e4m3 activations"},
};
static const char *const schemes[][2] = {
    {"w4afp8", "read, write"}, {"fp8-block", "read, write"}, {"pack-quantized", "read"},
    {"fp8-tensor", "read"},    {"fp8-channel", "read"},
};

static int print_json(const char *device)
{
    json_t *executors = json_object();
    json_t *paths = json_object();
    json_t *formats = json_object();
    json_t *shapes = json_object();
    for (int i = 0; i < NUM_PROBES; ++i)
        json_object_set_new(i < NUM_EXECUTORS ? executors : paths, probes[i].name,
                            json_string(probes[i].outcome));
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; ++i)
        json_object_set_new(formats, schemes[i][0], json_string(schemes[i][1]));
    for (size_t i = 0; i < sizeof families / sizeof families[0]; ++i)
        json_object_set_new(shapes, families[i][0], json_string(families[i][1]));
    return cli_emit(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "version", halfbyte_version_text(),
                              "device", device, "executors", executors, "code_paths", paths,
                              "families", shapes, "schemes", formats));
}

static void print_text(const char *device)
{
    const char *heading = cli_style_on(stdout, STYLE_HEADING);
    const char *reset = cli_style_on(stdout, STYLE_RESET);
    printf("halfbyte %s\n", halfbyte_version_text());
    printf("device      %s\n", device);
    for (int i = 0; i < NUM_PROBES; ++i) {
        if (i == 0 || i == NUM_EXECUTORS)
            printf("\n%s%s%s\n", heading, i == 0 ? "executors" : "code paths of the CPU model",
                   reset);
        printf("  %-15s %-20s %s\n", probes[i].name, probes[i].meaning, probes[i].outcome);
    }
    printf("\n%sproducts%s\n", heading, reset);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; ++i)
        printf("  %-15s %s\n", families[i][0], families[i][1]);
    printf("\n%scheckpoints%s (safetensors)\n", heading, reset);
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; ++i)
        printf("  %-15s %s\n", schemes[i][0], schemes[i][1]);
}

int command_info(int argc, char **argv)
{
    int code = cli_parse(&info_argp, "halfbyte info", argc, argv, NULL);
    if (code != CLI_OK)
        return code;
    halfbyte_device_options options = cli_default_device();
    halfbyte_device *device = NULL;
    code = cli_open_device(&device, &options);
    if (code != CLI_OK)
        return code;
    char text[HALFBYTE_TEXT_BYTES] = "";
    halfbyte_status status = halfbyte_device_describe(device, text, sizeof text);
    halfbyte_device_close(device);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, "cannot describe the device");
    for (int i = 0; i < NUM_PROBES; ++i)
        probes[i].outcome = open_outcome(probes[i].executor, probes[i].isa);
    if (cli.json)
        return print_json(text);
    print_text(text);
    return CLI_OK;
}
