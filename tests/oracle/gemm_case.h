/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random problems for the tests of the whole library: a problem, operands in memory that is exactly
 * as large as the header demands (so that sanitizers see a read beyond it), and D inside guard
 * zones, poisoned.
 */
#ifndef HALFBYTE_TESTS_ORACLE_GEMM_CASE_H
#define HALFBYTE_TESTS_ORACLE_GEMM_CASE_H

#include "halfbyte.h"
#include "oracle/splitmix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum group_form {
    FORM_DENSE,
    FORM_STARTS_ENDS,
    FORM_STARTS_COUNTS,
    FORM_ENDS,
    FORM_COUNTS,
    FORM_MASKED_ALL,
    FORM_MASKED_COUNTS,
    FORM_LABELS,
    FORM_COUNT
};

/* What is fixed of a case; everything else is drawn. */
struct case_kind {
    halfbyte_family family;
    enum group_form form;
    halfbyte_scale_spec a_scale, b_scale;
    int64_t weight_group_size;
};

/* Kinds of one family: every scale mode, type, layout and group size with each other, at form. */
int case_kind_count(halfbyte_family family);
struct case_kind case_kind_at(halfbyte_family family, int index, enum group_form form);

struct case_options {
    bool finite;  /* no NaN or infinity anywhere, and no scale near the ends of the range */
    bool plain;   /* full-scale random data, scales near 1 and all different: what mutations need */
    bool aligned; /* what profile SM90 accepts */
    bool packed;  /* int4 weights are packed, always */
    bool raw;     /* never */
    bool no_k;    /* k is 0, whatever it says below */
    bool bare;    /* no terms but scales, one range of k */
    halfbyte_type d_type;    /* NONE = drawn */
    int64_t m, n, k, groups; /* 0 = drawn; at most CASE_MAX_GROUPS */
};

#define CASE_BLOCKS_OF_MEMORY 96
#define CASE_MAX_GROUPS 1000

struct gemm_case {
    struct case_kind kind;
    halfbyte_problem problem;
    halfbyte_operands operands;

    /* The operands as the oracle reads them: C where D may be written is a copy. */
    halfbyte_operands before;

    halfbyte_packed_header header;
    float alpha;
    const void *raw_b; /* int4 weights before they were packed; NULL if b is not packed */
    int64_t raw_ld, raw_group_stride;

    uint8_t *d_base; /* D with its guard zones */
    size_t d_bytes;
    size_t d_at;       /* byte offset of D[0] in it */
    uint8_t *d_before; /* what stood there before the run */

    void *memory[CASE_BLOCKS_OF_MEMORY];
    size_t memory_bytes[CASE_BLOCKS_OF_MEMORY];
    int memories;
};

void case_make(struct gemm_case *c, struct random *r, const struct case_kind *kind,
               const struct case_options *options);
void case_free(struct gemm_case *c);

/* Memory that lives as long as the case. Starts misaligned by `skew` bytes. */
void *case_memory(struct gemm_case *c, size_t bytes, size_t skew);

/* A device of these options; fails the test if it cannot be opened. */
halfbyte_device *case_device(halfbyte_profile profile, int threads, halfbyte_isa isa);

/* Whether this machine has the code path. */
bool case_has_isa(halfbyte_isa isa);

/* Plan, run, destroy. */
halfbyte_status case_run_status(const struct gemm_case *c, halfbyte_device *device);

/* The same, and fails the test with the library's own words unless it succeeds. */
void case_run(const struct gemm_case *c, halfbyte_device *device);

/* How many matrices A, C and D hold: MASKED groups, else 1. */
int64_t case_matrices(const halfbyte_problem *p);

/* Elements of D (and bytes around them) that were compared, how many agreed; owned: those that a
 * group owns, so that the oracle computed them. */
struct comparison {
    int64_t compared, equal, owned;
};

/* Compares the whole of D's memory with the oracle, guard zones, gaps and padding rows included. */
struct comparison case_compare(const struct gemm_case *c);

/* One line that says what the case is, for a failure. */
void case_print(const struct gemm_case *c);

/* ---- the parts of case_make ------------------------------------------------------------------ */

/* gemm_case.c: everything but the group sizes, after operands.m is known. */
void case_draw_problem(struct gemm_case *c, struct random *r, const struct case_options *options);
void case_make_operands(struct gemm_case *c, struct random *r, const struct case_options *options);

/* gemm_case_groups.c: a partition of the rows, in the form of the kind. */
void case_make_groups(struct gemm_case *c, struct random *r);

void case_fill_e4m3(struct random *r, uint8_t *data, int64_t count,
                    const struct case_options *options);
void case_fill_int4(struct random *r, uint8_t *data, int64_t bytes,
                    const struct case_options *options);

/* Values for scales (positive or not, by character) or for C and bias. */
void case_fill_values(struct random *r, void *data, halfbyte_type type, int64_t count, bool scales,
                      const struct case_options *options);

/* The memory image D had before the run. */
void case_poison(uint8_t *data, size_t bytes);

#endif /* HALFBYTE_TESTS_ORACLE_GEMM_CASE_H */
