/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks run from single fields to combinations, so that a combination rule may rely on every
 * field being in its range.
 */
#include "api/problem_check.h"

#include <stdbool.h>
#include <stdio.h>

#include "api/enum_names.h"
#include "api/error.h"
#include "model/gemm_blocks.h"

enum {
    PROBLEM_MOST_GROUPS = 1 << 20,
    PROBLEM_MOST_ALIGNMENT = 1024,
    SM90_OPERAND_ALIGNMENT = 16, /* of a and b, for TMA */
    PACKED_ALIGNMENT = 16,
    W4A8_SM90_K_MULTIPLE = 32,
    W4A8_SM90_N_MULTIPLE = 8,
    OFFSET_MULTIPLE = 32,
    INTERLEAVE = 4
};

/* One bit a type, for sets of accepted ones. */
#define TYPE_BIT(type) (1u << HALFBYTE_TYPE_##type)
#define FLOAT_TYPES (TYPE_BIT(F32) | TYPE_BIT(BF16) | TYPE_BIT(F16))

static bool type_in(halfbyte_type type, unsigned int set)
{
    return (unsigned int)type <= HALFBYTE_TYPE_INT4 && (set >> (unsigned int)type & 1u) != 0;
}

/* Writes the names of a set of types, "f32, bf16, f16". */
static const char *type_set_text(unsigned int set, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (int type = HALFBYTE_TYPE_NONE; type <= HALFBYTE_TYPE_INT4; type++) {
        if (type_in((halfbyte_type)type, set) && length < bytes) {
            length +=
                (size_t)snprintf(text + length, bytes - length, "%s%s", length == 0 ? "" : ", ",
                                 halfbyte_type_name((halfbyte_type)type));
        }
    }
    return text;
}

static halfbyte_status type_check(const char *field, halfbyte_type type, unsigned int set)
{
    char accepted[80];
    CHECK_ARGUMENT(type_in(type, set), "problem.%s = %s (%d): accepted: %s", field,
                   halfbyte_type_name(type), (int)type,
                   type_set_text(set, accepted, sizeof accepted));
    return HALFBYTE_SUCCESS;
}

static halfbyte_status range_check(const char *field, int64_t value, int64_t low, int64_t high)
{
    CHECK_ARGUMENT(value >= low && value <= high, "problem.%s = %lld: must be in [%lld, %lld]",
                   field, (long long)value, (long long)low, (long long)high);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status alignment_check(const char *field, int32_t value)
{
    CHECK_ARGUMENT(value >= 0 && value <= PROBLEM_MOST_ALIGNMENT && (value & (value - 1)) == 0,
                   "problem.%s = %d: must be 0 or a power of two up to %d", field, (int)value,
                   PROBLEM_MOST_ALIGNMENT);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status enums_check(const halfbyte_problem *p)
{
    CHECK_ARGUMENT(p->family == HALFBYTE_FAMILY_FP8 || p->family == HALFBYTE_FAMILY_W4A8,
                   "problem.family = %d: must be set; accepted: fp8 (1), w4a8 (2)", (int)p->family);
    CHECK_ARGUMENT((unsigned int)p->grouping <= HALFBYTE_GROUPING_LABELS,
                   "problem.grouping = %d: accepted: dense (0), ranges (1), masked (2), labels (3)",
                   (int)p->grouping);
    CHECK_ARGUMENT((unsigned int)p->b_layout <= HALFBYTE_B_PACKED,
                   "problem.b_layout = %d: accepted: row_major (0), packed (1)", (int)p->b_layout);
    CHECK_ARGUMENT((unsigned int)p->alpha_mode <= HALFBYTE_ALPHA_DEVICE,
                   "problem.alpha_mode = %d: accepted: none (0), host (1), device (2)",
                   (int)p->alpha_mode);
    CHECK_ARGUMENT((unsigned int)p->index_type <= HALFBYTE_INDEX_INT64,
                   "problem.index_type = %d: accepted: int32 (0), int64 (1)", (int)p->index_type);
    const uint32_t known =
        HALFBYTE_ZERO_FILL_PADDING | HALFBYTE_WEIGHTS_CONSTANT | HALFBYTE_LAUNCH_DEPENDENTS;
    CHECK_ARGUMENT((p->flags & ~known) == 0, "problem.flags = 0x%x: accepted bits: 0x%x",
                   (unsigned int)p->flags, (unsigned int)known);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status types_check(const halfbyte_problem *p)
{
    const unsigned int none = TYPE_BIT(NONE);
    CHECK_STATUS(type_check("a_type", p->a_type, none | TYPE_BIT(E4M3)));
    CHECK_STATUS(
        type_check("b_type", p->b_type,
                   none | (p->family == HALFBYTE_FAMILY_FP8 ? TYPE_BIT(E4M3) : TYPE_BIT(INT4))));
    CHECK(p->d_type != HALFBYTE_TYPE_E4M3, HALFBYTE_ERR_UNSUPPORTED,
          "problem.d_type = e4m3: not served by this version; accepted: f32, bf16, f16");
    CHECK_ARGUMENT(p->d_type != HALFBYTE_TYPE_NONE,
                   "problem.d_type = none: must be set; accepted: f32, bf16, f16");
    CHECK_STATUS(type_check("d_type", p->d_type, FLOAT_TYPES));
    CHECK_STATUS(type_check("channel_scale_type", p->channel_scale_type, none | TYPE_BIT(F32)));
    CHECK_STATUS(type_check("c_type", p->c_type, none | FLOAT_TYPES));
    return type_check("bias_type", p->bias_type, none | FLOAT_TYPES);
}

static halfbyte_status numbers_check(const halfbyte_problem *p)
{
    CHECK_STATUS(range_check("m_max", p->m_max, 0, INT32_MAX));
    CHECK_STATUS(range_check("n", p->n, 0, INT32_MAX));
    CHECK_STATUS(range_check("k", p->k, 0, INT32_MAX));
    CHECK_STATUS(range_check("groups", p->groups, 0, PROBLEM_MOST_GROUPS));
    CHECK_STATUS(range_check("num_sms", p->num_sms, 0, INT32_MAX));
    CHECK_STATUS(alignment_check("a_alignment", p->a_alignment));
    CHECK_STATUS(alignment_check("b_alignment", p->b_alignment));
    return alignment_check("d_alignment", p->d_alignment);
}

/* Fields that the struct has for later versions: zero or refused. */
static halfbyte_status later_check(const halfbyte_problem *p)
{
    const struct {
        const char *field;
        int value;
    } later[] = {
        {"activation", (int)p->activation},
        {"activation_type", (int)p->activation_type},
        {"d_scale.mode", (int)p->d_scale.mode},
        {"d_scale.type", (int)p->d_scale.type},
        {"d_scale.layout", (int)p->d_scale.layout},
        {"b_zero_point_type", (int)p->b_zero_point_type},
        {"a_prescale_type", (int)p->a_prescale_type},
    };
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        CHECK(later[i].value == 0, HALFBYTE_ERR_UNSUPPORTED,
              "problem.%s = %d: not served by this version; accepted: 0", later[i].field,
              later[i].value);
    }
    return HALFBYTE_SUCCESS;
}

/* The table of families, scale modes and scale types in the public header: 0 = no such mode. */
static unsigned int scale_types(halfbyte_family family, bool is_a, halfbyte_scale_mode mode)
{
    const bool w4a8_b = family == HALFBYTE_FAMILY_W4A8 && !is_a;
    switch (mode) {
    case HALFBYTE_SCALE_NONE: return TYPE_BIT(NONE);
    case HALFBYTE_SCALE_TENSOR:
    case HALFBYTE_SCALE_OUTER: return w4a8_b ? FLOAT_TYPES : TYPE_BIT(F32);
    case HALFBYTE_SCALE_1X128: return w4a8_b ? 0 : TYPE_BIT(F32);
    case HALFBYTE_SCALE_128X128: return w4a8_b || is_a ? 0 : TYPE_BIT(F32);
    case HALFBYTE_SCALE_K_GROUP: return w4a8_b ? FLOAT_TYPES | TYPE_BIT(E4M3) : 0;
    }
    return 0;
}

static halfbyte_status scale_check(const halfbyte_problem *p, bool is_a)
{
    const char *field = is_a ? "a_scale" : "b_scale";
    const halfbyte_scale_spec *scale = is_a ? &p->a_scale : &p->b_scale;
    const unsigned int types = scale_types(p->family, is_a, scale->mode);
    if (types == 0) {
        const char *accepted = is_a ? "none, tensor, outer, 1x128"
                               : p->family == HALFBYTE_FAMILY_FP8
                                   ? "none, tensor, outer, 1x128, 128x128"
                                   : "none, tensor, outer, k_group";
        return status_fail(HALFBYTE_ERR_INVALID_ARGUMENT,
                           "problem.%s.mode = %s (%d): accepted for family %s: %s", field,
                           scale_mode_name(scale->mode), (int)scale->mode, family_name(p->family),
                           accepted);
    }
    char text[80];
    CHECK_ARGUMENT(scale->type == HALFBYTE_TYPE_NONE || type_in(scale->type, types),
                   "problem.%s.type = %s (%d): accepted for family %s, mode %s: %s", field,
                   halfbyte_type_name(scale->type), (int)scale->type, family_name(p->family),
                   scale_mode_name(scale->mode), type_set_text(types, text, sizeof text));
    CHECK_ARGUMENT((unsigned int)scale->layout <= HALFBYTE_SCALE_INTERLEAVED4,
                   "problem.%s.layout = %d: accepted: mn_major (0), k_major (1), interleaved4 (2)",
                   field, (int)scale->layout);
    const bool flat = scale->mode <= HALFBYTE_SCALE_OUTER;
    CHECK_ARGUMENT(!flat || scale->layout == HALFBYTE_SCALE_MN_MAJOR,
                   "problem.%s.layout = %s: accepted for mode %s, which has no two dimensions: "
                   "mn_major",
                   field, scale_layout_name(scale->layout), scale_mode_name(scale->mode));
    CHECK_ARGUMENT(scale->layout != HALFBYTE_SCALE_INTERLEAVED4 ||
                       scale->mode == HALFBYTE_SCALE_K_GROUP,
                   "problem.%s.layout = interleaved4: accepted for mode %s: mn_major, k_major",
                   field, scale_mode_name(scale->mode));
    return HALFBYTE_SUCCESS;
}

static halfbyte_status weight_groups_check(const halfbyte_problem *p)
{
    const int64_t size = p->weight_group_size;
    const int64_t offset = p->group_k_offset;
    if (p->b_scale.mode != HALFBYTE_SCALE_K_GROUP) {
        CHECK_ARGUMENT(size == 0,
                       "problem.weight_group_size = %lld: must be 0 unless "
                       "problem.b_scale.mode is k_group (it is %s)",
                       (long long)size, scale_mode_name(p->b_scale.mode));
        CHECK_ARGUMENT(offset == 0,
                       "problem.group_k_offset = %lld: must be 0 unless "
                       "problem.b_scale.mode is k_group (it is %s)",
                       (long long)offset, scale_mode_name(p->b_scale.mode));
        return HALFBYTE_SUCCESS;
    }
    CHECK_ARGUMENT(size == 0 || size == 32 || size == 64 || size == 128,
                   "problem.weight_group_size = %lld: accepted: 32, 64, 128, or 0 = all of k",
                   (long long)size);
    CHECK_ARGUMENT(offset == 0 || (offset > 0 && offset < size && offset % OFFSET_MULTIPLE == 0),
                   "problem.group_k_offset = %lld: must be 0 or a multiple of %d below "
                   "problem.weight_group_size (%lld)",
                   (long long)offset, OFFSET_MULTIPLE, (long long)size);
    CHECK_ARGUMENT(offset == 0 || p->a_scale.mode != HALFBYTE_SCALE_1X128,
                   "problem.group_k_offset = %lld: must be 0 if problem.a_scale.mode is 1x128",
                   (long long)offset);
    const int64_t k_groups = problem_k_groups(p);
    CHECK_ARGUMENT(p->b_scale.layout != HALFBYTE_SCALE_INTERLEAVED4 || k_groups % INTERLEAVE == 0,
                   "problem.b_scale.layout = interleaved4: the number of k groups, %lld, must be a "
                   "multiple of %d; accepted here: mn_major, k_major",
                   (long long)k_groups, INTERLEAVE);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status combinations_check(const halfbyte_problem *p)
{
    CHECK_ARGUMENT(p->grouping != HALFBYTE_GROUPING_DENSE || p->groups <= 1,
                   "problem.groups = %lld: must be 0 or 1 if problem.grouping is dense",
                   (long long)p->groups);
    CHECK_ARGUMENT(p->b_layout != HALFBYTE_B_PACKED || p->family == HALFBYTE_FAMILY_W4A8,
                   "problem.b_layout = packed: accepted for family fp8: row_major");
    CHECK_STATUS(scale_check(p, true));
    CHECK_STATUS(scale_check(p, false));
    CHECK_STATUS(weight_groups_check(p));
    const int64_t blocks = gemm_blocks_of(p).count;
    return range_check("k_splits", p->k_splits, 0, blocks > 1 ? blocks : 1);
}

static halfbyte_status profile_check(const halfbyte_problem *p, halfbyte_profile profile)
{
    if (profile != HALFBYTE_PROFILE_SM90 || p->family != HALFBYTE_FAMILY_W4A8) {
        return HALFBYTE_SUCCESS;
    }
    CHECK(p->k % W4A8_SM90_K_MULTIPLE == 0, HALFBYTE_ERR_UNSUPPORTED,
          "problem.k = %lld: must be a multiple of %d (family w4a8, profile sm90)", (long long)p->k,
          W4A8_SM90_K_MULTIPLE);
    CHECK(p->n % W4A8_SM90_N_MULTIPLE == 0, HALFBYTE_ERR_UNSUPPORTED,
          "problem.n = %lld: must be a multiple of %d (family w4a8, profile sm90)", (long long)p->n,
          W4A8_SM90_N_MULTIPLE);
    return HALFBYTE_SUCCESS;
}

halfbyte_status problem_check(const halfbyte_problem *problem, halfbyte_profile profile)
{
    CHECK_STATUS(enums_check(problem));
    CHECK_STATUS(types_check(problem));
    CHECK_STATUS(numbers_check(problem));
    CHECK_STATUS(later_check(problem));
    CHECK_STATUS(combinations_check(problem));
    return profile_check(problem, profile);
}

int64_t problem_k_groups(const halfbyte_problem *problem)
{
    const int64_t size = problem->weight_group_size;
    if (problem->k == 0) {
        return 0;
    }
    return size == 0 ? 1 : (problem->k + problem->group_k_offset + size - 1) / size;
}

int64_t type_bytes(halfbyte_type type)
{
    const int bits = halfbyte_type_bits(type);
    return bits < 8 ? 1 : bits / 8;
}

static int32_t alignment_at_least(int32_t promised, int64_t minimum)
{
    return promised > minimum ? promised : (int32_t)minimum;
}

void problem_resolve(halfbyte_problem *problem, halfbyte_profile profile)
{
    halfbyte_problem *p = problem;
    const bool sm90 = profile == HALFBYTE_PROFILE_SM90;
    p->groups = p->groups == 0 ? 1 : p->groups;
    p->k_splits = p->k_splits == 0 ? 1 : p->k_splits;
    p->a_type = HALFBYTE_TYPE_E4M3;
    p->b_type = p->family == HALFBYTE_FAMILY_FP8 ? HALFBYTE_TYPE_E4M3 : HALFBYTE_TYPE_INT4;
    halfbyte_scale_spec *scales[] = {&p->a_scale, &p->b_scale};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        if (scales[i]->mode != HALFBYTE_SCALE_NONE && scales[i]->type == HALFBYTE_TYPE_NONE) {
            scales[i]->type = HALFBYTE_TYPE_F32;
        }
    }
    const bool packed = p->b_layout == HALFBYTE_B_PACKED;
    p->a_alignment = alignment_at_least(p->a_alignment, sm90 ? SM90_OPERAND_ALIGNMENT : 1);
    p->b_alignment = alignment_at_least(p->b_alignment, packed ? PACKED_ALIGNMENT
                                                        : sm90 ? SM90_OPERAND_ALIGNMENT
                                                               : 1);
    p->d_alignment = alignment_at_least(p->d_alignment, type_bytes(p->d_type));
}
