/* SPDX-License-Identifier: Apache-2.0 */
/* The experts of an MoE layer in a checkpoint, and what is wrong with them. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "names.h"
#include "packing.h"
#include "progress.h"

enum { MOST_EXPERTS = 1 << 20, MOST_FAULTS = 20, SCAN_ROWS = 64 };

/* ---- which layer ----------------------------------------------------------------------------- */

/* If `name` is PREFIX.NUMBER.down_proj.weight or ..._packed, and PREFIX ends in "experts": the
 * bytes of PREFIX, else 0. */
static size_t prefix_bytes(const char *name)
{
    static const char *const ends[] = {".down_proj.weight", ".down_proj.weight_packed"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; ++i) {
        if (!name_ends_with(name, ends[i]))
            continue;
        size_t bytes = strlen(name) - strlen(ends[i]), digits = 0;
        while (bytes > 0 && isdigit((unsigned char)name[bytes - 1])) {
            --bytes;
            ++digits;
        }
        if (digits > 0 && bytes > strlen("experts") && name[bytes - 1] == '.' &&
            memcmp(name + bytes - strlen("experts."), "experts", strlen("experts")) == 0)
            return bytes - 1;
    }
    return 0;
}

static int choose_only_prefix(pack_job *job, const char *input)
{
    for (size_t i = 0; i < safetensors_model_count(job->model); ++i) {
        const char *name = safetensors_model_at(job->model, i)->name;
        size_t bytes = prefix_bytes(name);
        if (bytes == 0)
            continue;
        if (job->prefix == NULL) {
            job->prefix = name_join(name, bytes, "");
            if (job->prefix == NULL)
                return cli_fail_memory(bytes + 1);
        } else if (strlen(job->prefix) != bytes || memcmp(job->prefix, name, bytes) != 0) {
            char *other = name_join(name, bytes, "");
            int code =
                cli_fail(CLI_USAGE, "%s has several MoE layers; --experts says which: %s, %s ...",
                         io_quote_path(input).text, job->prefix, other ? other : "");
            free(other);
            return code;
        }
    }
    if (job->prefix == NULL)
        return cli_fail(CLI_USAGE, "%s has no experts: no ...experts.0.down_proj.weight",
                        io_quote_path(input).text);
    return CLI_OK;
}

/* One more than the highest number in PREFIX.NUMBER.; 0 if there is none. */
static int64_t count_experts(const pack_job *job)
{
    size_t bytes = strlen(job->prefix);
    int64_t count = 0;
    for (size_t i = 0; i < safetensors_model_count(job->model); ++i) {
        const char *name = safetensors_model_at(job->model, i)->name;
        if (strncmp(name, job->prefix, bytes) != 0 || name[bytes] != '.')
            continue;
        char *end = NULL;
        long number =
            isdigit((unsigned char)name[bytes + 1]) ? strtol(name + bytes + 1, &end, 10) : -1;
        if (number >= count && number < MOST_EXPERTS && *end == '.')
            count = number + 1;
    }
    return count;
}

/* ---- layers that go together ----------------------------------------------------------------- */

static const safetensors_tensor *layer_companion(const pack_job *job, const layer *of,
                                                 const char *suffix)
{
    const char *name = of->weight->name;
    size_t bytes = strlen(name) - strlen(".weight_packed");
    char *full = name_join(name, bytes, suffix);
    const safetensors_tensor *found =
        full != NULL ? safetensors_model_find(job->model, full) : NULL;
    free(full);
    return found;
}

static pack_inputs inputs_of(const layer *one, const pack_matrix *matrix, int part)
{
    char end[32];
    if (one->input_scale == NULL)
        return PACK_INPUTS_NONE;
    snprintf(end, sizeof end, ".%s.input_scale", matrix->w[part]);
    return name_ends_with(one->input_scale->name, end) ? PACK_INPUTS_W : PACK_INPUTS_OWN;
}

/* What all layers of a matrix share, from the first. */
static void matrix_take(const pack_job *job, pack_matrix *matrix, const layer *first)
{
    matrix->rows = first->n;
    matrix->k = first->k;
    matrix->scheme = first->scheme;
    matrix->group_size = first->group_size;
    matrix->scale_dtype = first->scale->spec.dtype;
    matrix->inputs = inputs_of(first, matrix, 0);
    matrix->input_dtype = first->input_scale != NULL ? first->input_scale->spec.dtype : TENSOR_F32;
    matrix->shape_dtype = TENSOR_I64;
    if (first->scheme == SCHEME_PACK_QUANTIZED)
        matrix->shape_dtype = layer_companion(job, first, ".weight_shape")->spec.dtype;
}

static void compare_layers(const pack_matrix *matrix, const layer *one, int part,
                           fault_list *faults)
{
    const layer *first = &matrix->layers[0];
    const char *than = first->weight->name;
    if (one->scheme != matrix->scheme)
        faults_add(faults, one->weight->name, "scheme %s, but %s has %s", scheme_name(one->scheme),
                   than, scheme_name(matrix->scheme));
    else if (one->n != matrix->rows || one->k != matrix->k)
        faults_add(faults, one->weight->name, "n = %lld, k = %lld, but %s has %lld, %lld",
                   (long long)one->n, (long long)one->k, than, (long long)matrix->rows,
                   (long long)matrix->k);
    else if (one->group_size != matrix->group_size)
        faults_add(faults, one->scale->name, "groups of %lld, but those of %s are of %lld (0: all)",
                   (long long)one->group_size, than, (long long)matrix->group_size);
    else if (one->scale->spec.dtype != matrix->scale_dtype)
        faults_add(faults, one->scale->name, "type %s, but that of %s is %s",
                   tensor_dtype_name(one->scale->spec.dtype), first->scale->name,
                   tensor_dtype_name(matrix->scale_dtype));
    else if (inputs_of(one, matrix, part) == PACK_INPUTS_NONE && matrix->inputs != PACK_INPUTS_NONE)
        faults_add(faults, one->weight->name, "input_scale is missing, but %s has one", than);
    else if (inputs_of(one, matrix, part) != matrix->inputs)
        faults_add(faults, one->input_scale->name, "%s has none of this name", than);
    else if (one->input_scale != NULL && one->input_scale->spec.dtype != matrix->input_dtype)
        faults_add(faults, one->input_scale->name, "type %s, but that of %s is %s",
                   tensor_dtype_name(one->input_scale->spec.dtype), first->input_scale->name,
                   tensor_dtype_name(matrix->input_dtype));
}

/* False if the layer is not there, or is none. */
static bool find_layer(const pack_job *job, pack_matrix *matrix, int64_t expert, int part,
                       fault_list *faults)
{
    layer *one = &matrix->layers[expert * matrix->parts + part];
    char *name = NULL;
    if (asprintf(&name, "%s.%lld.%s", job->prefix, (long long)expert, matrix->names[part]) < 0) {
        faults->out_of_memory = true;
        return false;
    }
    const safetensors_tensor *weight = layer_find_weight(job->model, name);
    size_t before = faults->count;
    bool good = false;
    if (weight == NULL) {
        char *full = name_join(name, strlen(name), ".weight");
        faults_add(faults, full != NULL ? full : name, "is missing");
        free(full);
    } else {
        good = layer_recognize(job->model, weight, one, faults);
        if (good && one->scheme != SCHEME_W4AFP8 && one->scheme != SCHEME_PACK_QUANTIZED) {
            faults_add(faults, weight->name, "scheme %s, but int4 weights are packed",
                       scheme_name(one->scheme));
            good = false;
        } else if (!good && faults->count == before) {
            faults_add(faults, weight->name, "type %s, but int4 weights are packed",
                       tensor_dtype_name(weight->spec.dtype));
        }
    }
    free(name);
    return good;
}

static void find_layers(const pack_job *job, pack_matrix *matrix, fault_list *faults)
{
    for (int64_t expert = 0; expert < matrix->experts && faults->count < MOST_FAULTS; ++expert) {
        for (int part = 0; part < matrix->parts; ++part) {
            if (!find_layer(job, matrix, expert, part, faults))
                continue;
            if (expert == 0 && part == 0)
                matrix_take(job, matrix, &matrix->layers[0]);
            else if (matrix->scheme != SCHEME_PLAIN) /* the first one was good */
                compare_layers(matrix, &matrix->layers[expert * matrix->parts + part], part,
                               faults);
        }
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool has_zero_nibble(unsigned two)
{
    return (two & 15u) == 0 || two >> 4 == 0;
}

typedef struct value_scan {
    pack_job *job;
    pack_matrix *matrix;
    const layer *one;
    unsigned char *weights; /* SCAN_ROWS rows */
    unsigned char *raw;     /* their scales as they are in the file */
    float *scales;
    fault_list *faults;
    int64_t zero_faults, first_row, first_group;
} value_scan;

/* Weight k of a row; the last byte of an odd k has one more, which does not count. */
static int weight_at(const value_scan *scan, const unsigned char *row, int64_t k)
{
    unsigned nibble = (unsigned)row[k / 2] >> (k % 2 * 4) & 15u;
    unsigned signed_nibble = scan->matrix->scheme == SCHEME_W4AFP8 ? nibble : nibble ^ 8u;
    return (int)(signed_nibble ^ 8u) - 8;
}

/* A scale of zero says that all its weights are zero. */
static void scan_zero_scales(value_scan *scan, int64_t first_row, int64_t rows)
{
    const pack_matrix *matrix = scan->matrix;
    int64_t groups = pack_k_groups(matrix);
    int64_t size = matrix->group_size == 0 ? matrix->k : matrix->group_size;
    for (int64_t i = 0; i < rows * groups; ++i) {
        if (scan->scales[i] != 0)
            continue;
        const unsigned char *row = scan->weights + (size_t)(i / groups) * pack_row_bytes(matrix);
        int64_t end = (i % groups + 1) * size < matrix->k ? (i % groups + 1) * size : matrix->k;
        bool zeros = true;
        for (int64_t k = i % groups * size; k < end; ++k)
            zeros = zeros && weight_at(scan, row, k) == 0;
        if (!zeros && scan->zero_faults++ == 0) {
            scan->first_row = first_row + i / groups;
            scan->first_group = i % groups;
        }
    }
}

static void scan_minus8(value_scan *scan, int64_t rows)
{
    pack_matrix *matrix = scan->matrix;
    size_t row_bytes = pack_row_bytes(matrix), whole = (size_t)matrix->k / 2;
    unsigned minus8 = matrix->scheme == SCHEME_W4AFP8 ? 0x88u : 0;
    for (int64_t r = 0; r < rows && !matrix->holds_minus8; ++r) {
        const unsigned char *row = scan->weights + (size_t)r * row_bytes;
        bool found = matrix->k % 2 != 0 && weight_at(scan, row, matrix->k - 1) == -8;
        for (size_t i = 0; i < whole; ++i)
            found |= has_zero_nibble(row[i] ^ minus8);
        matrix->holds_minus8 = found;
    }
}

static io_status scan_layer(value_scan *scan, io_error *error)
{
    const pack_matrix *matrix = scan->matrix;
    const layer *one = scan->one;
    size_t row_bytes = pack_row_bytes(matrix);
    size_t groups = (size_t)pack_k_groups(matrix);
    size_t scale_bytes = tensor_dtype_bytes(matrix->scale_dtype);
    for (int64_t row = 0; row < matrix->rows; row += SCAN_ROWS) {
        int64_t rows = matrix->rows - row < SCAN_ROWS ? matrix->rows - row : SCAN_ROWS;
        size_t count = (size_t)rows * groups;
        io_status status =
            safetensors_model_read(scan->job->model, one->weight, (uint64_t)row * row_bytes,
                                   scan->weights, (size_t)rows * row_bytes, error);
        if (status == IO_OK)
            status = safetensors_model_read(scan->job->model, one->scale,
                                            (uint64_t)row * groups * scale_bytes, scan->raw,
                                            count * scale_bytes, error);
        if (status != IO_OK)
            return status;
        if (halfbyte_convert(scan->scales, HALFBYTE_TYPE_F32, scan->raw,
                             tensor_element_type(matrix->scale_dtype),
                             (int64_t)count) != HALFBYTE_SUCCESS)
            return io_error_set(error, IO_ARGUMENT, "%s", halfbyte_last_error());
        scan_zero_scales(scan, row, rows);
        scan_minus8(scan, rows);
        progress_add((uint64_t)rows * row_bytes);
    }
    return IO_OK;
}

static io_status check_layer(value_scan *scan, io_error *error)
{
    const layer *one = scan->one;
    io_status status = layer_check_values(scan->job->model, one, scan->faults, error);
    scan->zero_faults = 0;
    if (status == IO_OK)
        status = scan_layer(scan, error);
    if (scan->zero_faults > 0)
        faults_add(scan->faults, one->scale->name,
                   "%lld scales are zero though their weights are not, the first at [%lld, %lld]",
                   (long long)scan->zero_faults, (long long)scan->first_row,
                   (long long)scan->first_group);
    return status;
}

static int check_values(pack_job *job, pack_matrix *matrix, fault_list *faults)
{
    size_t scales = (size_t)pack_k_groups(matrix) * SCAN_ROWS;
    value_scan scan = {.job = job, .matrix = matrix, .faults = faults};
    io_error error;
    io_status status = IO_OK;
    scan.weights = cli_alloc(SCAN_ROWS, pack_row_bytes(matrix));
    scan.raw = cli_alloc(scales, sizeof(float));
    scan.scales = cli_alloc(scales, sizeof(float));
    bool short_of_memory = scan.weights == NULL || scan.raw == NULL || scan.scales == NULL;
    for (int64_t i = 0; !short_of_memory && status == IO_OK &&
                        i < matrix->experts * matrix->parts && faults->count < MOST_FAULTS;
         ++i) {
        scan.one = &matrix->layers[i];
        status = check_layer(&scan, &error);
    }
    free(scan.weights);
    free(scan.raw);
    free(scan.scales);
    if (short_of_memory)
        return cli_fail_memory(SCAN_ROWS * pack_row_bytes(matrix) + 2 * scales * sizeof(float));
    return status == IO_OK ? CLI_OK : cli_fail_io(&error);
}

/* ---- interface ------------------------------------------------------------------------------- */

static int print_faults(fault_list *faults)
{
    int code = CLI_OK;
    progress_end();
    if (faults->out_of_memory)
        code = cli_fail(CLI_ENVIRONMENT, "out of memory while listing faults");
    for (size_t i = 0; i < faults->count && i < MOST_FAULTS; ++i)
        code = cli_fail(CLI_CHECK_FAILED, "%s: %s", io_quote(faults->items[i].tensor).text,
                        faults->items[i].text);
    if (faults->count >= MOST_FAULTS)
        cli_note("there may be more faults; halfbyte inspect lists them");
    faults_free(faults);
    return code;
}

static int check_all(pack_job *job, fault_list *faults)
{
    int code = CLI_OK;
    for (int i = 0; i < PACK_MATRICES; ++i) {
        pack_matrix *matrix = &job->matrices[i];
        job->bytes +=
            (uint64_t)(matrix->experts * matrix->parts * matrix->rows) * pack_row_bytes(matrix);
    }
    progress_begin("checking", job->bytes, NULL);
    for (int i = 0; code == CLI_OK && i < PACK_MATRICES; ++i)
        code = check_values(job, &job->matrices[i], faults);
    progress_end();
    return code;
}

int pack_find(pack_job *job, const char *prefix, const char *input)
{
    fault_list faults = {NULL, 0, 0, false};
    int code = CLI_OK;
    if (prefix != NULL) {
        job->prefix = strdup(prefix);
        code = job->prefix == NULL ? cli_fail_memory(strlen(prefix) + 1) : CLI_OK;
    } else {
        code = choose_only_prefix(job, input);
    }
    int64_t experts = code == CLI_OK ? count_experts(job) : 0;
    if (code == CLI_OK && experts == 0)
        code = cli_fail(CLI_USAGE, "%s has no experts of this name: no %s.0.down_proj.weight",
                        io_quote_path(input).text, cli_bare_name(job->prefix).text);
    for (int i = 0; code == CLI_OK && i < PACK_MATRICES; ++i) {
        pack_matrix *matrix = &job->matrices[i];
        matrix->experts = experts;
        matrix->layers = calloc((size_t)(experts * matrix->parts), sizeof *matrix->layers);
        if (matrix->layers == NULL)
            code = cli_fail_memory((uint64_t)(experts * matrix->parts) * sizeof *matrix->layers);
        else
            find_layers(job, matrix, &faults);
    }
    if (code == CLI_OK && faults.count == 0 && !faults.out_of_memory)
        code = check_all(job, &faults);
    int found = print_faults(&faults);
    return code != CLI_OK ? code : found;
}
