/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_INSTANCE_H
#define HALFBYTE_CLI_INSTANCE_H

/*
 * A problem with its tensors: buffers, strides and groups for every problem that halfbyte.h can
 * state. "Owned rows" are the rows of A that some group owns, counted over the groups in order;
 * activations come in and results go out as these, whatever the grouping.
 */

#include <stdbool.h>
#include <stdint.h>

#include "halfbyte.h"

/* Extents of a scale tensor of one group: outer (rows of its matrix) and along k. */
typedef struct scale_extent {
    int64_t mn, kb;
} scale_extent;

typedef struct instance {
    halfbyte_problem problem;
    halfbyte_operands operands;
    int64_t groups, m, n, k;
    int64_t a_rows; /* rows of the buffers of A and D over all groups */
    int64_t owned_rows;
    int64_t *sizes; /* [groups] rows of each group */
    int64_t *owned; /* [owned_rows] row in the buffers of A and D */
    int32_t *owner; /* [owned_rows] group */
    scale_extent a_extent, b_extent;
    uint8_t *a; /* e4m3 [a_rows, ld] */
    float *a_scale;
    uint8_t *b; /* ROW_MAJOR, whatever the problem's layout */
    void *b_scale;
    void *b_packed;
    uint64_t packed_bytes;
    float *channel_scale;
    void *bias, *c, *d;
    void *starts, *ends, *counts;
    int32_t *labels;
    halfbyte_packed_header header;
} instance;

typedef enum flavour {
    FLAVOUR_PLAIN,   /* finite, well scaled: what the fp64 bound is for */
    FLAVOUR_WIDE,    /* every finite code, scales of many sizes and both signs, zeros */
    FLAVOUR_SPECIAL, /* NaN codes; infinite and NaN scales */
    FLAVOUR_QUICK /* as PLAIN, but large tensors repeat themselves and no int4 is -8: for times */
} flavour;

/*
 * Allocates all tensors of `problem` and lays out its groups.
 *   sizes   [groups] rows of each group; NULL: even shares (MASKED: all m)
 *   gap     rows without an owner before each group (RANGES, LABELS); the problem's m_max must hold
 *           them
 * Prints what fails and returns the exit code; release with instance_free in every case.
 */
int instance_create(instance *made, const halfbyte_problem *problem, const int64_t *sizes,
                    int64_t gap);
void instance_free(instance *made);

/* Fills B with its scales, channel scales, bias and C. alpha and beta become 1.5 and 0.75. */
int instance_randomize_weights(instance *made, uint64_t seed, flavour kind);

/* Fills A and its scales with codes drawn directly. */
int instance_randomize_activations(instance *made, uint64_t seed, flavour kind);

/* Quantises values [owned_rows, k] as the problem's A scale says, into A and its scales.
 * static_scale: > 0 for a given TENSOR scale, else 0. */
int instance_set_activations(instance *made, halfbyte_device *device, const float *values,
                             float static_scale);

/* Makes the packed form of B if the problem wants it. After the weights are filled. */
int instance_pack(instance *made, halfbyte_device *device);

/* Position of scale (mn, kb) in a tensor of one group. */
int64_t scale_position(const halfbyte_scale_spec *spec, const scale_extent *extent, int64_t mn,
                       int64_t kb);

/* A tensor on the host: its address, and its bytes. */
typedef struct host_tensor {
    const void *data;
    uint64_t bytes;
} host_tensor;

enum { INSTANCE_TENSORS = 13 };

/* All tensors of the instance, those that its operands do not name among them. */
void instance_tensors(const instance *made, host_tensor list[INSTANCE_TENSORS]);

/* Plans, fills D with 0xff bytes, runs. `description` (HALFBYTE_TEXT_BYTES) and `seconds` of the
 * run itself may be NULL. */
int instance_run(instance *made, halfbyte_device *device, char *description, double *seconds);

/* The owned rows of D in order, [owned_rows, n] in d_type, into `rows`. */
void instance_gather(const instance *made, void *rows);

/* Bytes of that. */
uint64_t instance_result_bytes(const instance *made);

#endif
