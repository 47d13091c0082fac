/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_INSPECTION_H
#define HALFBYTE_CLI_INSPECTION_H

/* What `halfbyte inspect` found, and how it is printed. */

#include "checkpoint.h"

typedef struct inspect_options {
    const char *path;
    const char *pattern;
    int64_t limit;
    bool layers;
    bool headers_only;
} inspect_options;

/* Layers of one scheme. */
typedef struct tally {
    uint64_t layers, weights, bytes, with_input_scale;
    uint64_t groups[4]; /* by group size: 128, 64, 32, all of k */
    uint64_t scale_types[TENSOR_DTYPE_COUNT];
} tally;

typedef struct inspection {
    inspect_options options;
    safetensors_model *model;
    layer *layers;
    size_t num_layers;
    tally tallies[SCHEME_COUNT];
    fault_list faults;
} inspection;

/* One line a tensor (filtered, limited), a layer (if asked for), a fault; then a summary. */
int inspection_print_json(const inspection *work);
void inspection_print_text(const inspection *work);

#endif
