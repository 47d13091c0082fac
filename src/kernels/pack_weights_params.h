/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of the kernels that pack int4 weights, as the host passes them by value.
 */
#ifndef HALFBYTE_KERNELS_PACK_WEIGHTS_PARAMS_H
#define HALFBYTE_KERNELS_PACK_WEIGHTS_PARAMS_H

#include "kernels/hopper/types.h"

/* Atoms of a panel that a block takes: each half of its warps PACK_WARP_ATOMS of them. */
#define PACK_THREADS 256
#define PACK_WARP_ATOMS 2
#define PACK_BLOCK_ATOMS 4

/*
 * In place a cluster keeps a panel in its shared memory, one atom a slot, PACK_MOST_SLOTS a block
 * at most; the rest is room to align.
 */
#define PACK_ATOM_BYTES 4096
#define PACK_MOST_CLUSTER 8
#define PACK_MOST_SLOTS 56
#define PACK_IN_PLACE_SMEM(slots) (1024 + (slots)*PACK_ATOM_BYTES)

/* docs/formats.md; the plain tensor is [groups, n, k] int4 in a checkpoint's layout. */
typedef struct pack_params {
    uint8_t *plain;
    uint8_t *packed;
    uint32_t *flag;    /* scan: raised to 1 by a -8.  May lie on the first word of plain, which then
                          does not count as weights */
    int64_t row_bytes; /* from one row of plain to the next */
    int64_t group_bytes;
    uint32_t n;
    uint32_t k;
    uint32_t k_offset;    /* a multiple of 32 below 128: position of k = 0 */
    uint32_t used_bytes;  /* of a row: all of its last unit is written */
    uint32_t flip;        /* XOR that makes the nibbles of a word two's complement */
    uint32_t panels;      /* of a group, 64 rows each */
    uint32_t atoms;       /* of a panel */
    uint32_t chunks;      /* of PACK_BLOCK_ATOMS atoms, of a panel; in place: blocks of a cluster */
    int32_t is_aligned;   /* rows begin at multiples of 8 bytes */
    int32_t holds_minus8; /* words in form F3, else SM7 */
    int32_t gate_up;      /* rows are interleaved; n a multiple of 16 */
    int32_t unpacks;      /* in place: the other way */
} pack_params;

#endif
