/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L /* posix_memalign */

#include "oracle/gemm_case.h"
#include "oracle/operand.h"

#include <stdlib.h>
#include <string.h>

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void *case_memory(struct gemm_case *c, size_t bytes, size_t skew)
{
    void *memory = NULL;
    if (c->memories == CASE_BLOCKS_OF_MEMORY ||
        posix_memalign(&memory, 256, bytes + skew + (bytes + skew == 0)) != 0)
        abort();
    c->memory_bytes[c->memories] = bytes + skew;
    c->memory[c->memories++] = memory;
    return (char *)memory + skew;
}

void case_free(struct gemm_case *c)
{
    for (int i = 0; i < c->memories; i++)
        free(c->memory[i]);
    c->memories = 0;
}

int64_t case_matrices(const halfbyte_problem *p)
{
    return p->grouping == HALFBYTE_GROUPING_MASKED ? oracle_groups(p) : 1;
}

/* ---- the cross of kinds ---------------------------------------------------------------------- */

#define MN HALFBYTE_SCALE_MN_MAJOR
#define KM HALFBYTE_SCALE_K_MAJOR
#define I4 HALFBYTE_SCALE_INTERLEAVED4
#define F32 HALFBYTE_TYPE_F32

static const halfbyte_scale_spec a_specs[5] = {{HALFBYTE_SCALE_NONE, HALFBYTE_TYPE_NONE, MN},
                                               {HALFBYTE_SCALE_TENSOR, F32, MN},
                                               {HALFBYTE_SCALE_OUTER, F32, MN},
                                               {HALFBYTE_SCALE_1X128, F32, MN},
                                               {HALFBYTE_SCALE_1X128, F32, KM}};

static const halfbyte_scale_spec fp8_b_specs[7] = {{HALFBYTE_SCALE_NONE, HALFBYTE_TYPE_NONE, MN},
                                                   {HALFBYTE_SCALE_TENSOR, F32, MN},
                                                   {HALFBYTE_SCALE_OUTER, HALFBYTE_TYPE_NONE, MN},
                                                   {HALFBYTE_SCALE_1X128, F32, MN},
                                                   {HALFBYTE_SCALE_1X128, F32, KM},
                                                   {HALFBYTE_SCALE_128X128, F32, MN},
                                                   {HALFBYTE_SCALE_128X128, F32, KM}};

static const halfbyte_type w4_types[4] = {F32, HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16,
                                          HALFBYTE_TYPE_E4M3};

#define W4_OUTER 7                     /* none, tensor and outer in three types */
#define W4_B_KINDS (W4_OUTER + 4 * 11) /* K_GROUP: 4 types x (3 sizes x 3 layouts + all k x 2) */

int case_kind_count(halfbyte_family family)
{
    return 5 * (family == HALFBYTE_FAMILY_FP8 ? 7 : W4_B_KINDS);
}

struct case_kind case_kind_at(halfbyte_family family, int index, enum group_form form)
{
    static const int64_t sizes[4] = {32, 64, 128, 0};
    static const halfbyte_scale_layout layouts[3] = {MN, KM, I4};
    struct case_kind kind = {
        family, form, a_specs[index % 5], {HALFBYTE_SCALE_NONE, HALFBYTE_TYPE_NONE, MN}, 0};
    int b = index / 5;
    if (family == HALFBYTE_FAMILY_FP8) {
        kind.b_scale = fp8_b_specs[b];
    } else if (b < W4_OUTER) {
        if (b > 0) {
            kind.b_scale.mode = b <= 3 ? HALFBYTE_SCALE_TENSOR : HALFBYTE_SCALE_OUTER;
            kind.b_scale.type = w4_types[(b - 1) % 3];
        }
    } else {
        int of_type = (b - W4_OUTER) % 11;
        kind.b_scale.mode = HALFBYTE_SCALE_K_GROUP;
        kind.b_scale.type = w4_types[(b - W4_OUTER) / 11];
        kind.b_scale.layout = of_type < 9 ? layouts[of_type % 3] : layouts[of_type - 9];
        kind.weight_group_size = sizes[of_type < 9 ? of_type / 3 : 3];
    }
    return kind;
}

/* ---- problem --------------------------------------------------------------------------------- */

static int64_t draw_extent(struct random *r, int64_t small, int64_t large)
{
    return random_percent(r, 75) ? random_between(r, 1, small) : random_between(r, 1, large);
}

static void draw_k(struct random *r, halfbyte_problem *p, const struct case_options *options)
{
    bool w4 = p->family == HALFBYTE_FAMILY_W4A8;
    int64_t size = p->weight_group_size;
    p->k = options->k ? options->k : draw_extent(r, 260, 640);
    if (!options->k && random_percent(r, 30))
        p->k = (p->k + 127) / 128 * 128;
    if (options->no_k)
        p->k = 0;
    if (size > 32 && p->a_scale.mode != HALFBYTE_SCALE_1X128)
        p->group_k_offset = 32 * random_below(r, size / 32);
    if (options->aligned && w4)
        p->k = (p->k + 31) / 32 * 32;
    if (p->b_scale.layout == I4) {
        /* A multiple of four groups, the last of them short if that is allowed. */
        int64_t groups = (p->k + p->group_k_offset + size - 1) / size;
        int64_t lacking = (4 - groups % 4) % 4;
        p->k += lacking * size;
    }
}

void case_draw_problem(struct gemm_case *c, struct random *r, const struct case_options *options)
{
    static const halfbyte_type out[3] = {F32, HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16};
    static const halfbyte_grouping grouping[FORM_COUNT] = {
        HALFBYTE_GROUPING_DENSE,  HALFBYTE_GROUPING_RANGES, HALFBYTE_GROUPING_RANGES,
        HALFBYTE_GROUPING_RANGES, HALFBYTE_GROUPING_RANGES, HALFBYTE_GROUPING_MASKED,
        HALFBYTE_GROUPING_MASKED, HALFBYTE_GROUPING_LABELS};
    halfbyte_problem *p = &c->problem;
    *p = halfbyte_problem_init();
    p->family = c->kind.family;
    p->grouping = grouping[c->kind.form];
    p->a_scale = c->kind.a_scale;
    p->b_scale = c->kind.b_scale;
    p->weight_group_size = c->kind.weight_group_size;
    p->groups = c->kind.form == FORM_DENSE ? random_between(r, 0, 1)
                : options->groups          ? options->groups
                                           : random_between(r, 1, 5);
    draw_k(r, p, options);
    p->n = options->n ? options->n : draw_extent(r, 36, 200);
    if (options->aligned && p->family == HALFBYTE_FAMILY_W4A8)
        p->n = (p->n + 7) / 8 * 8;
    p->a_type = random_percent(r, 50) ? HALFBYTE_TYPE_NONE : HALFBYTE_TYPE_E4M3;
    p->b_layout = p->family == HALFBYTE_FAMILY_W4A8 && !options->raw &&
                          (options->packed || random_percent(r, 50))
                      ? HALFBYTE_B_PACKED
                      : HALFBYTE_B_ROW_MAJOR;
    p->d_type = options->d_type != HALFBYTE_TYPE_NONE ? options->d_type : out[random_below(r, 3)];
    p->channel_scale_type = random_percent(r, 25) ? F32 : HALFBYTE_TYPE_NONE;
    if (random_percent(r, 30))
        p->bias_type = out[random_below(r, 3)];
    if (random_percent(r, 35))
        p->c_type = random_percent(r, 50) ? p->d_type : out[random_below(r, 3)];
    p->alpha_mode = (halfbyte_alpha_mode)random_below(r, 3);
    int64_t blocks = oracle_blocks(p).count;
    p->k_splits = random_percent(r, 60) ? random_between(r, 0, 1)
                                        : min64(random_between(r, 2, 5), blocks > 0 ? blocks : 1);
    if (options->bare) {
        p->channel_scale_type = p->bias_type = p->c_type = HALFBYTE_TYPE_NONE;
        p->alpha_mode = HALFBYTE_ALPHA_NONE;
        p->k_splits = 1;
    }
    p->index_type = (halfbyte_index_type)random_below(r, 2);
    p->flags = (uint32_t)random_below(r, 8); /* padding and two that change nothing */
    p->num_sms = (int32_t)random_below(r, 3);
}

/* ---- matrices and scales --------------------------------------------------------------------- */

static int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/*
 * Draws the strides of a tensor of `matrices` matrices of rows x columns, multiples of unit: one
 * matrix after another, or side by side. Returns how many elements it spans.
 */
static int64_t draw_strides(struct random *r, int64_t matrices, int64_t rows, int64_t columns,
                            int64_t unit, int64_t *ld, int64_t *group_stride)
{
    int64_t inner = random_below(r, 2) * random_below(r, 20);
    int64_t outer = random_below(r, 2) * random_below(r, 20);
    if (matrices > 1 && random_percent(r, 20)) {
        *group_stride = round_up(columns + inner, unit);
        *ld = round_up((matrices - 1) * *group_stride + columns + outer, unit);
    } else {
        *ld = round_up(columns + inner, unit);
        *group_stride = round_up((rows - 1) * *ld + columns + outer, unit);
    }
    return (matrices - 1) * *group_stride + (rows - 1) * *ld + columns;
}

static void make_a(struct gemm_case *c, struct random *r, const struct case_options *options)
{
    const halfbyte_problem *p = &c->problem;
    halfbyte_matrix_in *a = &c->operands.a;
    int64_t count = draw_strides(r, case_matrices(p), c->operands.m, p->k,
                                 options->aligned ? 16 : 1, &a->ld, &a->group_stride);
    uint8_t *data = case_memory(c, (size_t)count, options->aligned ? 0 : random_bits(r) % 16);
    case_fill_e4m3(r, data, count, options);
    a->data = data;
}

static void pack_b(struct gemm_case *c, struct random *r)
{
    const halfbyte_problem *p = &c->problem;
    halfbyte_matrix_in *b = &c->operands.b;
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    size_t bytes = 0;
    desc.n = p->n;
    desc.k = p->k;
    desc.groups = oracle_groups(p);
    desc.ld = b->ld;
    desc.group_stride = b->group_stride;
    desc.group_k_offset = p->group_k_offset;
    desc.weight_group_size = p->weight_group_size;
    desc.scale_type =
        p->b_scale.mode == HALFBYTE_SCALE_K_GROUP ? p->b_scale.type : HALFBYTE_TYPE_NONE;
    if (halfbyte_packed_weights_bytes(&desc, &bytes) != HALFBYTE_SUCCESS)
        abort();
    void *packed = case_memory(c, bytes, 16 * (random_bits(r) % 2));
    if (halfbyte_pack_weights(NULL, &desc, b->data, packed, bytes, &c->header, NULL) !=
        HALFBYTE_SUCCESS)
        abort();
    c->raw_b = b->data;
    c->raw_ld = b->ld;
    c->raw_group_stride = b->group_stride;
    *b = (halfbyte_matrix_in){packed, -1, -1}; /* strides of packed weights are ignored */
    c->operands.b_header = &c->header;
}

static void make_b(struct gemm_case *c, struct random *r, const struct case_options *options)
{
    const halfbyte_problem *p = &c->problem;
    halfbyte_matrix_in *b = &c->operands.b;
    bool int4 = p->family == HALFBYTE_FAMILY_W4A8;
    int64_t unit = !options->aligned ? (int4 ? 2 : 1) : int4 ? 32 : 16;
    int64_t count = draw_strides(r, oracle_groups(p), p->n, p->k, unit, &b->ld, &b->group_stride);
    int64_t bytes = int4 ? (count + 1) / 2 : count;
    uint8_t *data = case_memory(c, (size_t)bytes, options->aligned ? 0 : random_bits(r) % 16);
    if (int4)
        case_fill_int4(r, data, bytes, options);
    else
        case_fill_e4m3(r, data, bytes, options);
    b->data = data;
    if (p->b_layout == HALFBYTE_B_PACKED)
        pack_b(c, r);
}

/* A scale tensor of `matrices` matrices with extents mn x kb for the modes that vary along k. */
static void make_scale(struct gemm_case *c, struct random *r, halfbyte_scale_in *s,
                       const halfbyte_scale_spec *spec, int64_t groups, int64_t mn, int64_t kb,
                       const struct case_options *options)
{
    int64_t extra = random_below(r, 2) * random_below(r, 9), one = 0, count = 0;
    int element = halfbyte_type_bits(spec->type == HALFBYTE_TYPE_NONE ? F32 : spec->type) / 8;
    if (spec->mode == HALFBYTE_SCALE_NONE)
        return;
    s->stride_mn = s->stride_k = random_below(r, 2); /* the one that is 1 may be left 0 */
    if (spec->mode == HALFBYTE_SCALE_TENSOR) {
        s->group_stride = random_below(r, 3);
        one = 1;
    } else if (spec->mode == HALFBYTE_SCALE_OUTER) {
        one = mn;
        s->group_stride = mn + extra;
    } else if (spec->layout == MN) {
        count = draw_strides(r, groups, kb, mn, 1, &s->stride_k, &s->group_stride);
    } else if (spec->layout == KM) {
        count = draw_strides(r, groups, mn, kb, 1, &s->stride_mn, &s->group_stride);
    } else {
        count = draw_strides(r, groups, kb / 4, 4 * mn, 4, &s->stride_k, &s->group_stride);
    }
    if (count == 0)
        count = (groups - 1) * s->group_stride + one;
    void *data = case_memory(c, (size_t)(count * element), (size_t)element * (random_bits(r) % 4));
    case_fill_values(r, data, spec->type, count, true, options);
    s->data = data;
}

static void make_scales(struct gemm_case *c, struct random *r, const struct case_options *options)
{
    const halfbyte_problem *p = &c->problem;
    bool all_k = p->weight_group_size == 0;
    /* Scales along an empty k are not read; some stand there all the same. */
    int64_t groups = oracle_groups(p), blocks = p->k > 0 ? (p->k + 127) / 128 : 4;
    /* A TENSOR has a value a group in every grouping; the others follow the rows of A. */
    int64_t a_groups = p->a_scale.mode == HALFBYTE_SCALE_TENSOR ? groups : case_matrices(p);
    make_scale(c, r, &c->operands.a_scale, &p->a_scale, a_groups, c->operands.m, blocks, options);
    int64_t mn = p->n, kb = blocks;
    if (p->b_scale.mode == HALFBYTE_SCALE_128X128)
        mn = (p->n + 127) / 128;
    if (p->b_scale.mode == HALFBYTE_SCALE_K_GROUP)
        kb = all_k ? 1 : p->k == 0 ? 4 : oracle_blocks(p).count;
    make_scale(c, r, &c->operands.b_scale, &p->b_scale, groups, mn, kb, options);
}

static void make_vector(struct gemm_case *c, struct random *r, halfbyte_vector_in *v,
                        halfbyte_type type, bool scales, const struct case_options *options)
{
    int64_t n = c->problem.n, groups = oracle_groups(&c->problem);
    if (type == HALFBYTE_TYPE_NONE)
        return;
    v->group_stride = random_percent(r, 30) ? 0 : n + random_below(r, 4);
    int64_t count = (groups - 1) * v->group_stride + n;
    size_t element = (size_t)halfbyte_type_bits(type) / 8;
    void *data = case_memory(c, (size_t)count * element, element * (random_bits(r) % 4));
    case_fill_values(r, data, type, count, scales, options);
    v->data = data;
}

/* ---- D and C --------------------------------------------------------------------------------- */

static void make_d(struct gemm_case *c, struct random *r)
{
    const halfbyte_problem *p = &c->problem;
    halfbyte_matrix_out *d = &c->operands.d;
    size_t element = (size_t)halfbyte_type_bits(p->d_type) / 8, guard = 192;
    bool wide =
        random_percent(r, 50); /* rows at multiples of 16 bytes: stored by the copy engine */
    int64_t count = draw_strides(r, case_matrices(p), c->operands.m, p->n,
                                 wide ? 16 / (int64_t)element : 1, &d->ld, &d->group_stride);
    c->d_at = guard + (wide ? 0 : element * (random_bits(r) % 4));
    c->d_bytes = c->d_at + (size_t)count * element + guard;
    c->d_base = case_memory(c, c->d_bytes, 0);
    case_poison(c->d_base, c->d_bytes);
    d->data = c->d_base + c->d_at;
}

static void make_c(struct gemm_case *c, struct random *r, const struct case_options *options)
{
    const halfbyte_problem *p = &c->problem;
    halfbyte_operands *o = &c->operands;
    if (p->c_type == HALFBYTE_TYPE_NONE)
        return;
    float beta[1];
    case_fill_values(r, beta, F32, 1, false, options);
    o->beta = random_percent(r, 20) ? 0 : random_percent(r, 30) ? 1 : beta[0];
    if (o->beta == 0 && random_percent(r, 50))
        return; /* C is not read, so it need not be there */
    size_t element = (size_t)halfbyte_type_bits(p->c_type) / 8;
    bool alias = p->c_type == p->d_type && random_percent(r, 50);
    draw_strides(r, case_matrices(p), o->m, p->n, 1, &o->c.ld, &o->c.group_stride);
    if (alias) {
        o->c.ld = o->d.ld;
        o->c.group_stride = o->d.group_stride;
    }
    int64_t count = (case_matrices(p) - 1) * o->c.group_stride + (o->m - 1) * o->c.ld + p->n;
    void *data = case_memory(c, (size_t)count * element, element * (random_bits(r) % 4));
    case_fill_values(r, data, p->c_type, count, false, options);
    o->c.data = data;
    c->before.c = o->c;
    if (alias) {
        memcpy(o->d.data, data, (size_t)count * element);
        o->c.data = o->d.data;
    }
}

void case_make_operands(struct gemm_case *c, struct random *r, const struct case_options *options)
{
    halfbyte_operands *o = &c->operands;
    make_a(c, r, options);
    make_b(c, r, options);
    make_scales(c, r, options);
    make_vector(c, r, &o->channel_scale, c->problem.channel_scale_type, true, options);
    make_vector(c, r, &o->bias, c->problem.bias_type, false, options);
    case_fill_values(r, &c->alpha, F32, 1, true, options);
    if (c->problem.alpha_mode == HALFBYTE_ALPHA_HOST)
        o->alpha = c->alpha;
    if (c->problem.alpha_mode == HALFBYTE_ALPHA_DEVICE) {
        float *alpha = case_memory(c, sizeof *alpha, 0);
        *alpha = c->alpha;
        o->alpha_pointer = alpha;
    }
    make_d(c, r);
    make_c(c, r, options);
    halfbyte_matrix_in c_copy = c->before.c;
    c->before = *o;
    if (c_copy.data)
        c->before.c = c_copy;
    c->d_before = case_memory(c, c->d_bytes, 0);
    memcpy(c->d_before, c->d_base, c->d_bytes);
}
