/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the quantisers: everything is checked here, and only then computed. */
#include <inttypes.h>

#include "api/device.h"
#include "api/enum_names.h"
#include "api/gpu_quantize.h"
#include "api/struct_copy.h"
#include "api/tensor.h"
#include "format/bits.h"
#include "model/quantize.h"

#define DEFAULT_EPSILON 1e-4f
#define TINY_EPSILON_BITS 224u /* epsilon / 448 is 2^-150 and rounds to zero, as all below */

static int64_t blocks_of(int64_t extent, int64_t block)
{
    return extent / block + (extent % block != 0);
}

static bool is_float_type(halfbyte_type type)
{
    return type == HALFBYTE_TYPE_F32 || type == HALFBYTE_TYPE_BF16 || type == HALFBYTE_TYPE_F16;
}

static halfbyte_status extent_check(const char *name, int64_t value, int64_t most)
{
    CHECK_ARGUMENT(value >= 0 && value <= most,
                   "arguments.%s = %" PRId64 ": must be in [0, %" PRId64 "]", name, value, most);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status source_type_check(halfbyte_type type)
{
    CHECK_ARGUMENT(is_float_type(type), "arguments.src_type = %s (%d): accepted: f32, bf16, f16",
                   halfbyte_type_name(type), (int)type);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status layout_check(halfbyte_scale_layout layout)
{
    CHECK_ARGUMENT(layout == HALFBYTE_SCALE_MN_MAJOR || layout == HALFBYTE_SCALE_K_MAJOR,
                   "arguments.layout = %s (%d): accepted: mn_major, k_major",
                   scale_layout_name(layout), (int)layout);
    return HALFBYTE_SUCCESS;
}

/* The threads of a device of the CPU model; others have none. */
static parallel_pool *pool_of(const halfbyte_device *device)
{
    return device != NULL ? device->pool : NULL;
}

static tensor matrix(const char *name, const void *data, int bits, int64_t ld, int64_t group_stride)
{
    const size_t alignment = bits < 16 ? 1 : (size_t)bits / 8;
    return (tensor){.name = name,
                    .row_stride_name = "ld",
                    .data = data,
                    .bits = bits,
                    .groups = 1,
                    .row_stride = ld,
                    .group_stride = group_stride,
                    .stride_multiple = 1,
                    .alignment = alignment};
}

/* A scale tensor of mn x kb as rows of whatever is contiguous. */
static tensor scale_matrix(const halfbyte_scale_out *scale, halfbyte_type type,
                           halfbyte_scale_layout layout, int64_t mn, int64_t kb)
{
    const bool k_major = layout == HALFBYTE_SCALE_K_MAJOR;
    tensor t = matrix("arguments.scale", scale->data, halfbyte_type_bits(type),
                      k_major ? scale->stride_mn : scale->stride_k, scale->group_stride);
    t.row_stride_name = k_major ? "stride_mn" : "stride_k";
    t.rows = k_major ? mn : kb;
    t.columns = k_major ? kb : mn;
    return t;
}

/* The stride that the layout fixes at 1: else the scales would be written where the caller does not
 * look for them. */
static halfbyte_status unit_stride_check(const halfbyte_scale_out *scale,
                                         halfbyte_scale_layout layout, const tensor *t)
{
    const bool k_major = layout == HALFBYTE_SCALE_K_MAJOR;
    const int64_t unit = k_major ? scale->stride_k : scale->stride_mn;
    CHECK_ARGUMENT(t->columns <= 1 || unit == 1 || unit == 0,
                   "arguments.scale.%s = %" PRId64
                   ": must be 1 (or 0, which stands for 1) with layout %s",
                   k_major ? "stride_k" : "stride_mn", unit, scale_layout_name(layout));
    return HALFBYTE_SUCCESS;
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Bits, because the caller's environment may take subnormals for zeros. */
static halfbyte_status epsilon_resolve(halfbyte_activation_quantization *a)
{
    const uint32_t bits = bits_from_float(a->epsilon);

    if ((bits & ~FLOAT_BITS_SIGN) == 0) {
        a->epsilon = DEFAULT_EPSILON;
        return HALFBYTE_SUCCESS;
    }
    CHECK_ARGUMENT(bits < FLOAT_BITS_INF, "arguments.epsilon = %g: must be finite and at least 0",
                   (double)a->epsilon);
    CHECK_ARGUMENT(bits > TINY_EPSILON_BITS,
                   "arguments.epsilon = bits 0x%08" PRIx32
                   ": too small, epsilon / 448 must not round to 0",
                   bits);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status activation_fields_check(halfbyte_activation_quantization *a)
{
    const uint32_t known = HALFBYTE_QUANTIZE_STATIC | HALFBYTE_QUANTIZE_POWER_OF_TWO;

    CHECK_ARGUMENT(a->mode == HALFBYTE_SCALE_TENSOR || a->mode == HALFBYTE_SCALE_OUTER ||
                       a->mode == HALFBYTE_SCALE_1X128,
                   "arguments.mode = %s (%d): accepted: tensor, outer, 1x128",
                   scale_mode_name(a->mode), (int)a->mode);
    CHECK_STATUS(layout_check(a->layout));
    CHECK_STATUS(source_type_check(a->src_type));
    CHECK_ARGUMENT((a->flags & ~known) == 0, "arguments.flags = 0x%" PRIx32 ": accepted bits: 0x%x",
                   a->flags, known);
    CHECK_ARGUMENT((a->flags & HALFBYTE_QUANTIZE_STATIC) == 0 || a->mode == HALFBYTE_SCALE_TENSOR,
                   "arguments.flags = 0x%" PRIx32 ": STATIC needs mode tensor, not %s", a->flags,
                   scale_mode_name(a->mode));
    CHECK_ARGUMENT(a->flags != known,
                   "arguments.flags = 0x%" PRIx32
                   ": STATIC computes no scale that POWER_OF_TWO could round",
                   a->flags);
    CHECK_STATUS(extent_check("m", a->m, TENSOR_MOST_EXTENT));
    CHECK_STATUS(extent_check("k", a->k, TENSOR_MOST_EXTENT));
    return epsilon_resolve(a);
}

static tensor activation_scale(const halfbyte_activation_quantization *a)
{
    switch (a->mode) {
    case HALFBYTE_SCALE_OUTER:
        return scale_matrix(&a->scale, HALFBYTE_TYPE_F32, HALFBYTE_SCALE_MN_MAJOR, a->m, 1);
    case HALFBYTE_SCALE_1X128:
        return scale_matrix(&a->scale, HALFBYTE_TYPE_F32, a->layout, a->m,
                            blocks_of(a->k, QUANTIZE_BLOCK));
    default: /* TENSOR */
        return scale_matrix(&a->scale, HALFBYTE_TYPE_F32, HALFBYTE_SCALE_MN_MAJOR, 1, 1);
    }
}

halfbyte_status halfbyte_quantize_activations(halfbyte_device *device,
                                              const halfbyte_activation_quantization *arguments,
                                              halfbyte_stream stream)
{
    const bool on_gpu = device != NULL && device->executor == HALFBYTE_EXECUTOR_GPU;
    halfbyte_activation_quantization a;

    CHECK_STATUS(on_gpu ? HALFBYTE_SUCCESS : cpu_check(device, stream));
    CHECK_STATUS(struct_copy(&a, arguments, "arguments", halfbyte_activation_quantization));
    CHECK_STATUS(activation_fields_check(&a));

    const bool is_static = (a.flags & HALFBYTE_QUANTIZE_STATIC) != 0;
    tensor src = matrix("arguments.src", a.src.data, halfbyte_type_bits(a.src_type), a.src.ld, 0);
    tensor dst = matrix("arguments.dst", a.dst.data, 8, a.dst.ld, 0);
    tensor scale = activation_scale(&a);
    src.rows = dst.rows = a.m;
    src.columns = dst.columns = a.k;
    CHECK_STATUS(tensor_check(&src, false));
    CHECK_STATUS(tensor_check(&dst, true));
    CHECK_STATUS(tensor_check(&scale, !is_static));
    const bool blocks = a.mode == HALFBYTE_SCALE_1X128;
    CHECK_STATUS(unit_stride_check(&a.scale, blocks ? a.layout : HALFBYTE_SCALE_MN_MAJOR, &scale));
    CHECK_STATUS(tensor_check_apart(&dst, &src));
    CHECK_STATUS(tensor_check_apart(&dst, &scale));
    if (!is_static) {
        CHECK_STATUS(tensor_check_apart(&scale, &src));
    } else if (a.m == 0 || a.k == 0) {
        return HALFBYTE_SUCCESS;
    }
    if (on_gpu) {
        return gpu_quantize_activations(device->gpu, &a, stream);
    }
    quantize_activations(&a, pool_of(device));
    return HALFBYTE_SUCCESS;
}

/* ---- weights --------------------------------------------------------------------------------- */

static halfbyte_status weight_types_check(halfbyte_weight_quantization *a)
{
    CHECK_ARGUMENT(a->type == HALFBYTE_TYPE_INT4 || a->type == HALFBYTE_TYPE_E4M3,
                   "arguments.type = %s (%d): accepted: int4, e4m3", halfbyte_type_name(a->type),
                   (int)a->type);
    const bool int4 = a->type == HALFBYTE_TYPE_INT4;
    if (a->scale_type == HALFBYTE_TYPE_NONE) {
        a->scale_type = HALFBYTE_TYPE_F32;
    }
    CHECK_ARGUMENT(a->scale_type == HALFBYTE_TYPE_F32 || (int4 && is_float_type(a->scale_type)),
                   "arguments.scale_type = %s (%d): accepted for %s: %s",
                   halfbyte_type_name(a->scale_type), (int)a->scale_type,
                   halfbyte_type_name(a->type), int4 ? "f32, bf16, f16" : "f32");
    const int64_t size = a->weight_group_size;
    CHECK_ARGUMENT(size == 0 || (int4 && (size == 32 || size == 64 || size == 128)),
                   "arguments.weight_group_size = %" PRId64 ": accepted for %s: %s", size,
                   halfbyte_type_name(a->type), int4 ? "32, 64, 128, 0 (all of k)" : "0");
    return HALFBYTE_SUCCESS;
}

static halfbyte_status weight_fields_check(halfbyte_weight_quantization *a)
{
    CHECK_STATUS(weight_types_check(a));
    CHECK_STATUS(layout_check(a->layout));
    CHECK_ARGUMENT((a->flags & ~HALFBYTE_QUANTIZE_POWER_OF_TWO) == 0,
                   "arguments.flags = 0x%" PRIx32 ": accepted bits: 0x%x (POWER_OF_TWO)", a->flags,
                   HALFBYTE_QUANTIZE_POWER_OF_TWO);
    CHECK_STATUS(extent_check("n", a->n, TENSOR_MOST_EXTENT));
    CHECK_STATUS(extent_check("k", a->k, TENSOR_MOST_EXTENT));
    CHECK_STATUS(extent_check("groups", a->groups, TENSOR_MOST_GROUPS));
    a->groups = a->groups == 0 ? 1 : a->groups;
    return HALFBYTE_SUCCESS;
}

/* dst and the scales: quantising writes them, dequantising reads them.  Resolves their strides. */
static halfbyte_status quantized_check(halfbyte_weight_quantization *a, bool written, tensor *dst,
                                       tensor *scale)
{
    const bool int4 = a->type == HALFBYTE_TYPE_INT4;
    const int64_t group_size = a->weight_group_size != 0 ? a->weight_group_size
                               : a->k != 0               ? a->k
                                                         : 1;

    *dst = matrix("arguments.dst", a->dst.data, int4 ? 4 : 8, a->dst.ld, a->dst.group_stride);
    dst->groups = a->groups;
    dst->rows = a->n;
    dst->columns = a->k;
    dst->stride_multiple = int4 ? 2 : 1;
    CHECK_STATUS(tensor_check(dst, written));
    a->dst.ld = dst->row_stride;
    a->dst.group_stride = dst->group_stride;

    *scale = scale_matrix(&a->scale, a->scale_type, a->layout,
                          int4 ? a->n : blocks_of(a->n, QUANTIZE_BLOCK),
                          blocks_of(a->k, int4 ? group_size : QUANTIZE_BLOCK));
    scale->groups = a->groups;
    CHECK_STATUS(tensor_check(scale, written));
    CHECK_STATUS(unit_stride_check(&a->scale, a->layout, scale));
    a->scale.stride_mn = a->scale.stride_k = scale->row_stride; /* only one of them is read */
    a->scale.group_stride = scale->group_stride;
    return written ? tensor_check_apart(dst, scale) : HALFBYTE_SUCCESS;
}

/* One sentence for what the quantiser found in the weights. */
static halfbyte_status fault_report(const halfbyte_weight_quantization *a,
                                    const quantize_fault *fault)
{
    const int64_t width = a->type == HALFBYTE_TYPE_E4M3 ? QUANTIZE_BLOCK
                          : a->weight_group_size != 0   ? a->weight_group_size
                                                        : a->k;
    const int64_t height = a->type == HALFBYTE_TYPE_E4M3 ? QUANTIZE_BLOCK : 1;
    const int64_t row_end = fault->row + height < a->n ? fault->row + height : a->n;
    const int64_t column_end = fault->column + width < a->k ? fault->column + width : a->k;

    CHECK_ARGUMENT(fault->kind != QUANTIZE_NOT_FINITE,
                   "arguments.src: group %" PRId64 ", row %" PRId64 ", column %" PRId64
                   " is %g: weights must be finite",
                   fault->group, fault->row, fault->column, (double)fault->magnitude);
    CHECK_ARGUMENT(
        fault->kind == QUANTIZE_NO_FAULT,
        "arguments.src: group %" PRId64 ", rows [%" PRId64 ", %" PRId64 "), columns [%" PRId64
        ", %" PRId64 "): the largest magnitude %g gives a scale that %s in %s",
        fault->group, fault->row, row_end, fault->column, column_end, (double)fault->magnitude,
        fault->kind == QUANTIZE_SCALE_ZERO ? "rounds to zero" : "overflows",
        halfbyte_type_name(a->scale_type));
    return HALFBYTE_SUCCESS;
}

halfbyte_status halfbyte_quantize_weights(halfbyte_device *device,
                                          const halfbyte_weight_quantization *arguments)
{
    halfbyte_weight_quantization a;
    tensor dst, scale;

    CHECK_STATUS(struct_copy(&a, arguments, "arguments", halfbyte_weight_quantization));
    CHECK_STATUS(weight_fields_check(&a));
    CHECK_STATUS(source_type_check(a.src_type));

    tensor src = matrix("arguments.src", a.src.data, halfbyte_type_bits(a.src_type), a.src.ld,
                        a.src.group_stride);
    src.groups = a.groups;
    src.rows = a.n;
    src.columns = a.k;
    CHECK_STATUS(tensor_check(&src, false));
    a.src.ld = src.row_stride;
    a.src.group_stride = src.group_stride;
    CHECK_STATUS(quantized_check(&a, true, &dst, &scale));
    CHECK_STATUS(tensor_check_apart(&dst, &src));
    CHECK_STATUS(tensor_check_apart(&scale, &src));

    const quantize_fault fault = quantize_weights(&a, pool_of(device));
    return fault_report(&a, &fault);
}

halfbyte_status halfbyte_dequantize_weights(halfbyte_device *device,
                                            const halfbyte_weight_quantization *arguments,
                                            const halfbyte_matrix_out *out)
{
    halfbyte_weight_quantization a;
    tensor dst, scale;

    CHECK_STATUS(struct_copy(&a, arguments, "arguments", halfbyte_weight_quantization));
    CHECK_STATUS(weight_fields_check(&a));
    CHECK_ARGUMENT(out != NULL, "out = NULL: must point to a halfbyte_matrix_out");
    CHECK_STATUS(quantized_check(&a, false, &dst, &scale));

    tensor to = matrix("out", out->data, 32, out->ld, out->group_stride);
    to.groups = a.groups;
    to.rows = a.n;
    to.columns = a.k;
    CHECK_STATUS(tensor_check(&to, true));
    CHECK_STATUS(tensor_check_apart(&to, &dst));
    CHECK_STATUS(tensor_check_apart(&to, &scale));

    const halfbyte_matrix_out resolved = {out->data, to.row_stride, to.group_stride};
    dequantize_weights(&a, &resolved, pool_of(device));
    return HALFBYTE_SUCCESS;
}
