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

typedef struct gemm_case {
    halfbyte_problem problem;
    halfbyte_operands operands;    /* pointers into the arena */
    halfbyte_packed_header header; /* PACKED: operands.b_header points here, not into the arena */
    unsigned char *arena;          /* owned; 256-byte aligned */
    size_t arena_bytes;
    int parts;
    gemm_case_part part[GEMM_CASE_PARTS];
} gemm_case;

/*
 * Fills memory for `problem` (as halfbyte_plan_create() takes it, m_max rows) by seed: strides,
 * gaps, group sizes, scales and values are drawn.  False: memory is out, or the problem has no
 * such tensors.
 */
bool gemm_case_make(gemm_case *made, const halfbyte_problem *problem, uint64_t seed);
void gemm_case_free(gemm_case *made);

/* The operands with every pointer moved by the distance from the arena to `to`. */
halfbyte_operands gemm_case_moved(const gemm_case *from, const void *to);

/* Poisons the outputs again. */
void gemm_case_poison(gemm_case *made);

/* Runs it on the CPU model into a copy of the arena, which the caller frees; NULL: it failed, and
 * halfbyte_last_error() says why. */
unsigned char *gemm_case_wanted(const gemm_case *from);

#endif
