/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that every entry point makes on a tensor in the caller's memory. */
#ifndef HALFBYTE_API_TENSOR_H
#define HALFBYTE_API_TENSOR_H

#include <stdbool.h>

#include "api/error.h"

/* Limits of the public header. */
#define TENSOR_MOST_EXTENT INT64_C(0x7fffffff)
#define TENSOR_MOST_GROUPS (INT64_C(1) << 20)

/*
 * A tensor [groups, rows, columns]; element (g, row, column) stands at g * group_stride + row *
 * row_stride + column.  All but `bits` and the alignments is the caller's and may hold anything
 * until tensor_check has passed; extents must be in range before.
 */
typedef struct tensor {
    const char *name;            /* of the pointer in messages: "arguments.src" */
    const char *row_stride_name; /* "ld", "stride_k" */
    const void *data;
    int bits; /* of an element: 4, 8, 16, 32 */
    int64_t groups, rows, columns;
    int64_t row_stride, group_stride;
    int64_t stride_multiple; /* both strides must be multiples of it */
    size_t alignment;        /* of data, in bytes */
} tensor;

/*
 * Refuses NULL, misalignment, a row stride below columns, a negative group stride, strides that are
 * not multiples, and sizes beyond the address space.  Nothing is looked at if the tensor is empty,
 * nor a stride along an extent of 1.  Then strides that are not used are set to 0.
 *
 * written: elements must moreover be distinct, so groups must not overlap.
 */
halfbyte_status tensor_check(tensor *checked, bool written);

/*
 * Refuses an output that overlaps another tensor; both have passed tensor_check.  They may
 * interleave if their rows are equally far apart; else what counts is the memory from the first to
 * the last element.
 */
halfbyte_status tensor_check_apart(const tensor *output, const tensor *other);

/* Bytes from the first element to the last; 0 if there is none.  After tensor_check. */
size_t tensor_bytes(const tensor *checked);

/* Refuses a device that does not work on host memory, and a stream.  device may be NULL. */
halfbyte_status cpu_check(const halfbyte_device *device, halfbyte_stream stream);

#endif
