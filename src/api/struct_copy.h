/* SPDX-License-Identifier: Apache-2.0 */
/* struct_size: how a library and a program of different versions share a struct. */
#ifndef HALFBYTE_API_STRUCT_COPY_H
#define HALFBYTE_API_STRUCT_COPY_H

#include "api/error.h"

/* A struct that claims to be larger than the known one by more than this was not initialised. */
enum { STRUCT_MOST_UNKNOWN_BYTES = 4096 };

/*
 * Copies the caller's struct `source`, whose first field is its struct_size, into `known`, the
 * same struct as this library knows it: known_bytes bytes, fields that the caller's version lacks
 * zeroed, struct_size set to known_bytes.  `name` is the argument's name in messages, `type` that
 * of the struct.
 *
 * first_bytes is the size that the struct had in the first release; nothing smaller exists.
 *
 * ERR_INVALID_ARGUMENT: source NULL, or a struct_size that no version has.
 * ERR_UNSUPPORTED: a field that this library does not know is not zero.
 */
halfbyte_status struct_copy_bytes(void *known, size_t known_bytes, size_t first_bytes,
                                  const void *source, const char *name, const char *type);

/*
 * struct_copy(&local, source, "problem", halfbyte_problem), for structs that have not grown since
 * the first release.  One that has gives struct_copy_bytes the offset of its first new field.
 */
#define struct_copy(known, source, name, type)                                                     \
    struct_copy_bytes((known), sizeof(type), sizeof(type), (source), (name), #type)

#endif
