/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a checkpoint: the list of faults, and the faults in the values of scales. */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"

/* ---- faults ---------------------------------------------------------------------------------- */

void faults_add(fault_list *faults, const char *tensor, const char *format, ...)
{
    if (faults->count == faults->capacity) {
        size_t capacity = faults->capacity == 0 ? 16 : faults->capacity * 2;
        fault *grown = realloc(faults->items, capacity * sizeof *grown);
        if (grown == NULL) {
            faults->out_of_memory = true;
            return;
        }
        faults->items = grown;
        faults->capacity = capacity;
    }
    fault *added = &faults->items[faults->count];
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&added->text, format, arguments);
    va_end(arguments);
    added->tensor = length >= 0 ? strdup(tensor) : NULL;
    if (added->tensor == NULL) {
        if (length >= 0)
            free(added->text);
        faults->out_of_memory = true;
        return;
    }
    ++faults->count;
}

void faults_free(fault_list *faults)
{
    for (size_t i = 0; i < faults->count; ++i) {
        free(faults->items[i].tensor);
        free(faults->items[i].text);
    }
    free(faults->items);
    memset(faults, 0, sizeof *faults);
}

/* ---- values ---------------------------------------------------------------------------------- */

enum { CHUNK_ELEMS = 65536 };

typedef struct value_counts {
    uint64_t not_finite, negative, zero;
    uint64_t first_fault; /* index of the first element that is a fault */
} value_counts;

static void count_values(const float *values, size_t count, uint64_t start, bool divided_by,
                         value_counts *counts)
{
    for (size_t i = 0; i < count; ++i) {
        bool bad = !isfinite(values[i]) || values[i] < 0 || (divided_by && values[i] == 0);
        if (bad && counts->not_finite + counts->negative + (divided_by ? counts->zero : 0) == 0)
            counts->first_fault = start + i;
        counts->not_finite += !isfinite(values[i]);
        counts->negative += isfinite(values[i]) && values[i] < 0;
        counts->zero += values[i] == 0;
    }
}

static io_status check_tensor(const safetensors_model *model, const safetensors_tensor *tensor,
                              bool divided_by, fault_list *faults, io_error *error)
{
    static float values[CHUNK_ELEMS];
    static unsigned char raw[CHUNK_ELEMS * sizeof(float)];
    value_counts counts = {0, 0, 0, 0};
    size_t size = tensor_dtype_bytes(tensor->spec.dtype);
    for (uint64_t start = 0; start < tensor->spec.elems; start += CHUNK_ELEMS) {
        uint64_t left = tensor->spec.elems - start;
        size_t count = left < CHUNK_ELEMS ? (size_t)left : CHUNK_ELEMS;
        io_status status =
            safetensors_model_read(model, tensor, start * size, raw, count * size, error);
        if (status != IO_OK)
            return status;
        if (halfbyte_convert(values, HALFBYTE_TYPE_F32, raw,
                             tensor_element_type(tensor->spec.dtype),
                             (int64_t)count) != HALFBYTE_SUCCESS)
            return io_error_set(error, IO_ARGUMENT, "%s", halfbyte_last_error());
        count_values(values, count, start, divided_by, &counts);
    }
    if (counts.not_finite > 0)
        faults_add(faults, tensor->name,
                   "%llu of %llu scales are not finite, the first at element %llu",
                   (unsigned long long)counts.not_finite, (unsigned long long)tensor->spec.elems,
                   (unsigned long long)counts.first_fault);
    else if (counts.negative > 0)
        faults_add(faults, tensor->name,
                   "%llu of %llu scales are negative, the first at element %llu",
                   (unsigned long long)counts.negative, (unsigned long long)tensor->spec.elems,
                   (unsigned long long)counts.first_fault);
    else if (divided_by && counts.zero > 0)
        faults_add(faults, tensor->name, "the scale is zero and activations are divided by it");
    return IO_OK;
}

io_status layer_check_values(const safetensors_model *model, const layer *checked,
                             fault_list *faults, io_error *error)
{
    io_status status = IO_OK;
    if (checked->scale != NULL)
        status = check_tensor(model, checked->scale, false, faults, error);
    if (status == IO_OK && checked->input_scale != NULL)
        status = check_tensor(model, checked->input_scale, true, faults, error);
    return status;
}
