/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tensor.h"

#include <inttypes.h>

#include "api/device.h"
#include "api/enum_names.h"

static bool tensor_is_empty(const tensor *t)
{
    return t->groups == 0 || t->rows == 0 || t->columns == 0;
}

/* Elements from the first to the last; false if that many bytes cannot be. */
static bool tensor_extent(const tensor *t, int64_t *elements)
{
    int64_t groups, rows, bits;

    return !__builtin_mul_overflow(t->groups - 1, t->group_stride, &groups) &&
           !__builtin_mul_overflow(t->rows - 1, t->row_stride, &rows) &&
           !__builtin_add_overflow(groups, rows, elements) &&
           !__builtin_add_overflow(*elements, t->columns, elements) &&
           !__builtin_mul_overflow(*elements, (int64_t)t->bits, &bits) &&
           (uint64_t)bits / 8 + 1 <= UINTPTR_MAX - (uintptr_t)t->data;
}

/* Groups lie one after the other, or side by side within rows that are far enough apart. */
static bool groups_are_apart(const tensor *t)
{
    if (t->groups == 1) {
        return true;
    }
    int64_t all_groups;
    if (t->group_stride >= (t->rows - 1) * t->row_stride + t->columns) {
        return true;
    }
    return t->group_stride >= t->columns && t->rows > 1 &&
           !__builtin_mul_overflow(t->groups - 1, t->group_stride, &all_groups) &&
           t->row_stride - t->columns >= all_groups;
}

halfbyte_status tensor_check(tensor *checked, bool written)
{
    tensor *t = checked;

    if (tensor_is_empty(t)) {
        t->row_stride = t->group_stride = 0;
        return HALFBYTE_SUCCESS;
    }
    CHECK_ARGUMENT(t->data != NULL,
                   "%s = NULL: must point to a tensor of %" PRId64 " x %" PRId64 " x %" PRId64
                   " elements",
                   t->name, t->groups, t->rows, t->columns);
    CHECK((uintptr_t)t->data % t->alignment == 0, HALFBYTE_ERR_MISALIGNED,
          "%s = %p: must be aligned to %zu bytes", t->name, t->data, t->alignment);
    t->row_stride = t->rows > 1 ? t->row_stride : 0;
    t->group_stride = t->groups > 1 ? t->group_stride : 0;
    CHECK_ARGUMENT(t->rows == 1 || t->row_stride >= t->columns,
                   "%s.%s = %" PRId64 ": must be at least %" PRId64, t->name, t->row_stride_name,
                   t->row_stride, t->columns);
    CHECK(t->row_stride % t->stride_multiple == 0, HALFBYTE_ERR_MISALIGNED,
          "%s.%s = %" PRId64 ": must be a multiple of %" PRId64, t->name, t->row_stride_name,
          t->row_stride, t->stride_multiple);
    CHECK_ARGUMENT(t->group_stride >= 0, "%s.group_stride = %" PRId64 ": must be at least 0",
                   t->name, t->group_stride);
    CHECK(t->group_stride % t->stride_multiple == 0, HALFBYTE_ERR_MISALIGNED,
          "%s.group_stride = %" PRId64 ": must be a multiple of %" PRId64, t->name, t->group_stride,
          t->stride_multiple);
    int64_t extent;
    CHECK_ARGUMENT(tensor_extent(t, &extent),
                   "%s.%s = %" PRId64 ", group_stride = %" PRId64
                   ": the tensor would not fit into the address space",
                   t->name, t->row_stride_name, t->row_stride, t->group_stride);
    CHECK_ARGUMENT(!written || groups_are_apart(t),
                   "%s.group_stride = %" PRId64 ": groups would overlap; must be at least %" PRId64,
                   t->name, t->group_stride, (t->rows - 1) * t->row_stride + t->columns);
    return HALFBYTE_SUCCESS;
}

static size_t bytes_of(const tensor *t, int64_t elements)
{
    return ((size_t)elements * (size_t)t->bits + 7) / 8;
}

size_t tensor_bytes(const tensor *checked)
{
    int64_t extent;

    if (tensor_is_empty(checked) || !tensor_extent(checked, &extent)) {
        return 0;
    }
    return bytes_of(checked, extent);
}

/* Rows of both tensors repeat at the same distance and never meet within it. */
static bool rows_interleave(const tensor *a, const tensor *b)
{
    const size_t pitch = bytes_of(a, a->row_stride);

    if (pitch == 0 || pitch != bytes_of(b, b->row_stride) ||
        bytes_of(a, a->group_stride) % pitch != 0 || bytes_of(b, b->group_stride) % pitch != 0) {
        return false;
    }
    const uintptr_t from_a = (uintptr_t)a->data, from_b = (uintptr_t)b->data;
    const size_t ahead =
        from_b >= from_a ? (from_b - from_a) % pitch : (pitch - (from_a - from_b) % pitch) % pitch;
    return bytes_of(a, a->columns) <= ahead && ahead + bytes_of(b, b->columns) <= pitch;
}

halfbyte_status tensor_check_apart(const tensor *output, const tensor *other)
{
    const size_t output_bytes = tensor_bytes(output), other_bytes = tensor_bytes(other);
    const uintptr_t from = (uintptr_t)output->data, other_from = (uintptr_t)other->data;

    CHECK_ARGUMENT(output_bytes == 0 || other_bytes == 0 || from + output_bytes <= other_from ||
                       other_from + other_bytes <= from || rows_interleave(output, other),
                   "%s = %p: overlaps %s = %p; must not", output->name, output->data, other->name,
                   other->data);
    return HALFBYTE_SUCCESS;
}

halfbyte_status cpu_check(const halfbyte_device *device, halfbyte_stream stream)
{
    CHECK(device == NULL || device->executor == HALFBYTE_EXECUTOR_MODEL, HALFBYTE_ERR_UNSUPPORTED,
          "device with executor %s: accepted: model, or NULL", executor_name(device->executor));
    CHECK_ARGUMENT(stream == NULL, "stream = %p: must be NULL for work on the CPU", (void *)stream);
    return HALFBYTE_SUCCESS;
}
