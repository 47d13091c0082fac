/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_TENSOR_SPEC_H
#define HALFBYTE_IO_TENSOR_SPEC_H

/* Element type and shape of a tensor in a file, and the sizes that follow, overflow-checked. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io_error.h"

/* Dimensions that a tensor may have here. */
#define TENSOR_MAX_RANK 8

/*
 * Element types: enumerator, safetensors name, bytes an element, .npy descr ("" = no such type).
 * All are little-endian. The order is the one in which safetensors files are laid out: a later type
 * never needs less alignment than an earlier one.
 */
#define TENSOR_DTYPE_MAP(XX)                                                                       \
    XX(BOOL, "BOOL", 1, "|b1")                                                                     \
    XX(U8, "U8", 1, "|u1")                                                                         \
    XX(I8, "I8", 1, "|i1")                                                                         \
    XX(F8_E5M2, "F8_E5M2", 1, "")                                                                  \
    XX(F8_E4M3, "F8_E4M3", 1, "")                                                                  \
    XX(F8_E8M0, "F8_E8M0", 1, "")                                                                  \
    XX(I16, "I16", 2, "<i2")                                                                       \
    XX(U16, "U16", 2, "<u2")                                                                       \
    XX(F16, "F16", 2, "<f2")                                                                       \
    XX(BF16, "BF16", 2, "")                                                                        \
    XX(I32, "I32", 4, "<i4")                                                                       \
    XX(U32, "U32", 4, "<u4")                                                                       \
    XX(F32, "F32", 4, "<f4")                                                                       \
    XX(F64, "F64", 8, "<f8")                                                                       \
    XX(I64, "I64", 8, "<i8")                                                                       \
    XX(U64, "U64", 8, "<u8")

typedef enum tensor_dtype {
#define XX(name, text, bytes, npy) TENSOR_##name,
    TENSOR_DTYPE_MAP(XX)
#undef XX
        TENSOR_DTYPE_COUNT
} tensor_dtype;

typedef struct tensor_spec {
    tensor_dtype dtype;
    int rank;                       /* 0 = scalar (one element) */
    int64_t shape[TENSOR_MAX_RANK]; /* outermost first, row-major; entries past rank are 0 */
    uint64_t elems;                 /* product of the shape; 0 if a dimension is 0 */
    uint64_t bytes;                 /* elems * element size, at most INT64_MAX */
} tensor_spec;

/* "F8_E4M3" ...; "?" for a value outside the enum. */
const char *tensor_dtype_name(tensor_dtype dtype);

/* The .npy descr ("<f4"), NULL if .npy has no such type (bf16, the fp8 kinds). */
const char *tensor_dtype_npy_descr(tensor_dtype dtype);

/* Bytes an element; 0 for a value outside the enum. */
size_t tensor_dtype_bytes(tensor_dtype dtype);

/* True and *dtype set if `name` is one of the safetensors names above (exact case). */
bool tensor_dtype_from_name(const char *name, tensor_dtype *dtype);

/*
 * Fills *spec. `where` opens the error sentence (file and tensor, already quoted).
 * Refused: rank outside 0..TENSOR_MAX_RANK (IO_UNSUPPORTED), a negative dimension (IO_MALFORMED),
 * a byte size, taken over the dimensions that are not 0, above INT64_MAX (IO_TOO_LARGE). A zero
 * dimension does not excuse an overflow of the others: strides are computed from them too.
 */
io_status tensor_spec_init(tensor_spec *spec, tensor_dtype dtype, int rank, const int64_t *shape,
                           const char *where, io_error *error);

/* "[2, 3]" into `text`; always NUL-terminated. 168 bytes hold any shape. */
void tensor_shape_format(const tensor_spec *spec, char *text, size_t text_bytes);

#endif
