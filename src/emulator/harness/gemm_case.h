/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product with all its tensors in one piece of memory, for tests: "arena" means that piece.
 *
 * Every tensor stands in the arena with guard bytes around it, rows have gaps, and outputs are
 * poisoned.  So one comparison of a whole arena with that of a reference says all: D has the right
 * bits, nothing else was written, inputs are as they were.  An arena may be copied to a GPU:
 * gemm_case_moved() gives the operands for the copy.
 */
#ifndef HALFBYTE_EMULATOR_HARNESS_GEMM_CASE_H
#define HALFBYTE_EMULATOR_HARNESS_GEMM_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halfbyte.h"

/* What one tensor takes of the arena. */
typedef struct gemm_case_part {
    const char *name; /* "a", "b_scale", ... */
    size_t offset, bytes;
    bool is_output;
} gemm_case_part;

enum { GEMM_CASE_PARTS = 16 };

/*
 * What the problem leaves open: bits of the number that a case is made from.  The whole number is
 * the seed of strides, gaps, group sizes, scales and values.
 */
enum {
    GEMM_CASE_FORM = 3, /* RANGES: 0 starts and ends, 1 starts and counts, 2 ends, 3 counts; MASKED:
                           counts if odd */
    GEMM_CASE_D_PAIRS = 1 << 2,         /* rows of D begin at pairs of elements */
    GEMM_CASE_D_WIDE = 1 << 3,          /* at multiples of 16 bytes */
    GEMM_CASE_FEWER_ROWS = 1 << 4,      /* m is below m_max */
    GEMM_CASE_NO_BETA = 1 << 5,         /* C is there, beta is 0 */
    GEMM_CASE_C_IS_D = 1 << 6,          /* if their types agree */
    GEMM_CASE_WILD = 1 << 7,            /* group sizes and labels that must be clamped */
    GEMM_CASE_ALPHA_DEVICE = 1 << 8,    /* ALPHA_HOST becomes ALPHA_DEVICE */
    GEMM_CASE_OVERLAP = 1 << 9,         /* WEIGHTS_CONSTANT, LAUNCH_DEPENDENTS */
    GEMM_CASE_NO_MINUS8 = 1 << 11,      /* int4 weights are -7 .. 7 */
    GEMM_CASE_LOAD = 3 << 13,           /* how rows fall to groups, below */
    GEMM_CASE_LOAD_ONE = 1 << 13,       /* all to one of them */
    GEMM_CASE_LOAD_EACH = 2 << 13,      /* one to each */
    GEMM_CASE_LOAD_ZIPF = 3 << 13,      /* each row by itself, to group g with weight 1 / (g + 1) */
    GEMM_CASE_SCALES_BY_FOUR = 1 << 15, /* of B, or by word, by their layout (gemm_params.h) */
    GEMM_CASE_SEED = 1 << 16            /* the first number that none of the bits reaches */
};

typedef struct gemm_case {
    halfbyte_problem problem;
    halfbyte_operands operands;    /* pointers into the arena */
    halfbyte_packed_header header; /* PACKED: operands.b_header points here, not into the arena */
    unsigned char *arena;          /* owned; 256-byte aligned */
    unsigned char *initial;        /* owned; the arena as it was made */
    size_t arena_bytes;
    int parts;
    gemm_case_part part[GEMM_CASE_PARTS];
} gemm_case;

/*
 * Fills memory for `problem` (as halfbyte_plan_create() takes it), as `draw` says: GEMM_CASE_*
 * bits. False: memory is out, or the library refuses the weights.
 */
bool gemm_case_make(gemm_case *made, const halfbyte_problem *problem, uint64_t draw);
void gemm_case_free(gemm_case *made);

/* The operands with every pointer moved by the distance from the arena to `to`. */
halfbyte_operands gemm_case_moved(const gemm_case *from, const void *to);

/* The arena as it was made. */
void gemm_case_restore(gemm_case *made);

/* May a kernel touch the part?  Not C where beta is 0. */
bool gemm_case_reads(const gemm_case *made, const gemm_case_part *part);

/* Runs it on the CPU model into a copy of the arena, which the caller frees; NULL: it failed, and
 * halfbyte_last_error() says why. */
unsigned char *gemm_case_wanted(const gemm_case *from);

#endif
