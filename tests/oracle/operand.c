/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/operand.h"
#include "oracle/exact.h"

#include <stddef.h>
#include <string.h>

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t clamp64(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

uint32_t oracle_load(const void *data, halfbyte_type type, int64_t i)
{
    uint32_t value32;
    uint16_t value16;
    switch (halfbyte_type_bits(type)) {
    case 32: memcpy(&value32, (const char *)data + 4 * i, 4); return value32;
    case 16: memcpy(&value16, (const char *)data + 2 * i, 2); return value16;
    default: return ((const uint8_t *)data)[i];
    }
}

static uint32_t load_wide(const void *data, halfbyte_type type, int64_t i)
{
    halfbyte_type t = type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : type;
    return oracle_widen(t, oracle_load(data, t, i));
}

/* ---- blocks and groups ----------------------------------------------------------------------- */

struct oracle_blocks oracle_blocks(const halfbyte_problem *p)
{
    struct oracle_blocks blocks = {128, 0, 0};
    if (p->b_scale.mode == HALFBYTE_SCALE_K_GROUP && p->weight_group_size != 0) {
        blocks.length = p->weight_group_size;
        blocks.offset = p->group_k_offset;
    }
    if (p->k > 0)
        blocks.count = (p->k + blocks.offset + blocks.length - 1) / blocks.length;
    return blocks;
}

void oracle_block_range(const halfbyte_problem *p, int64_t b, int64_t *start, int64_t *end)
{
    struct oracle_blocks blocks = oracle_blocks(p);
    *start = max64(0, b * blocks.length - blocks.offset);
    *end = min64(p->k, (b + 1) * blocks.length - blocks.offset);
}

int64_t oracle_groups(const halfbyte_problem *p)
{
    return p->groups == 0 ? 1 : p->groups;
}

static int64_t load_index(const halfbyte_problem *p, const void *data, int64_t stride, int64_t i)
{
    int64_t at = i * (stride == 0 ? 1 : stride), value64;
    int32_t value32;
    if (p->index_type == HALFBYTE_INDEX_INT64) {
        memcpy(&value64, (const char *)data + 8 * at, 8);
        return value64;
    }
    memcpy(&value32, (const char *)data + 4 * at, 4);
    return value32;
}

static bool range_owns(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                       int64_t row)
{
    const halfbyte_groups *g = &o->groups;
    int64_t start = 0, end;
    if (g->starts) {
        start = clamp64(load_index(p, g->starts, g->starts_stride, group), 0, o->m);
    } else if (g->ends) {
        if (group > 0)
            start = clamp64(load_index(p, g->ends, g->ends_stride, group - 1), 0, o->m);
    } else {
        for (int64_t i = 0; i < group; i++)
            start += clamp64(load_index(p, g->counts, g->counts_stride, i), 0, o->m - start);
    }
    if (g->ends)
        end = clamp64(load_index(p, g->ends, g->ends_stride, group), start, o->m);
    else
        end = start + clamp64(load_index(p, g->counts, g->counts_stride, group), 0, o->m - start);
    return row >= start && row < end;
}

bool oracle_group_owns(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                       int64_t row)
{
    switch (p->grouping) {
    case HALFBYTE_GROUPING_RANGES: return range_owns(p, o, group, row);
    case HALFBYTE_GROUPING_MASKED:
        return !o->groups.counts ||
               row < clamp64(load_index(p, o->groups.counts, o->groups.counts_stride, group), 0,
                             o->m);
    case HALFBYTE_GROUPING_LABELS: return o->groups.labels[row] == group;
    default: return true;
    }
}

/* ---- A, B, C, D ------------------------------------------------------------------------------ */

static int64_t matrix_offset(const halfbyte_problem *p, int64_t ld, int64_t group_stride,
                             int64_t group, int64_t row, int64_t column)
{
    int64_t base = p->grouping == HALFBYTE_GROUPING_MASKED ? group * group_stride : 0;
    return base + row * ld + column;
}

uint8_t oracle_a(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group, int64_t row,
                 int64_t k)
{
    return (
        (const uint8_t *)o->a.data)[matrix_offset(p, o->a.ld, o->a.group_stride, group, row, k)];
}

/*
 * One weight of the packed form: an atom is 64 rows x 128 positions in 4,096 bytes, [2 loads]
 * [128 threads][4 words]; a position is k + group_k_offset. Thread 32 w + 4 g + c holds rows
 * 16 w + g (first register of a pair) and 16 w + g + 8 (second), bytes 4 c .. 4 c + 3 of each half
 * of a step of 32.
 */
static int packed_int4(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                       int64_t row, int64_t k)
{
    const halfbyte_packed_header *h = o->b_header;
    int64_t panels = (p->n + 63) / 64, atoms = (p->k + h->group_k_offset + 127) / 128;
    int64_t position = k + h->group_k_offset;
    int64_t atom = (group * panels + row / 64) * atoms + position / 128;
    int64_t row_in = row % 64, step = position % 128 / 32, in_step = position % 32;

    int64_t thread = row_in / 16 * 32 + row_in % 8 * 4 + in_step % 16 / 4;
    int64_t word = step % 2 * 2 + in_step / 16;
    const uint8_t *bytes =
        (const uint8_t *)o->b.data + atom * 4096 + ((step / 2 * 128 + thread) * 4 + word) * 4;
    uint32_t value = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                     (uint32_t)bytes[3] << 24;
    int rotation = (int)(in_step % 4) * 8 + (row_in % 16 >= 8 ? 4 : 0);
    uint64_t twice = (uint64_t)value << 32 | value;
    int code = (int)(twice >> rotation) & 0xff;
    int magnitude = code & 7;
    if (!(code & 0x80))
        return magnitude;
    return h->flags & HALFBYTE_PACKED_HOLDS_MINUS8 ? -magnitude - 1 : -magnitude;
}

int oracle_int4(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                int64_t column, int64_t k)
{
    if (p->b_layout == HALFBYTE_B_PACKED)
        return packed_int4(p, o, group, column, k);
    int64_t at = group * o->b.group_stride + column * o->b.ld + k;
    uint8_t byte = ((const uint8_t *)o->b.data)[at / 2];
    int nibble = at % 2 == 0 ? byte & 15 : byte >> 4;
    return nibble < 8 ? nibble : nibble - 16;
}

uint8_t oracle_b(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                 int64_t column, int64_t k)
{
    if (p->family == HALFBYTE_FAMILY_FP8)
        return ((const uint8_t *)o->b.data)[group * o->b.group_stride + column * o->b.ld + k];
    int value = oracle_int4(p, o, group, column, k);
    return value < 0 ? (uint8_t)(0x80 | -value) : (uint8_t)value;
}

uint32_t oracle_c(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group, int64_t row,
                  int64_t column)
{
    return load_wide(o->c.data, p->c_type,
                     matrix_offset(p, o->c.ld, o->c.group_stride, group, row, column));
}

int64_t oracle_d_offset(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                        int64_t row, int64_t column)
{
    return matrix_offset(p, o->d.ld, o->d.group_stride, group, row, column);
}

/* ---- scales ---------------------------------------------------------------------------------- */

static uint32_t block_scale(const halfbyte_scale_spec *spec, const halfbyte_scale_in *s,
                            int64_t group, int64_t mn, int64_t kb)
{
    int64_t at = group * s->group_stride;
    switch (spec->layout) {
    case HALFBYTE_SCALE_MN_MAJOR: at += mn + kb * s->stride_k; break;
    case HALFBYTE_SCALE_K_MAJOR: at += mn * s->stride_mn + kb; break;
    case HALFBYTE_SCALE_INTERLEAVED4: at += kb / 4 * s->stride_k + mn * 4 + kb % 4; break;
    }
    return load_wide(s->data, spec->type, at);
}

uint32_t oracle_a_block_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                              int64_t row, int64_t b)
{
    int64_t start, end;
    oracle_block_range(p, b, &start, &end);
    return block_scale(&p->a_scale, &o->a_scale,
                       p->grouping == HALFBYTE_GROUPING_MASKED ? group : 0, row, start / 128);
}

uint32_t oracle_b_block_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                              int64_t column, int64_t b)
{
    if (p->b_scale.mode == HALFBYTE_SCALE_128X128)
        return block_scale(&p->b_scale, &o->b_scale, group, column / 128, b);
    bool one_group = p->b_scale.mode == HALFBYTE_SCALE_K_GROUP && p->weight_group_size == 0;
    return block_scale(&p->b_scale, &o->b_scale, group, column, one_group ? 0 : b);
}

uint32_t oracle_a_outer_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                              int64_t row)
{
    int64_t at = 0;
    if (p->a_scale.mode == HALFBYTE_SCALE_TENSOR)
        at = group * o->a_scale.group_stride;
    else
        at = row + (p->grouping == HALFBYTE_GROUPING_MASKED ? group * o->a_scale.group_stride : 0);
    return load_wide(o->a_scale.data, p->a_scale.type, at);
}

uint32_t oracle_b_outer_scale(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                              int64_t column)
{
    int64_t at = group * o->b_scale.group_stride;
    if (p->b_scale.mode == HALFBYTE_SCALE_OUTER)
        at += column;
    return load_wide(o->b_scale.data, p->b_scale.type, at);
}

uint32_t oracle_vector(const halfbyte_vector_in *v, halfbyte_type type, int64_t group, int64_t i)
{
    return load_wide(v->data, type, group * v->group_stride + i);
}
