/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_GEMM_H
#define HALFBYTE_CLI_GEMM_H

/* The parts of `halfbyte gemm`: options, loading of tensors, reference, report. */

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint.h"
#include "error_stats.h"
#include "gpu_driver.h"
#include "instance.h"

typedef struct gemm_options {
    const char *problem_text; /* random weights ... */
    const char *weights;      /* ... or those of a checkpoint */
    const char *tensor;       /* may hold {e}, the number of the group */
    const char *bias;
    const char *activations; /* .npy; NULL: random */
    const char *group_sizes;
    const char *reference;
    const char *reference_tensor; /* NULL: as tensor */
    const char *output;
    int64_t rows; /* of random activations; 0 = not given */
    int64_t seed;
    int64_t k_splits;
    int64_t repeat;
    bool raw_bits, packed;
    bool check; /* against the CPU model */
    bool a_scale_given, a_static;
    bool alpha_given, shape_given; /* shape: an option that --problem says already */
    halfbyte_scale_mode a_scale;
    halfbyte_grouping grouping;
    bool grouping_given;
    halfbyte_type d_type;
    double alpha;
    halfbyte_device_options device;
} gemm_options;

typedef struct gemm_work {
    gemm_options options;
    halfbyte_device *device;  /* that multiplies */
    halfbyte_device *host;    /* the CPU model, which quantises, packs and checks; may be device */
    gpu_driver *gpu;          /* NULL: device is the CPU model */
    safetensors_model *model; /* of --weights */
    layer first;              /* layer of group 0 */
    int64_t groups;
    int64_t *sizes; /* [groups] from --group-sizes, else NULL */
    int64_t sizes_total;
    int64_t rows, k;    /* of values */
    float *values;      /* [rows, k] activations before quantisation */
    float static_scale; /* 0: dynamic */
    instance made;
    char description[HALFBYTE_TEXT_BYTES];
    double seconds; /* best of the repeats */
    void *result;   /* [rows, n] in d_type: the owned rows */
    uint64_t checksum;
    uint64_t different; /* --check: outputs that are not the model's */
    bool has_errors;
    error_stats errors;
} gemm_work;

/* --group-sizes: text (one number a line, '#' comments) or .npy of integers. */
int gemm_read_sizes(gemm_work *work);

/* --activations, [rows, k] f32 or f16. */
int gemm_read_activations(gemm_work *work);

/* Opens --weights and recognises the layer of group 0. */
int gemm_open_weights(gemm_work *work);

/* Fills in the problem that weights, activations and options make. */
int gemm_build_problem(gemm_work *work, halfbyte_problem *problem);

/* Reads the weights, scales and biases of all groups into the instance. */
int gemm_load_weights(gemm_work *work);

/* The tensor `name` of `model` or a sentence with a near miss. */
int gemm_find_tensor(const safetensors_model *model, const char *path, const char *name,
                     const safetensors_tensor **tensor);

/* Compares the result with the product of the original weights and activations in fp64. */
int gemm_compare(gemm_work *work);

/* Opens the devices. */
int gemm_open(gemm_work *work);
void gemm_close(gemm_work *work);

/* Runs on the device and gathers the result; --check: the same on the CPU model. */
int gemm_multiply(gemm_work *work);

/* FNV-1a, 64 bits. */
uint64_t gemm_checksum(const void *data, uint64_t bytes);

int gemm_write_output(const gemm_work *work);
int gemm_report(const gemm_work *work);

#endif
