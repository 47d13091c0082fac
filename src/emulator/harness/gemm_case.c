/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/harness/gemm_case.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/harness/gemm_case_fill.h"

enum { GUARD = 64 };

/* Below bound, which is not 0. */
static int64_t below(uint64_t *state, int64_t bound)
{
    return (int64_t)(gemm_case_random(state) % (uint64_t)bound);
}

/* ---- layout: first all parts are measured, then the arena is made and they are placed ---------
 */

typedef struct layout {
    gemm_case *made;
    uint64_t draw; /* gemm_case_draw bits and seed */
    size_t bytes;
} layout;

/* Room for a tensor; its address, as an offset, until the arena exists.  skew: bytes behind a
 * multiple of 256. */
static void *part_add(layout *l, const char *name, int64_t bytes, size_t skew, bool is_output)
{
    gemm_case_part *part = &l->made->part[l->made->parts++];
    part->name = name;
    part->offset = (l->bytes + GUARD + 255) / 256 * 256 + skew;
    part->bytes = (size_t)bytes;
    part->is_output = is_output;
    l->bytes = part->offset + part->bytes;
    return (void *)(uintptr_t)part->offset;
}

static int64_t planes_of(const halfbyte_problem *p)
{
    return p->grouping == HALFBYTE_GROUPING_MASKED ? p->groups : 1;
}

static int64_t type_bytes(halfbyte_type type)
{
    return halfbyte_type_bits(type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : type) / 8;
}

/* [planes, rows, columns] of `bytes` each; rows and planes at multiples of `unit` elements, with
 * gaps now and then. */
static void matrix_layout(layout *l, uint64_t *state, const char *name, int64_t planes,
                          int64_t rows, int64_t columns, int64_t bytes, int64_t unit,
                          bool is_output, halfbyte_matrix_out *matrix)
{
    matrix->ld = (columns + unit - 1) / unit * unit + unit * below(state, 3);
    matrix->group_stride = matrix->ld * rows + unit * below(state, 3);
    const int64_t count = columns == 0 || rows == 0 ? 0
                                                    : (planes - 1) * matrix->group_stride +
                                                          (rows - 1) * matrix->ld + columns;
    matrix->data =
        part_add(l, name, count * bytes, (size_t)(unit * bytes * below(state, 2)), is_output);
}

static void input_layout(layout *l, uint64_t *state, const char *name, int64_t planes, int64_t rows,
                         int64_t columns, int64_t bytes, int64_t unit, halfbyte_matrix_in *matrix)
{
    halfbyte_matrix_out made;
    matrix_layout(l, state, name, planes, rows, columns, bytes, unit, false, &made);
    *matrix = (halfbyte_matrix_in){made.data, made.ld, made.group_stride};
}

/* Extents of a scale tensor. */
static void scale_extents(const halfbyte_problem *p, const halfbyte_scale_spec *spec, int64_t mn,
                          int64_t *rows, int64_t *blocks)
{
    const int64_t group = p->weight_group_size == 0 ? p->k : p->weight_group_size;
    *rows = spec->mode == HALFBYTE_SCALE_TENSOR    ? 1
            : spec->mode == HALFBYTE_SCALE_128X128 ? (mn + 127) / 128
                                                   : mn;
    *blocks = 1;
    if (spec->mode == HALFBYTE_SCALE_1X128 || spec->mode == HALFBYTE_SCALE_128X128) {
        *blocks = (p->k + 127) / 128;
    } else if (spec->mode == HALFBYTE_SCALE_K_GROUP) {
        *blocks = p->k == 0 ? 0 : (p->k + p->group_k_offset + group - 1) / group;
    }
}

static void scale_layout(layout *l, uint64_t *state, const char *name, const halfbyte_problem *p,
                         const halfbyte_scale_spec *spec, int64_t groups, int64_t mn,
                         halfbyte_scale_in *scale)
{
    int64_t rows, blocks, count, gap = 4 * below(state, 2) + below(state, 2);
    const int64_t unit = spec == &p->b_scale && (l->draw & GEMM_CASE_SCALES_BY_FOUR) != 0 ? 4 : 1;
    gap = gap / unit * unit;
    if (spec->mode == HALFBYTE_SCALE_NONE) {
        return;
    }
    scale_extents(p, spec, mn, &rows, &blocks);
    if (spec->layout == HALFBYTE_SCALE_INTERLEAVED4) {
        scale->stride_k = 4 * rows + 4 * (gap / 4);
        count = blocks / 4 * scale->stride_k;
        gap = gap / 4 * 4;
    } else if (spec->layout == HALFBYTE_SCALE_K_MAJOR) {
        scale->stride_mn = (blocks + unit - 1) / unit * unit + gap;
        count = rows * scale->stride_mn;
    } else {
        scale->stride_k = rows + gap;
        count = blocks * scale->stride_k;
    }
    scale->group_stride = count + gap;
    if (spec->mode == HALFBYTE_SCALE_TENSOR && spec == &p->a_scale) {
        groups = p->groups;
        scale->group_stride = below(state, 4) == 0 ? 0 : scale->group_stride;
    }
    const int64_t bytes = type_bytes(spec->type);
    scale->data = part_add(l, name, ((groups - 1) * scale->group_stride + count) * bytes,
                           (size_t)(bytes * unit * below(state, 4)), false);
}

static void vector_layout(layout *l, uint64_t *state, const char *name, halfbyte_type type,
                          int64_t groups, int64_t n, halfbyte_vector_in *vector)
{
    if (type == HALFBYTE_TYPE_NONE) {
        return;
    }
    vector->group_stride = below(state, 4) == 0 ? 0 : n + below(state, 3);
    vector->data = part_add(l, name, ((groups - 1) * vector->group_stride + n) * type_bytes(type),
                            (size_t)(type_bytes(type) * below(state, 4)), false);
}

static void groups_layout(layout *l, uint64_t *state, const halfbyte_problem *p, int64_t m,
                          halfbyte_groups *groups)
{
    const int64_t bytes = p->index_type == HALFBYTE_INDEX_INT64 ? 8 : 4;
    const unsigned form = l->draw & GEMM_CASE_FORM;
    groups->starts_stride = 1 + below(state, 3);
    groups->ends_stride = 1 + below(state, 3);
    groups->counts_stride = 1 + below(state, 3);
    if (p->grouping == HALFBYTE_GROUPING_LABELS) {
        groups->labels = part_add(l, "labels", m * 4, 0, false);
        groups->starts_stride = groups->ends_stride = groups->counts_stride = 0;
    }
    if (p->grouping == HALFBYTE_GROUPING_RANGES && form < 2) {
        groups->starts =
            part_add(l, "starts", ((p->groups - 1) * groups->starts_stride + 1) * bytes, 8, false);
    }
    if (p->grouping == HALFBYTE_GROUPING_RANGES && (form == 0 || form == 2)) {
        groups->ends =
            part_add(l, "ends", ((p->groups - 1) * groups->ends_stride + 1) * bytes, 8, false);
    }
    if (form % 2 == 1 && p->grouping != HALFBYTE_GROUPING_LABELS &&
        p->grouping != HALFBYTE_GROUPING_DENSE) {
        groups->counts =
            part_add(l, "counts", ((p->groups - 1) * groups->counts_stride + 1) * bytes, 8, false);
    }
}

static void case_layout(layout *l, uint64_t *state)
{
    gemm_case *made = l->made;
    const halfbyte_problem *p = &made->problem;
    halfbyte_operands *o = &made->operands;
    const int64_t planes = planes_of(p), m = o->m;
    const int64_t d_bytes = type_bytes(p->d_type);
    const int64_t d_unit = l->draw & GEMM_CASE_D_WIDE    ? 16 / d_bytes
                           : l->draw & GEMM_CASE_D_PAIRS ? 2
                                                         : 1;
    input_layout(l, state, "a", planes, m, p->k, 1, 16, &o->a);
    if (p->family == HALFBYTE_FAMILY_FP8) {
        input_layout(l, state, "b", p->groups, p->n, p->k, 1, 16, &o->b);
    } else if (p->b_layout == HALFBYTE_B_ROW_MAJOR) {
        /* Two to a byte: measured in bytes. */
        input_layout(l, state, "b", p->groups, p->n, (p->k + 1) / 2, 1, 16, &o->b);
        o->b.ld *= 2;
        o->b.group_stride *= 2;
    } else {
        const halfbyte_int4_desc desc = gemm_case_weights(p);
        size_t bytes = 0;
        halfbyte_packed_weights_bytes(&desc, &bytes);
        o->b.data = part_add(l, "b", (int64_t)bytes, 16 * (size_t)below(state, 3), false);
        o->b_header = &made->header;
    }
    scale_layout(l, state, "a_scale", p, &p->a_scale, planes, m, &o->a_scale);
    scale_layout(l, state, "b_scale", p, &p->b_scale, p->groups, p->n, &o->b_scale);
    vector_layout(l, state, "channel_scale", p->channel_scale_type, p->groups, p->n,
                  &o->channel_scale);
    vector_layout(l, state, "bias", p->bias_type, p->groups, p->n, &o->bias);
    if (p->alpha_mode == HALFBYTE_ALPHA_DEVICE) {
        o->alpha_pointer = part_add(l, "alpha", 4, 0, false);
    }
    groups_layout(l, state, p, m, &o->groups);
    matrix_layout(l, state, "d", planes, m, p->n, d_bytes, d_unit, true, &o->d);
    if (p->c_type == p->d_type && (l->draw & GEMM_CASE_C_IS_D)) {
        o->c = (halfbyte_matrix_in){o->d.data, o->d.ld, o->d.group_stride};
    } else if (p->c_type != HALFBYTE_TYPE_NONE) {
        input_layout(l, state, "c", planes, m, p->n, type_bytes(p->c_type), 1, &o->c);
    }
    l->bytes += GUARD;
}

/* ---- interface ------------------------------------------------------------------------------- */

static void pointer_move(const void **pointer, uintptr_t distance)
{
    if (*pointer != NULL) {
        *pointer = (const void *)((uintptr_t)*pointer + distance);
    }
}

/* Every pointer into the arena, by `distance` bytes. */
static void operands_move(halfbyte_operands *o, uintptr_t distance)
{
    pointer_move(&o->a.data, distance);
    pointer_move(&o->b.data, distance);
    pointer_move(&o->c.data, distance);
    pointer_move((const void **)&o->d.data, distance);
    pointer_move(&o->a_scale.data, distance);
    pointer_move(&o->b_scale.data, distance);
    pointer_move(&o->channel_scale.data, distance);
    pointer_move(&o->bias.data, distance);
    pointer_move((const void **)&o->alpha_pointer, distance);
    pointer_move(&o->groups.starts, distance);
    pointer_move(&o->groups.ends, distance);
    pointer_move(&o->groups.counts, distance);
    pointer_move((const void **)&o->groups.labels, distance);
}

bool gemm_case_make(gemm_case *made, const halfbyte_problem *problem, uint64_t draw)
{
    uint64_t state = draw;
    memset(made, 0, sizeof *made);
    made->problem = *problem;
    halfbyte_problem *p = &made->problem;
    halfbyte_operands *o = &made->operands;
    p->groups = p->groups == 0 ? 1 : p->groups;
    if (p->alpha_mode == HALFBYTE_ALPHA_HOST && (draw & GEMM_CASE_ALPHA_DEVICE)) {
        p->alpha_mode = HALFBYTE_ALPHA_DEVICE;
    }
    if (draw & GEMM_CASE_OVERLAP) {
        p->flags |= HALFBYTE_WEIGHTS_CONSTANT | HALFBYTE_LAUNCH_DEPENDENTS;
    }
    *o = halfbyte_operands_init();
    o->m = p->m_max > 0 && (draw & GEMM_CASE_FEWER_ROWS) ? 1 + below(&state, p->m_max) : p->m_max;
    o->expected_m = below(&state, o->m + 1);
    o->alpha = 1.5f;
    o->beta = draw & GEMM_CASE_NO_BETA ? 0.0f : -0.75f;
    layout l = {made, draw, 0};
    case_layout(&l, &state);
    made->arena_bytes = (l.bytes + 255) / 256 * 256;
    made->arena = aligned_alloc(256, made->arena_bytes);
    made->initial = malloc(made->arena_bytes);
    if (made->arena == NULL || made->initial == NULL) {
        return false;
    }
    operands_move(o, (uintptr_t)made->arena);
    if (!gemm_case_fill(made, draw, &state)) {
        return false;
    }
    memcpy(made->initial, made->arena, made->arena_bytes);
    return true;
}

void gemm_case_free(gemm_case *made)
{
    free(made->arena);
    free(made->initial);
    made->arena = made->initial = NULL;
}

halfbyte_operands gemm_case_moved(const gemm_case *from, const void *to)
{
    halfbyte_operands moved = from->operands;
    operands_move(&moved, (uintptr_t)to - (uintptr_t)from->arena);
    return moved;
}

void gemm_case_restore(gemm_case *made)
{
    memcpy(made->arena, made->initial, made->arena_bytes);
}

bool gemm_case_reads(const gemm_case *made, const gemm_case_part *part)
{
    return strcmp(part->name, "c") != 0 || made->operands.beta != 0.0f;
}

static halfbyte_status run_on_model(const halfbyte_problem *problem,
                                    const halfbyte_operands *operands)
{
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    options.profile = HALFBYTE_PROFILE_ANY;
    options.threads = 1;
    halfbyte_device *device = NULL;
    halfbyte_plan *plan = NULL;
    halfbyte_status status = halfbyte_device_open(&device, &options);
    if (status == HALFBYTE_SUCCESS) {
        status = halfbyte_plan_create(&plan, problem, device);
    }
    if (status == HALFBYTE_SUCCESS) {
        status = halfbyte_run(plan, operands, NULL, 0, NULL);
    }
    halfbyte_plan_destroy(plan);
    halfbyte_device_close(device);
    return status;
}

unsigned char *gemm_case_wanted(const gemm_case *from)
{
    unsigned char *copy = aligned_alloc(256, from->arena_bytes);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, from->initial, from->arena_bytes);
    const halfbyte_operands operands = gemm_case_moved(from, copy);
    if (run_on_model(&from->problem, &operands) != HALFBYTE_SUCCESS) {
        free(copy);
        return NULL;
    }
    return copy;
}
