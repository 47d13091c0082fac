/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantisers on host memory; docs/numerics.md section 8 defines their bits.
 *
 * Arguments are validated and normalised by the caller: groups >= 1, scale_type set, epsilon > 0
 * with epsilon / 448 not zero, strides that keep every element inside its tensor.  Results do not
 * depend on the pool, which may be NULL (no threads but the caller), nor on the floating-point
 * environment of the caller, which is kept.  Nothing is allocated.
 */
#ifndef HALFBYTE_MODEL_QUANTIZE_H
#define HALFBYTE_MODEL_QUANTIZE_H

#include <stdint.h>

#include "halfbyte.h"
#include "model/parallel.h"

enum {
    QUANTIZE_BLOCK = 128, /* k (and, for weights to e4m3, rows) that one block scale covers */
};

void quantize_activations(const halfbyte_activation_quantization *arguments, parallel_pool *pool);

typedef enum quantize_fault_kind {
    QUANTIZE_NO_FAULT,
    QUANTIZE_NOT_FINITE,     /* a weight is NaN or infinite */
    QUANTIZE_SCALE_ZERO,     /* a scale rounds to zero although a weight is not zero */
    QUANTIZE_SCALE_INFINITE, /* a scale overflows scale_type */
} quantize_fault_kind;

/*
 * The first fault in the order of groups, then of rows (E4M3: of block rows).  Weights that are not
 * finite come before scales within a row or block row.
 */
typedef struct quantize_fault {
    quantize_fault_kind kind;
    int64_t group, row;
    int64_t column;  /* of the weight; for a scale the first column that it covers */
    float magnitude; /* for a scale: the largest magnitude that it covers */
} quantize_fault;

/* Writes nothing unless it returns QUANTIZE_NO_FAULT. */
quantize_fault quantize_weights(const halfbyte_weight_quantization *arguments, parallel_pool *pool);

/* out[g, row, column] = mul_rn(q, scale), f32. */
void dequantize_weights(const halfbyte_weight_quantization *arguments,
                        const halfbyte_matrix_out *out, parallel_pool *pool);

#endif
