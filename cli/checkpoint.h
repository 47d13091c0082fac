/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_CHECKPOINT_H
#define HALFBYTE_CLI_CHECKPOINT_H

/*
 * Which tensors of a checkpoint are a linear layer, and how it is quantised. X is the layer's name,
 * n its outputs, k its inputs.
 *
 *   plain           X.weight F32, BF16 or F16 [n, k]
 *   w4afp8          X.weight I8 [n, k/2], even k in the low nibble;
 *                   X.weight_scale_inv F32, BF16 or F16 [n, k/group]
 *   fp8-block       X.weight F8_E4M3 [n, k]; X.weight_scale_inv F32, BF16 or F16
 *                   [n/128, k/128], rounded up
 *   fp8-tensor      X.weight F8_E4M3 [n, k]; X.weight_scale, one element
 *   fp8-channel     X.weight F8_E4M3 [n, k]; X.weight_scale [n] or [n, 1]
 *   pack-quantized  X.weight_packed I32 [n, k/8], value + 8; X.weight_scale [n, k/group];
 *                   X.weight_shape [2] = n, k
 *
 * The quantised ones may have X.input_scale (one element), the static scale of the activations; in
 * expert layers it may be named w1, w2, w3 instead of gate_proj, down_proj, up_proj.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halfbyte.h"
#include "io/safetensors.h"

#define SCHEME_MAP(XX)                                                                             \
    XX(PLAIN, "plain")                                                                             \
    XX(W4AFP8, "w4afp8")                                                                           \
    XX(FP8_BLOCK, "fp8-block")                                                                     \
    XX(FP8_TENSOR, "fp8-tensor")                                                                   \
    XX(FP8_CHANNEL, "fp8-channel")                                                                 \
    XX(PACK_QUANTIZED, "pack-quantized")

typedef enum scheme_id {
#define XX(name, text) SCHEME_##name,
    SCHEME_MAP(XX)
#undef XX
        SCHEME_COUNT
} scheme_id;

const char *scheme_name(scheme_id scheme);

/* Tensors belong to the model. */
typedef struct layer {
    scheme_id scheme;
    int64_t n, k;
    int64_t group_size; /* int4 schemes: 32, 64, 128, or 0 = all of k; else 0 */
    const safetensors_tensor *weight;
    const safetensors_tensor *scale;       /* NULL for plain */
    const safetensors_tensor *input_scale; /* NULL if there is none */
} layer;

typedef struct fault {
    char *tensor;
    char *text; /* a sentence without the tensor's name and without a full stop */
} fault;

/* Zero-initialise; release with faults_free. */
typedef struct fault_list {
    fault *items;
    size_t count;
    size_t capacity;
    bool out_of_memory;
} fault_list;

void faults_add(fault_list *faults, const char *tensor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void faults_free(fault_list *faults);

/*
 * The layer whose weight is `weight`. True if it is one of a known scheme without a fault; false
 * with a fault added if it looks like one and is broken; false without a fault for other tensors.
 */
bool layer_recognize(const safetensors_model *model, const safetensors_tensor *weight,
                     layer *result, fault_list *faults);

/* The layer called `name`: a weight tensor's name or that without ".weight". NULL if none. */
const safetensors_tensor *layer_find_weight(const safetensors_model *model, const char *name);

/* Reads the layer's scales: not finite, negative, or not positive where they are divided by is a
 * fault. A failed read is *error and IO status. */
io_status layer_check_values(const safetensors_model *model, const layer *checked,
                             fault_list *faults, io_error *error);

/* The library's element type of a tensor; HALFBYTE_TYPE_NONE for integers and fp64. */
halfbyte_type tensor_element_type(tensor_dtype dtype);

/* True if `path` is a file that the model is read from: `given` (what was opened) or a shard. To
 * write there would destroy it. */
bool model_reads_file(const safetensors_model *model, const char *given, const char *path);

/* Bytes of all tensors of a layer. */
uint64_t layer_bytes(const layer *measured);

#endif
