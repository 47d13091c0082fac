/* SPDX-License-Identifier: Apache-2.0 */
/* The dot products measured on a device; the file is described in tests/golden/README.md. */
#ifndef HALFBYTE_TESTS_MODEL_GOLDEN_VECTORS_H
#define HALFBYTE_TESTS_MODEL_GOLDEN_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include "model/tensor_core.h"

enum {
    GOLDEN_MMA_SYNC_E4M3 = 16, /* another instruction with another arithmetic: not modelled */
    GOLDEN_MMA_SYNC_E5M2 = 17,
    GOLDEN_TYPES = 18,
};

struct golden_vector {
    uint32_t type; /* a tensor_core_type, or one of the above */
    uint32_t tag;
    uint8_t a[32]; /* 32 one-byte codes, or 16 little-endian two-byte codes */
    uint8_t b[32];
    uint32_t c;
    uint32_t d; /* what the device returned */
};

/* "wgmma e4m3", ...; NULL for a type that no record may have. */
const char *golden_type_name(uint32_t type);

/* All records of the file; prints and exits with status 2 if it is missing, torn or of no known
 * type. Free with free(). */
struct golden_vector *golden_load(const char *path, size_t *count);

/* Widens the operands of a wgmma record to one code an element. */
void golden_operands(const struct golden_vector *vector, uint16_t a[TENSOR_CORE_MAX_K],
                     uint16_t b[TENSOR_CORE_MAX_K]);

#endif
