/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tensor_spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct dtype_row {
    const char *name;
    size_t bytes;
    const char *npy_descr;
} dtype_row;

static const dtype_row dtype_rows[TENSOR_DTYPE_COUNT] = {
#define XX(name, text, bytes, npy) {text, bytes, npy},
    TENSOR_DTYPE_MAP(XX)
#undef XX
};

static const dtype_row *dtype_find(tensor_dtype dtype)
{
    size_t row = (size_t)dtype;
    return row < TENSOR_DTYPE_COUNT ? &dtype_rows[row] : NULL;
}

const char *tensor_dtype_name(tensor_dtype dtype)
{
    const dtype_row *row = dtype_find(dtype);
    return row != NULL ? row->name : "?";
}

const char *tensor_dtype_npy_descr(tensor_dtype dtype)
{
    const dtype_row *row = dtype_find(dtype);
    return row != NULL && row->npy_descr[0] != '\0' ? row->npy_descr : NULL;
}

size_t tensor_dtype_bytes(tensor_dtype dtype)
{
    const dtype_row *row = dtype_find(dtype);
    return row != NULL ? row->bytes : 0;
}

bool tensor_dtype_from_name(const char *name, tensor_dtype *dtype)
{
    for (size_t i = 0; i < TENSOR_DTYPE_COUNT; i++) {
        if (strcmp(name, dtype_rows[i].name) == 0) {
            *dtype = (tensor_dtype)i;
            return true;
        }
    }
    return false;
}

io_status tensor_spec_init(tensor_spec *spec, tensor_dtype dtype, int rank, const int64_t *shape,
                           const char *where, io_error *error)
{
    memset(spec, 0, sizeof *spec);
    if (dtype_find(dtype) == NULL)
        return io_error_set(error, IO_ARGUMENT, "%s: dtype number %d is not in the table", where,
                            (int)dtype);
    if (rank < 0 || rank > TENSOR_MAX_RANK)
        return io_error_set(error, IO_UNSUPPORTED, "%s: %d dimensions; at most %d are accepted",
                            where, rank, TENSOR_MAX_RANK);
    spec->dtype = dtype;
    spec->rank = rank;
    uint64_t bytes = tensor_dtype_bytes(dtype);
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return io_error_set(error, IO_MALFORMED,
                                "%s: dimension %d is %" PRId64 "; 0 or more is accepted", where, i,
                                shape[i]);
        spec->shape[i] = shape[i];
        if (shape[i] == 0)
            empty = true;
        else if (bytes > (uint64_t)INT64_MAX / (uint64_t)shape[i])
            return io_error_set(error, IO_TOO_LARGE,
                                "%s: the byte size overflows at dimension %d (%" PRId64
                                "); at most 2^63-1 bytes are accepted",
                                where, i, shape[i]);
        else
            bytes *= (uint64_t)shape[i];
    }
    spec->bytes = empty ? 0 : bytes;
    spec->elems = spec->bytes / tensor_dtype_bytes(dtype);
    return IO_OK;
}

void tensor_shape_format(const tensor_spec *spec, char *text, size_t text_bytes)
{
    size_t used = 0;
    for (int i = 0; i < spec->rank; i++) {
        int length = snprintf(used < text_bytes ? text + used : NULL,
                              used < text_bytes ? text_bytes - used : 0, "%s%" PRId64,
                              i == 0 ? "[" : ", ", spec->shape[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    if (used < text_bytes)
        snprintf(text + used, text_bytes - used, spec->rank == 0 ? "[]" : "]");
}
