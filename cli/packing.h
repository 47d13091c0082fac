/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_PACKING_H
#define HALFBYTE_CLI_PACKING_H

/*
 * What `halfbyte pack` does: the experts of an MoE layer as the packed weights of two grouped
 * products, gate and up side by side and down, and back. PREFIX is the name of all experts.
 *
 *   PREFIX.gate_up_proj.packed       U8 [experts, ceil(n/64), ceil(k/128), 4096], gate rows first
 *   PREFIX.gate_up_proj.scale        [experts, n, k groups], the type of the checkpoint
 *   PREFIX.gate_up_proj.input_scale  [experts, 2], gate and up, if there are any
 *   PREFIX.down_proj.*               the same; input_scale [experts]
 *
 * and for each packed tensor the metadata halfbyte.packed.NAME: its header, and what the way back
 * needs. Memory is bounded by some hundred rows.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint.h"
#include "halfbyte.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"

enum {
    PACK_MATRICES = 2, /* gate and up, down */
    PACK_MOST_PARTS = 2,
    PACK_CHUNK_ROWS = 512, /* a multiple of the 64 rows of a panel */
};

#define PACK_KEY "halfbyte.packed."

/* Where the static scales of activations were. */
typedef enum pack_inputs { PACK_INPUTS_NONE, PACK_INPUTS_OWN, PACK_INPUTS_W } pack_inputs;

/* One grouped product; experts * parts layers of rows x k. */
typedef struct pack_matrix {
    const char *projection;             /* "gate_up_proj" */
    const char *names[PACK_MOST_PARTS]; /* "gate_proj", "up_proj" */
    const char *w[PACK_MOST_PARTS];     /* "w1", "w3" */
    int parts;
    int64_t experts, rows, k;
    int64_t group_size; /* 0: all of k */
    scheme_id scheme;   /* W4AFP8 or PACK_QUANTIZED */
    tensor_dtype scale_dtype, input_dtype, shape_dtype;
    pack_inputs inputs;
    bool holds_minus8;
    layer *layers;                                          /* packing: [experts][parts], owned */
    const safetensors_tensor *packed, *scale, *input_scale; /* unpacking */
    size_t packed_index, scale_index, input_index;          /* packing: in the writer */
    size_t *indices; /* unpacking: [experts][parts][4] in the writer, owned */
} pack_matrix;

typedef struct pack_job {
    safetensors_model *model;
    safetensors_writer *writer;
    halfbyte_device *device;
    char *prefix;
    pack_matrix matrices[PACK_MATRICES];
    uint64_t bytes; /* of weights, for the progress bar */
} pack_job;

/* The projections, without anything of a file. */
void pack_matrices_init(pack_job *job);
void pack_matrices_free(pack_job *job);

int64_t pack_k_groups(const pack_matrix *matrix);

/* Bytes of a row of weights in the checkpoint. */
size_t pack_row_bytes(const pack_matrix *matrix);

/* The description of `rows` rows of one matrix in the checkpoint's layout. */
halfbyte_int4_desc pack_desc(const pack_matrix *matrix, int64_t rows);

/* PREFIX.projection.what; NULL if memory is short. The caller frees it. */
char *pack_name(const pack_job *job, const pack_matrix *matrix, const char *what);

/* The value of a matrix's metadata. */
enum { PACK_METADATA_BYTES = 320 };
void pack_metadata_format(const pack_matrix *matrix, char text[PACK_METADATA_BYTES]);

/*
 * Finds the layer (packing_find.c). prefix: what the user asked for, NULL = the only one. Looks at
 * every scale and weight; faults are printed, each by its tensor, and are CLI_CHECK_FAILED.
 */
int pack_find(pack_job *job, const char *prefix, const char *input);

/* Declares the output's tensors and metadata, and writes them (packing_write.c). */
io_status pack_declare(pack_job *job, io_error *error);
int pack_write(pack_job *job);

/* The way back (packing_back.c): reads the metadata, declares, writes. */
int unpack_find(pack_job *job, const char *input);
io_status unpack_declare(pack_job *job, io_error *error);
int unpack_write(pack_job *job);

#endif
