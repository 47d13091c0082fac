/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte pack: the experts of an MoE layer in the order in which GPU kernels take them. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "common.h"
#include "packing.h"

enum { KEY_EXPERTS = 0x100, KEY_UNPACK, KEY_THREADS_P };

typedef struct pack_options {
    const char *input, *output, *experts;
    bool unpack;
    int32_t threads;
} pack_options;

static const struct argp_option pack_argp_options[] = {
    {"output", 'o', "OUT", 0, "File to write; an old one is replaced when all is done", 0},
    {"experts", KEY_EXPERTS, "PREFIX", 0,
     "Name of the layer's experts, up to their numbers (default: the only ones of IN)", 0},
    {"unpack", KEY_UNPACK, NULL, 0, "The way back: IN is what pack has written", 0},
    {"threads", KEY_THREADS_P, "N", 0, "Threads; changes no bit (default: all CPUs)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static void parse_end(const pack_options *options, struct argp_state *state)
{
    if (options->input == NULL)
        argp_error(state, "which model? IN is a safetensors file, an index or a directory");
    else if (options->output == NULL)
        argp_error(state, "where to? -o OUT names the file to write");
    else if (options->unpack && options->experts != NULL)
        argp_error(state, "--experts is for packing; the names are in the file");
}

static error_t parse_pack(int key, char *text, struct argp_state *state)
{
    pack_options *options = state->input;
    int64_t threads = 0;
    switch (key) {
    case 'o': options->output = text; break;
    case KEY_EXPERTS: options->experts = text; break;
    case KEY_UNPACK: options->unpack = true; break;
    case KEY_THREADS_P:
        if (!cli_parse_int(text, 1, 1024, &threads))
            argp_error(state, "--threads takes a number from 1 to 1024, not '%s'", text);
        options->threads = (int32_t)threads;
        break;
    case ARGP_KEY_ARG:
        if (options->input != NULL)
            argp_error(state, "one IN only; '%s' is another", text);
        options->input = text;
        break;
    case ARGP_KEY_END: parse_end(options, state); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child pack_children[] = {{&cli_common_argp, 0, NULL, 0},
                                                  {NULL, 0, NULL, 0}};
static const struct argp pack_argp = {
    .options = pack_argp_options,
    .parser = parse_pack,
    .args_doc = "IN -o OUT",
    .doc = "Pack the int4 experts of an MoE layer (w4afp8 or pack-quantized) from a\n"
           "safetensors model (file, index or directory) into the weights of two grouped\n"
           "products: gate and up, and down.\n"
           "\nExamples:\n"
           "  halfbyte pack model/ -o layer3.safetensors \\\n"
           "      --experts model.layers.3.mlp.experts\n"
           "  halfbyte pack --unpack layer3.safetensors -o back.safetensors\n"
           "\nRead are PREFIX.N.gate_proj, up_proj and down_proj of all experts N from 0 on,\n"
           "with their scales. Written are PREFIX.gate_up_proj.packed and .scale, those of\n"
           "down_proj, .input_scale if there are any, and the fields of the packed header as\n"
           "metadata. --unpack gives the tensors of the checkpoint back.\n"
           "\nScales that are missing, not finite, negative, zero over weights that are not,\n"
           "or unlike those of the other experts are named, and nothing is written.\n"
           "OUT appears when all is written, whole; an older OUT is replaced then.\n",
    .children = pack_children,
};

/* ---- the run --------------------------------------------------------------------------------- */

static int report(const pack_job *job, uint64_t bytes_out, double seconds)
{
    char size[24];
    if (cli.json) {
        json_t *matrices = json_array();
        for (int i = 0; i < PACK_MATRICES; ++i) {
            const pack_matrix *m = &job->matrices[i];
            json_array_append_new(
                matrices,
                json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:b, s:s}", "projection", m->projection,
                          "experts", (json_int_t)m->experts, "n", (json_int_t)(m->rows * m->parts),
                          "k", (json_int_t)m->k, "group", (json_int_t)m->group_size, "scheme",
                          scheme_name(m->scheme), "holds_minus8", m->holds_minus8, "scale_type",
                          tensor_dtype_name(m->scale_dtype)));
        }
        return cli_emit(json_pack("{s:s, s:o, s:o, s:I, s:f}", "kind", "summary", "experts",
                                  cli_json_text(job->prefix), "matrices", matrices, "bytes_out",
                                  (json_int_t)bytes_out, "seconds", seconds));
    }
    if (cli.verbosity < 0)
        return CLI_OK;
    for (int i = 0; i < PACK_MATRICES; ++i) {
        const pack_matrix *m = &job->matrices[i];
        printf("%s.%s  %lld experts  n = %lld  k = %lld  %s  %s\n", cli_bare_name(job->prefix).text,
               m->projection, (long long)m->experts, (long long)(m->rows * m->parts),
               (long long)m->k, scheme_name(m->scheme), m->holds_minus8 ? "with -8" : "without -8");
    }
    printf("%s written\n", cli_format_bytes(bytes_out, size));
    return CLI_OK;
}

static int begin_output(pack_job *job, const pack_options *options)
{
    io_error error;
    io_status status = safetensors_writer_create(&job->writer, &error);
    if (status == IO_OK)
        status = options->unpack ? unpack_declare(job, &error) : pack_declare(job, &error);
    if (status == IO_OK)
        status = safetensors_writer_begin(job->writer, options->output, &error);
    return status == IO_OK ? CLI_OK : cli_fail_io(&error);
}

static int run(pack_job *job, const pack_options *options)
{
    io_error error;
    double start = cli_seconds();
    if (safetensors_model_open(&job->model, options->input, &error) != IO_OK)
        return cli_fail_io(&error);
    if (model_reads_file(job->model, options->input, options->output))
        return cli_fail(CLI_USAGE, "%s is the input; give another -o OUT",
                        io_quote_path(options->output).text);
    halfbyte_device_options device = cli_default_device();
    device.threads = options->threads;
    int code = cli_open_device(&job->device, &device);
    if (code == CLI_OK)
        code = options->unpack ? unpack_find(job, options->input)
                               : pack_find(job, options->experts, options->input);
    if (code == CLI_OK)
        code = begin_output(job, options);
    if (code == CLI_OK)
        code = options->unpack ? unpack_write(job) : pack_write(job);
    if (code != CLI_OK)
        return code;
    uint64_t bytes = safetensors_writer_file_bytes(job->writer);
    if (safetensors_writer_commit(job->writer, &error) != IO_OK)
        return cli_fail_io(&error);
    return report(job, bytes, cli_seconds() - start);
}

int command_pack(int argc, char **argv)
{
    pack_options options;
    pack_job job;
    memset(&options, 0, sizeof options);
    memset(&job, 0, sizeof job);
    pack_matrices_init(&job);
    int code = cli_parse(&pack_argp, "halfbyte pack", argc, argv, &options);
    if (code == CLI_OK)
        code = run(&job, &options);
    safetensors_writer_destroy(job.writer);
    safetensors_model_close(job.model);
    halfbyte_device_close(job.device);
    pack_matrices_free(&job);
    return code;
}
