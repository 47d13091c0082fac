/* SPDX-License-Identifier: Apache-2.0 */
#include "api/operands.h"

#include "api/enum_names.h"
#include "api/error.h"
#include "api/problem_check.h"
#include "api/tensor.h"
#include "format/bits.h"

enum { PACKED_VERSION = 1, PACKED_ATOM_BYTES = 4096, BLOCK = 128, INTERLEAVE = 4 };

static int64_t ceil_div(int64_t value, int64_t divisor)
{
    return value / divisor + (value % divisor != 0);
}

/* Matrices of a, c and d: MASKED has one a group, the others one for all. */
static int64_t row_matrices(const halfbyte_problem *p)
{
    return p->grouping == HALFBYTE_GROUPING_MASKED ? p->groups : 1;
}

/* Strides in elements whose bytes are a multiple of `alignment`: 1 where elements are as wide. */
static int64_t stride_multiple(int64_t alignment, int bits)
{
    const int64_t multiple = alignment * 8 / bits;
    return multiple > 1 ? multiple : 1;
}

/* Elements of different groups are distinct in inputs too: a forgotten group_stride is refused. */
static halfbyte_status input_check(tensor *input, const tensor *d)
{
    CHECK_STATUS(tensor_check(input, true));
    return tensor_check_apart(d, input);
}

static tensor d_tensor(const halfbyte_problem *p, const halfbyte_operands *o)
{
    const int bits = halfbyte_type_bits(p->d_type);
    return (tensor){.name = "operands.d",
                    .row_stride_name = "ld",
                    .data = o->d.data,
                    .bits = bits,
                    .groups = row_matrices(p),
                    .rows = o->m,
                    .columns = p->n,
                    .row_stride = o->d.ld,
                    .group_stride = o->d.group_stride,
                    .stride_multiple = stride_multiple(p->d_alignment, bits),
                    .alignment = (size_t)p->d_alignment};
}

/* C may be D itself, but then all of it: another stride or type would overlap elsewhere. */
static halfbyte_status c_check(const halfbyte_problem *p, const halfbyte_operands *o,
                               const tensor *d)
{
    /* By bits: where the host takes subnormals for zero, the model, which does not, would read a C
     * that nobody has looked at. */
    const bool beta_is_zero = bits_from_float(o->beta) << 1 == 0;
    if (p->c_type == HALFBYTE_TYPE_NONE || beta_is_zero) {
        return HALFBYTE_SUCCESS;
    }
    tensor c = {.name = "operands.c",
                .row_stride_name = "ld",
                .data = o->c.data,
                .bits = halfbyte_type_bits(p->c_type),
                .groups = d->groups,
                .rows = d->rows,
                .columns = d->columns,
                .row_stride = o->c.ld,
                .group_stride = o->c.group_stride,
                .stride_multiple = 1,
                .alignment = (size_t)type_bytes(p->c_type)};
    if (c.data != d->data) {
        return input_check(&c, d);
    }
    CHECK_STATUS(tensor_check(&c, true));
    CHECK_ARGUMENT(p->c_type == p->d_type,
                   "operands.c = %p: is operands.d too, but problem.c_type = %s and "
                   "problem.d_type = %s; accepted: the same type, or another tensor",
                   c.data, halfbyte_type_name(p->c_type), halfbyte_type_name(p->d_type));
    CHECK_ARGUMENT(c.row_stride == d->row_stride,
                   "operands.c.ld = %lld: must be operands.d.ld (%lld) where both are one tensor",
                   (long long)c.row_stride, (long long)d->row_stride);
    CHECK_ARGUMENT(c.group_stride == d->group_stride,
                   "operands.c.group_stride = %lld: must be operands.d.group_stride (%lld) where "
                   "both are one tensor",
                   (long long)c.group_stride, (long long)d->group_stride);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status a_check(const halfbyte_problem *p, const halfbyte_operands *o,
                               const tensor *d)
{
    const int bits = halfbyte_type_bits(p->a_type);
    tensor a = {.name = "operands.a",
                .row_stride_name = "ld",
                .data = o->a.data,
                .bits = bits,
                .groups = row_matrices(p),
                .rows = o->m,
                .columns = p->k,
                .row_stride = o->a.ld,
                .group_stride = o->a.group_stride,
                .stride_multiple = stride_multiple(p->a_alignment, bits),
                .alignment = (size_t)p->a_alignment};
    return input_check(&a, d);
}

static halfbyte_status header_number_check(const char *field, int64_t value, int64_t expected)
{
    CHECK_ARGUMENT(value == expected,
                   "operands.b_header.%s = %lld: the weights were packed for another problem; "
                   "accepted: %lld",
                   field, (long long)value, (long long)expected);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status b_header_check(const halfbyte_problem *p, const halfbyte_packed_header *h)
{
    CHECK_ARGUMENT(h != NULL,
                   "operands.b_header = NULL: problem.b_layout is packed, so it must point to the "
                   "header that halfbyte_pack_weights() filled");
    CHECK(h->version == PACKED_VERSION, HALFBYTE_ERR_UNSUPPORTED,
          "operands.b_header.version = %u: accepted: %d", (unsigned int)h->version, PACKED_VERSION);
    const uint32_t known = HALFBYTE_PACKED_HOLDS_MINUS8 | HALFBYTE_PACKED_GATE_UP_ROWS;
    CHECK_ARGUMENT((h->flags & ~known) == 0, "operands.b_header.flags = 0x%x: accepted bits: 0x%x",
                   (unsigned int)h->flags, (unsigned int)known);
    CHECK_ARGUMENT((h->flags & HALFBYTE_PACKED_GATE_UP_ROWS) == 0 ||
                       p->activation != HALFBYTE_ACTIVATION_NONE,
                   "operands.b_header.flags = 0x%x: gate and up rows are interleaved, which a "
                   "problem without activation does not undo; accepted: weights packed without "
                   "HALFBYTE_PACKED_GATE_UP_ROWS",
                   (unsigned int)h->flags);
    CHECK_STATUS(header_number_check("n", h->n, p->n));
    CHECK_STATUS(header_number_check("k", h->k, p->k));
    CHECK_STATUS(header_number_check("groups", h->groups, p->groups));
    CHECK_STATUS(header_number_check("group_k_offset", h->group_k_offset, p->group_k_offset));
    CHECK_STATUS(
        header_number_check("weight_group_size", h->weight_group_size, p->weight_group_size));
    CHECK_STATUS(header_number_check("reserved", h->reserved, 0));
    CHECK_ARGUMENT(
        h->scale_type == HALFBYTE_TYPE_NONE || p->b_scale.mode != HALFBYTE_SCALE_K_GROUP ||
            h->scale_type == p->b_scale.type,
        "operands.b_header.scale_type = %s (%d): the weights were packed for another "
        "problem; accepted: %s, none",
        halfbyte_type_name(h->scale_type), (int)h->scale_type, halfbyte_type_name(p->b_scale.type));
    return HALFBYTE_SUCCESS;
}

static halfbyte_status b_check(const halfbyte_problem *p, const halfbyte_operands *o,
                               const tensor *d)
{
    const int bits = halfbyte_type_bits(p->b_type);
    tensor b = {.name = "operands.b",
                .row_stride_name = "ld",
                .data = o->b.data,
                .bits = bits,
                .groups = p->groups,
                .rows = p->n,
                .columns = p->k,
                .row_stride = o->b.ld,
                .group_stride = o->b.group_stride,
                .stride_multiple = stride_multiple(p->b_alignment, bits),
                .alignment = (size_t)p->b_alignment};
    if (p->b_layout == HALFBYTE_B_PACKED) {
        CHECK_STATUS(b_header_check(p, o->b_header));
        b.bits = 8;
        b.rows = ceil_div(p->n, 64);
        b.columns = ceil_div(p->k + p->group_k_offset, BLOCK) * PACKED_ATOM_BYTES;
        b.row_stride = b.columns;
        b.group_stride = b.rows * b.columns;
        b.stride_multiple = 1;
    }
    return input_check(&b, d);
}

/*
 * A scale tensor of mn by kb as the matrix that its layout makes of it: rows at the stride that is
 * free, columns at the one that is 1.
 */
static halfbyte_status scale_check(const halfbyte_scale_in *scale, const halfbyte_scale_spec *spec,
                                   int64_t mn, int64_t kb, tensor *t, const tensor *d)
{
    const bool k_major = spec->layout == HALFBYTE_SCALE_K_MAJOR;
    const bool interleaved = spec->layout == HALFBYTE_SCALE_INTERLEAVED4;
    const int64_t unit = k_major ? scale->stride_k : scale->stride_mn;
    CHECK_ARGUMENT(interleaved || (k_major ? kb : mn) <= 1 || unit == 1 || unit == 0,
                   "%s.%s = %lld: must be 1 (or 0, which stands for 1) with mode %s, layout %s",
                   t->name, k_major ? "stride_k" : "stride_mn", (long long)unit,
                   scale_mode_name(spec->mode), scale_layout_name(spec->layout));
    t->row_stride_name = k_major ? "stride_mn" : "stride_k";
    t->data = scale->data;
    t->bits = halfbyte_type_bits(spec->type);
    t->rows = k_major ? mn : interleaved ? kb / INTERLEAVE : kb;
    t->columns = k_major ? kb : interleaved ? mn * INTERLEAVE : mn;
    t->row_stride = k_major ? scale->stride_mn : scale->stride_k;
    t->group_stride = scale->group_stride;
    t->stride_multiple = interleaved ? INTERLEAVE : 1;
    t->alignment = (size_t)type_bytes(spec->type);
    return input_check(t, d);
}

/* A vector a group; group_stride 0: one for all of them. */
static halfbyte_status vector_check(const char *name, const halfbyte_vector_in *vector,
                                    int64_t length, int64_t groups, halfbyte_type type,
                                    const tensor *d)
{
    const int64_t stride = vector->group_stride;
    CHECK_ARGUMENT(groups <= 1 || stride == 0 || stride >= length,
                   "%s.group_stride = %lld: must be 0 (all groups share it) or at least %lld", name,
                   (long long)stride, (long long)length);
    tensor t = {.name = name,
                .row_stride_name = "ld",
                .data = vector->data,
                .bits = halfbyte_type_bits(type),
                .groups = stride == 0 ? 1 : groups,
                .rows = 1,
                .columns = length,
                .group_stride = stride,
                .stride_multiple = 1,
                .alignment = (size_t)type_bytes(type)};
    return input_check(&t, d);
}

static halfbyte_status scales_check(const halfbyte_problem *p, const halfbyte_operands *o,
                                    bool is_a, const tensor *d)
{
    const halfbyte_scale_spec *spec = is_a ? &p->a_scale : &p->b_scale;
    const halfbyte_scale_in *scale = is_a ? &o->a_scale : &o->b_scale;
    const int64_t mn = is_a ? o->m : p->n;
    int64_t mn_extent = mn;
    int64_t k_extent = ceil_div(p->k, BLOCK);
    tensor t = {.name = is_a ? "operands.a_scale" : "operands.b_scale",
                .groups = is_a ? row_matrices(p) : p->groups};
    switch (spec->mode) {
    case HALFBYTE_SCALE_NONE: return HALFBYTE_SUCCESS;
    case HALFBYTE_SCALE_TENSOR: {
        const halfbyte_vector_in values = {scale->data, scale->group_stride};
        return vector_check(t.name, &values, 1, p->groups, spec->type, d);
    }
    case HALFBYTE_SCALE_OUTER: return scale_check(scale, spec, mn, 1, &t, d);
    case HALFBYTE_SCALE_1X128: break;
    case HALFBYTE_SCALE_128X128: mn_extent = ceil_div(mn, BLOCK); break;
    case HALFBYTE_SCALE_K_GROUP: k_extent = problem_k_groups(p); break;
    }
    /* Without k there is no block whose scale could be read. */
    return p->k == 0 ? HALFBYTE_SUCCESS : scale_check(scale, spec, mn_extent, k_extent, &t, d);
}

static halfbyte_status epilogue_check(const halfbyte_problem *p, const halfbyte_operands *o,
                                      const tensor *d)
{
    if (p->channel_scale_type != HALFBYTE_TYPE_NONE) {
        CHECK_STATUS(vector_check("operands.channel_scale", &o->channel_scale, p->n, p->groups,
                                  p->channel_scale_type, d));
    }
    if (p->bias_type != HALFBYTE_TYPE_NONE) {
        CHECK_STATUS(vector_check("operands.bias", &o->bias, p->n, p->groups, p->bias_type, d));
    }
    if (p->alpha_mode == HALFBYTE_ALPHA_DEVICE) {
        const halfbyte_vector_in alpha = {o->alpha_pointer, 0};
        return vector_check("operands.alpha_pointer", &alpha, 1, 1, HALFBYTE_TYPE_F32, d);
    }
    return HALFBYTE_SUCCESS;
}

halfbyte_status operands_m_check(const halfbyte_problem *problem, const halfbyte_operands *operands)
{
    CHECK_ARGUMENT(operands->m >= 0 && operands->m <= problem->m_max,
                   "operands.m = %lld: must be in [0, %lld] (problem.m_max)",
                   (long long)operands->m, (long long)problem->m_max);
    return HALFBYTE_SUCCESS;
}

halfbyte_status operands_check(const halfbyte_problem *problem, const halfbyte_operands *operands)
{
    tensor d = d_tensor(problem, operands);
    CHECK_STATUS(tensor_check(&d, true));
    CHECK_STATUS(c_check(problem, operands, &d));
    if (problem->k > 0) {
        CHECK_STATUS(a_check(problem, operands, &d));
        CHECK_STATUS(b_check(problem, operands, &d));
    }
    CHECK_STATUS(scales_check(problem, operands, true, &d));
    CHECK_STATUS(scales_check(problem, operands, false, &d));
    CHECK_STATUS(epilogue_check(problem, operands, &d));
    return groups_check(problem, operands, &d);
}
