/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_QUANTIZE_REPORT_H
#define HALFBYTE_CLI_QUANTIZE_REPORT_H

/* One run of `halfbyte quantize`, and what it prints: text, or JSON lines. */

#include "quantization.h"

typedef struct quantize_run {
    quantize_options options;
    safetensors_model *model;
    safetensors_writer *writer;
    halfbyte_device *device;
    quantize_item *items;
    size_t count, num_quantized;
    uint64_t bytes_in;
    error_stats total;
    int name_width, shape_width;
} quantize_run;

void quantize_print_heading(const quantize_run *work);
int quantize_report_tensor(const quantize_run *work, const quantize_item *item,
                           const error_stats *stats);

/* Kept tensors and the summary. */
int quantize_report(const quantize_run *work, uint64_t bytes_out, double seconds);

#endif
