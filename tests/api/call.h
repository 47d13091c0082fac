/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete, valid call sequence in one struct, and edits that spoil it.
 *
 * Everything that a caller hands to the library lies in the struct, so one row of a table can
 * change any argument or field by its offset, and what the library must not touch is compared.
 */
#ifndef HALFBYTE_TESTS_API_CALL_H
#define HALFBYTE_TESTS_API_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halfbyte.h"

enum {
    CALL_M = 24,
    CALL_N = 32,
    CALL_GROUPS = 4,
    CALL_MOST_EDITS = 5,
    CALL_D_BYTES = CALL_GROUPS * CALL_M * CALL_N * 4,
    CALL_POISON = 0xa5
};

/* Valid calls to start from; together they use every operand. */
typedef enum call_base {
    BASE_FP8,  /* dense, A 1x128 mn, B 128x128 k, alpha of the host, C, bias */
    BASE_W4A8, /* ranges by starts and ends, A outer, B k_group 128, alpha of the device, C, bias */
    BASE_MASKED, /* fp8, int64 counts, A 1x128 k, B 1x128 mn */
    BASE_LABELS, /* w4a8, tensor scales, one a group */
    BASE_PACKED, /* w4a8 packed, ranges by counts, k_group 64 interleaved, group_k_offset 32 */
    CALL_BASES
} call_base;

typedef struct call {
    halfbyte_device_options options;
    halfbyte_problem problem;
    halfbyte_operands operands;
    halfbyte_packed_header header;
    int32_t starts[CALL_GROUPS];
    int32_t ends[CALL_GROUPS];
    int32_t counts[CALL_GROUPS];
    int64_t counts64[CALL_GROUPS];
    int32_t labels[CALL_M];
    float alpha;
    void *workspace;
    size_t workspace_bytes;
    halfbyte_stream stream;
    int32_t null_result; /* 1: NULL in place of where device or plan is stored */
    int32_t null_struct; /* 1: NULL in place of problem or operands */
    int32_t null_handle; /* 1: NULL in place of the device or plan that is used */
} call;

typedef enum call_step { STEP_OPEN, STEP_PLAN, STEP_RUN, STEP_CHECK_GROUPS } call_step;

/* One change of a call; size 0 = none. */
typedef struct call_edit {
    size_t offset;
    size_t size;
    enum { EDIT_SET, EDIT_ADD, EDIT_COPY } kind;
    int64_t value; /* to set or add; COPY: offset of the field to copy from */
} call_edit;

#define CALL_FIELD(field) offsetof(call, field), sizeof(((call *)0)->field)
#define SET(field, number)                                                                         \
    {                                                                                              \
        CALL_FIELD(field), EDIT_SET, (int64_t)(number)                                             \
    }
#define ADD(field, number)                                                                         \
    {                                                                                              \
        CALL_FIELD(field), EDIT_ADD, (int64_t)(number)                                             \
    }
#define COPY(field, from)                                                                          \
    {                                                                                              \
        CALL_FIELD(field), EDIT_COPY, (int64_t)offsetof(call, from)                                \
    }

/* A spoiled call: the last edit is the fault, those before it make a valid call of another kind. */
typedef struct call_row {
    call_step step; /* that must fail; those before it must succeed */
    call_base base;
    call_edit edits[CALL_MOST_EDITS];
    halfbyte_status status;
    const char *message; /* part of the sentence: argument and value */
} call_row;

/* Fills *made, which must stay where it is: it points into itself. */
void call_make(call *made, call_base base);
void call_apply(call *made, const call_edit *edit);

/* The last edit of a row. */
const call_edit *call_fault(const call_row *row);

/* Makes all steps up to `step`; D is poisoned before.  Asserts success. */
void call_succeed(const call *made, call_step step);
void call_run(const call *made); /* STEP_RUN */

/* What the last run wrote, and around it. */
const unsigned char *call_d(void);

/* Asserts that each field is the fault of some row, so that none is forgotten. */
typedef struct call_field {
    const char *name;
    size_t offset;
} call_field;
#define FIELD(field)                                                                               \
    {                                                                                              \
#field, offsetof(call, field)                                                              \
    }
void call_check_fields(const call_field *fields, size_t field_count, const call_row *rows,
                       size_t row_count);

/*
 * Asserts for each row: step, status and sentence; nothing was written, neither D nor the caller's
 * structs nor *device or *plan; the unspoiled call gives its bits afterwards.
 */
void call_check_rows(const call_row *rows, size_t count);

#endif
