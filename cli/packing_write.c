/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the packed tensors: some hundred rows at a time, which are whole panels. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "packing.h"
#include "progress.h"

enum { PANEL_ROWS = 64, ATOM_BYTES = 4096, ATOM_K = 128 };

static int64_t ceil_div(int64_t value, int64_t by)
{
    return value / by + (value % by != 0);
}

/* ---- declaration ----------------------------------------------------------------------------- */

static io_status add_tensor(pack_job *job, const pack_matrix *matrix, const char *what,
                            tensor_dtype dtype, int rank, const int64_t *shape, size_t *index,
                            io_error *error)
{
    char *name = pack_name(job, matrix, what);
    if (name == NULL)
        return io_error_set(error, IO_OUT_OF_MEMORY, "out of memory");
    io_status status =
        safetensors_writer_add_tensor(job->writer, name, dtype, rank, shape, index, error);
    free(name);
    return status;
}

static io_status add_metadata(pack_job *job, const pack_matrix *matrix, io_error *error)
{
    char value[PACK_METADATA_BYTES];
    char *key = NULL;
    if (asprintf(&key, PACK_KEY "%s.%s.packed", job->prefix, matrix->projection) < 0)
        return io_error_set(error, IO_OUT_OF_MEMORY, "out of memory");
    pack_metadata_format(matrix, value);
    io_status status = safetensors_writer_add_metadata(job->writer, key, value, error);
    free(key);
    return status;
}

io_status pack_declare(pack_job *job, io_error *error)
{
    io_status status = safetensors_writer_add_metadata(job->writer, "halfbyte.version",
                                                       halfbyte_version_text(), error);
    for (int i = 0; status == IO_OK && i < PACK_MATRICES; ++i) {
        pack_matrix *matrix = &job->matrices[i];
        const int64_t n = matrix->rows * matrix->parts;
        const int64_t packed[] = {matrix->experts, ceil_div(n, PANEL_ROWS),
                                  ceil_div(matrix->k, ATOM_K), ATOM_BYTES};
        const int64_t scale[] = {matrix->experts, n, pack_k_groups(matrix)};
        const int64_t input[] = {matrix->experts, matrix->parts};
        status = add_metadata(job, matrix, error);
        if (status == IO_OK)
            status = add_tensor(job, matrix, "packed", TENSOR_U8, 4, packed, &matrix->packed_index,
                                error);
        if (status == IO_OK)
            status = add_tensor(job, matrix, "scale", matrix->scale_dtype, 3, scale,
                                &matrix->scale_index, error);
        if (status == IO_OK && matrix->inputs != PACK_INPUTS_NONE) /* [experts, 2] or [experts] */
            status = add_tensor(job, matrix, "input_scale", matrix->input_dtype, matrix->parts,
                                input, &matrix->input_index, error);
    }
    return status;
}

/* ---- weights --------------------------------------------------------------------------------- */

typedef struct pack_buffer {
    unsigned char *rows; /* a chunk, and a panel for rows that are added */
    unsigned char *packed;
    size_t packed_bytes;
} pack_buffer;

/* Rows first .. first + count of an expert, which may lie in gate and in up. */
static io_status read_rows(const pack_job *job, const pack_matrix *matrix, int64_t expert,
                           int64_t first, int64_t count, unsigned char *to, io_error *error)
{
    size_t row_bytes = pack_row_bytes(matrix);
    io_status status = IO_OK;
    while (status == IO_OK && count > 0) {
        int64_t part = first / matrix->rows, row = first % matrix->rows;
        int64_t here = matrix->rows - row < count ? matrix->rows - row : count;
        const layer *from = &matrix->layers[expert * matrix->parts + part];
        status = safetensors_model_read(job->model, from->weight, (uint64_t)row * row_bytes, to,
                                        (size_t)here * row_bytes, error);
        to += (size_t)here * row_bytes;
        first += here;
        count -= here;
    }
    return status;
}

/*
 * The library takes the form of the words from the weights that it is given, and these are not all.
 * So if any expert has a -8, each chunk gets one: a row behind its panels, whose own panel is not
 * written.
 */
static int64_t add_minus8(const pack_matrix *matrix, int64_t rows, unsigned char *at)
{
    size_t row_bytes = pack_row_bytes(matrix);
    bool is_offset = matrix->scheme == SCHEME_PACK_QUANTIZED;
    int64_t whole = ceil_div(rows, PANEL_ROWS) * PANEL_ROWS;
    memset(at + (size_t)rows * row_bytes, is_offset ? 0x88 : 0x00,
           (size_t)(whole - rows) * row_bytes);
    memset(at + (size_t)whole * row_bytes, is_offset ? 0x00 : 0x88, row_bytes);
    return whole + 1;
}

static int pack_chunk(pack_job *job, const pack_matrix *matrix, pack_buffer *buffer, int64_t rows)
{
    halfbyte_packed_header header;
    io_error error;
    size_t written =
        (size_t)(ceil_div(rows, PANEL_ROWS) * ceil_div(matrix->k, ATOM_K)) * ATOM_BYTES;
    if (matrix->holds_minus8)
        rows = add_minus8(matrix, rows, buffer->rows);
    const halfbyte_int4_desc desc = pack_desc(matrix, rows);
    halfbyte_status status = halfbyte_pack_weights(job->device, &desc, buffer->rows, buffer->packed,
                                                   buffer->packed_bytes, &header, NULL);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, NULL);
    if ((header.flags != 0) != matrix->holds_minus8)
        return cli_fail(CLI_ENVIRONMENT, "the weights changed while they were read");
    if (safetensors_writer_append(job->writer, matrix->packed_index, buffer->packed, written,
                                  &error) != IO_OK)
        return cli_fail_io(&error);
    return CLI_OK;
}

static int write_weights(pack_job *job, const pack_matrix *matrix)
{
    const halfbyte_int4_desc most = pack_desc(matrix, PACK_CHUNK_ROWS + PANEL_ROWS);
    size_t row_bytes = pack_row_bytes(matrix);
    int64_t n = matrix->rows * matrix->parts;
    pack_buffer buffer = {NULL, NULL, 0};
    io_error error;
    if (halfbyte_packed_weights_bytes(&most, &buffer.packed_bytes) != HALFBYTE_SUCCESS)
        return cli_fail(CLI_USAGE, "%s", halfbyte_last_error());
    buffer.rows = cli_alloc(PACK_CHUNK_ROWS + PANEL_ROWS, row_bytes);
    buffer.packed = cli_alloc(1, buffer.packed_bytes);
    int code = buffer.rows == NULL || buffer.packed == NULL
                   ? cli_fail_memory(buffer.packed_bytes * 2)
                   : CLI_OK;
    for (int64_t expert = 0; code == CLI_OK && expert < matrix->experts; ++expert) {
        for (int64_t row = 0; code == CLI_OK && row < n; row += PACK_CHUNK_ROWS) {
            int64_t rows = n - row < PACK_CHUNK_ROWS ? n - row : PACK_CHUNK_ROWS;
            if (read_rows(job, matrix, expert, row, rows, buffer.rows, &error) != IO_OK)
                code = cli_fail_io(&error);
            else
                code = pack_chunk(job, matrix, &buffer, rows);
            progress_add((uint64_t)rows * row_bytes);
        }
    }
    free(buffer.rows);
    free(buffer.packed);
    return code;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static int copy_tensor(pack_job *job, const safetensors_tensor *from, size_t index)
{
    static unsigned char piece[1 << 16];
    io_error error;
    for (uint64_t at = 0; at < from->spec.bytes; at += sizeof piece) {
        uint64_t left = from->spec.bytes - at;
        size_t bytes = left < sizeof piece ? (size_t)left : sizeof piece;
        if (safetensors_model_read(job->model, from, at, piece, bytes, &error) != IO_OK ||
            safetensors_writer_append(job->writer, index, piece, bytes, &error) != IO_OK)
            return cli_fail_io(&error);
    }
    return CLI_OK;
}

int pack_write(pack_job *job)
{
    int code = CLI_OK;
    progress_begin("packing", job->bytes, NULL);
    for (int i = 0; code == CLI_OK && i < PACK_MATRICES; ++i) {
        const pack_matrix *matrix = &job->matrices[i];
        code = write_weights(job, matrix);
        for (int64_t j = 0; code == CLI_OK && j < matrix->experts * matrix->parts; ++j) {
            code = copy_tensor(job, matrix->layers[j].scale, matrix->scale_index);
            if (code == CLI_OK && matrix->inputs != PACK_INPUTS_NONE)
                code = copy_tensor(job, matrix->layers[j].input_scale, matrix->input_index);
        }
    }
    progress_end();
    return code;
}
