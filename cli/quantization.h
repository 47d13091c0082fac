/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_QUANTIZATION_H
#define HALFBYTE_CLI_QUANTIZATION_H

/*
 * What `halfbyte quantize` does with each tensor, and the quantisation of one tensor, streamed in
 * panels of 128 rows: memory is bounded by a panel, not by the tensor or the file.
 */

#include <stdbool.h>

#include "checkpoint.h"
#include "error_stats.h"
#include "halfbyte.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"

enum { QUANTIZE_MAX_GLOBS = 64 };

typedef struct quantize_options {
    const char *input;
    const char *output;
    bool scheme_given;
    scheme_id scheme; /* W4AFP8 or FP8_BLOCK */
    bool group_given;
    int64_t group_size;       /* W4AFP8: 32, 64, 128, 0 = all of k */
    halfbyte_type scale_type; /* NONE = f32 */
    const char *includes[QUANTIZE_MAX_GLOBS];
    const char *excludes[QUANTIZE_MAX_GLOBS];
    int num_includes, num_excludes;
    int32_t threads;
} quantize_options;

/* One tensor of the input. */
typedef struct quantize_item {
    const safetensors_tensor *tensor;
    bool quantize;
    char reason[96];                  /* why it is kept; "" if it is quantised */
    bool notable;                     /* kept, though it is a 2-D weight of a linear layer */
    size_t weight_index, scale_index; /* in the writer */
} quantize_item;

/* Decides; fills all fields but the indices. */
void quantize_select(const quantize_options *options, const safetensors_model *model,
                     const safetensors_tensor *tensor, quantize_item *item);

/* Declares the item's tensors. */
io_status quantize_declare(const quantize_options *options, quantize_item *item,
                           safetensors_writer *writer, io_error *error);

/*
 * Reads, quantises and writes one tensor; its errors against the original go to *stats. Prints the
 * reason of a failure and returns the exit code.
 */
int quantize_stream(const quantize_options *options, const quantize_item *item,
                    const safetensors_model *model, safetensors_writer *writer,
                    halfbyte_device *device, error_stats *stats);

/* Copies a kept tensor byte for byte. */
int quantize_copy(const quantize_item *item, const safetensors_model *model,
                  safetensors_writer *writer);

#endif
