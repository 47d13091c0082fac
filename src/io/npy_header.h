/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_NPY_HEADER_H
#define HALFBYTE_IO_NPY_HEADER_H

/* The dict in the header of a .npy file; not for users of the library. */

#include <stddef.h>

#include "io/io_error.h"
#include "io/tensor_spec.h"

/* Parses `text` [length], any bytes, into *spec. `label` is the path for messages. */
io_status npy_header_parse(const char *text, size_t length, const char *label, tensor_spec *spec,
                           io_error *error);

/* Longest file start that npy_header_format makes: 10 + 56 bytes, 21 a dimension, padding. */
#define NPY_HEADER_FORMAT_BYTES 256

/* A whole version 1.0 file start (magic, version, length, dict, padding) of a multiple of 64 bytes
 * into `text` [NPY_HEADER_FORMAT_BYTES]; returns its length. The dtype must have a descr. */
size_t npy_header_format(const tensor_spec *spec, char *text);

#endif
