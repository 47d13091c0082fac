/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/harness/gemm_case_fill.h"

#include <stdlib.h>
#include <string.h>

uint64_t gemm_case_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Below bound, which is not 0. */
static int64_t below(uint64_t *state, int64_t bound)
{
    return (int64_t)(gemm_case_random(state) % (uint64_t)bound);
}

/* ---- values ---------------------------------------------------------------------------------- */

static size_t type_bytes(halfbyte_type type)
{
    return (size_t)halfbyte_type_bits(type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : type) / 8;
}

/* Every code but the NaN ones: those would hide in a row what else goes wrong there. */
static void fill_e4m3(unsigned char *data, size_t bytes, uint64_t *state)
{
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char code = (unsigned char)gemm_case_random(state);
        data[i] = (code & 0x7fu) == 0x7fu ? 0x38u : code;
    }
}

/* Of both signs, 2^-7 to 2^8; `type` of 4, 2 or 1 byte. */
static void fill_values(unsigned char *data, size_t bytes, halfbyte_type type, uint64_t *state)
{
    const size_t each = type_bytes(type);
    for (size_t i = 0; i + each <= bytes; i += each) {
        const uint64_t bits = gemm_case_random(state);
        const float fraction = 1.0f + (float)(bits & 0xffffffu) / 16777216.0f;
        const int exponent = (int)(bits >> 24 & 15u) - 7;
        const float power = exponent < 0 ? 1.0f / (float)(1 << -exponent) : (float)(1 << exponent);
        const float value = (bits >> 40 & 7u) == 0 ? -fraction * power : fraction * power;
        halfbyte_convert(data + i, type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : type, &value,
                         HALFBYTE_TYPE_F32, 1);
    }
}

halfbyte_int4_desc gemm_case_weights(const halfbyte_problem *problem)
{
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    desc.layout = HALFBYTE_INT4_INT8_LOW_FIRST;
    desc.n = problem->n;
    desc.k = problem->k;
    desc.groups = problem->groups;
    desc.ld = (problem->k + 1) / 2 * 2;
    desc.group_stride = desc.ld * problem->n;
    desc.group_k_offset = problem->group_k_offset;
    desc.weight_group_size = problem->weight_group_size;
    desc.scale_type = problem->b_scale.mode == HALFBYTE_SCALE_K_GROUP ? problem->b_scale.type
                                                                      : HALFBYTE_TYPE_NONE;
    return desc;
}

/* All 16 values, or without -8, two to a byte. */
static void fill_int4(unsigned char *weights, size_t bytes, bool minus8, uint64_t *state)
{
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char two = (unsigned char)gemm_case_random(state);
        const unsigned char low = !minus8 && (two & 0xfu) == 8 ? 7 : two & 0xfu;
        weights[i] = (unsigned char)((!minus8 && two >> 4 == 8 ? 0x70u : two & 0xf0u) | low);
    }
}

static bool fill_packed(gemm_case *made, const gemm_case_part *part, bool minus8, uint64_t *state)
{
    const halfbyte_int4_desc desc = gemm_case_weights(&made->problem);
    const size_t bytes = (size_t)(desc.group_stride * desc.groups / 2);
    unsigned char *weights = malloc(bytes + 1);
    if (weights == NULL) {
        return false;
    }
    fill_int4(weights, bytes, minus8, state);
    const halfbyte_status status = halfbyte_pack_weights(
        NULL, &desc, weights, made->arena + part->offset, part->bytes, &made->header, NULL);
    free(weights);
    return status == HALFBYTE_SUCCESS;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void index_write(const halfbyte_problem *p, const void *values, int64_t stride,
                        int64_t index, int64_t value)
{
    void *at = (void *)(uintptr_t)values;
    if (values == NULL) {
        return;
    }
    if (p->index_type == HALFBYTE_INDEX_INT64) {
        ((int64_t *)at)[index * stride] = value;
    } else {
        ((int32_t *)at)[index * stride] = (int32_t)value;
    }
}

/* Values that are clamped to the same rows: below 0, far above m. */
typedef struct wild_values {
    int64_t low, high;
} wild_values;

/* One group's entries.  m: rows that there are. */
static void group_write(const gemm_case *made, const wild_values *wild, int64_t group,
                        int64_t start, int64_t rows)
{
    const halfbyte_problem *p = &made->problem;
    const halfbyte_groups *g = &made->operands.groups;
    const int64_t m = made->operands.m, end = start + rows;
    int64_t first = start, last = end, count = rows;
    if (wild != NULL) {
        first = start == 0 ? wild->low : start == m ? wild->high : start;
        last = end == m                                       ? wild->high
               : end == 0 || (g->starts != NULL && rows == 0) ? wild->low
                                                              : end;
        count = end == m ? wild->high : rows == 0 ? wild->low : rows;
    }
    index_write(p, g->starts, g->starts_stride, group, first);
    index_write(p, g->ends, g->ends_stride, group, last);
    index_write(p, g->counts, g->counts_stride, group, count);
}

/* Rows of the group, of `left`: none of one in four. */
static int64_t rows_draw(const halfbyte_problem *p, int64_t m, int64_t left, uint64_t *state)
{
    const int64_t most = p->grouping == HALFBYTE_GROUPING_MASKED ? m : 2 * m / p->groups + 1;
    const int64_t rows = below(state, 4) == 0 ? 0 : below(state, most + 1);
    return rows < left ? rows : left;
}

/* Rows of each group by a GEMM_CASE_LOAD_*; free() them.  NULL: memory is out. */
static int64_t *load_draw(const gemm_case *made, uint64_t load, uint64_t *state)
{
    const int64_t groups = made->problem.groups, one = below(state, groups);
    const int64_t scale = INT64_C(1) << 32;
    int64_t *rows = malloc((size_t)groups * sizeof *rows), weights = 0;
    for (int64_t g = 0; rows != NULL && g < groups; g++) {
        rows[g] = load == GEMM_CASE_LOAD_EACH              ? 1
                  : load == GEMM_CASE_LOAD_ONE && g == one ? made->operands.m
                                                           : 0;
        weights += scale / (g + 1);
    }
    for (int64_t i = 0; rows != NULL && load == GEMM_CASE_LOAD_ZIPF && i < made->operands.m; i++) {
        int64_t at = below(state, weights), g = 0;
        while (at >= scale / (g + 1)) {
            at -= scale / ++g;
        }
        rows[g]++;
    }
    return rows;
}

/* Groups one after another, some empty; where starts are given, with rows between them.  given: the
 * rows of each, then without such gaps. */
static void fill_groups(gemm_case *made, const int64_t *given, const wild_values *wild,
                        uint64_t *state)
{
    const halfbyte_problem *p = &made->problem;
    const halfbyte_groups *g = &made->operands.groups;
    const bool masked = p->grouping == HALFBYTE_GROUPING_MASKED;
    const bool gaps = given == NULL && (g->starts != NULL || g->labels != NULL);
    const int64_t m = made->operands.m;
    int32_t *labels = (int32_t *)(uintptr_t)g->labels;
    const int32_t unlabelled[] = {-1, wild != NULL ? (int32_t)p->groups : -1,
                                  wild != NULL ? INT32_MIN : -1, wild != NULL ? INT32_MAX : -1};
    int64_t at = 0;
    for (int64_t i = 0; labels != NULL && i < m; i++) {
        labels[i] = unlabelled[below(state, 4)];
    }
    for (int64_t group = 0; group < p->groups; group++) {
        const int64_t skip = gaps && below(state, 3) == 0 ? below(state, 5) : 0;
        const int64_t start = masked ? 0 : at + skip < m ? at + skip : m;
        const int64_t rows = given == NULL              ? rows_draw(p, m, m - start, state)
                             : given[group] < m - start ? given[group]
                                                        : m - start;
        group_write(made, wild, group, start, rows);
        for (int64_t i = start; labels != NULL && i < start + rows; i++) {
            labels[i] = gaps && below(state, 6) == 0 ? labels[i] : (int32_t)group;
        }
        at = start + rows;
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The type of the part's values; NONE: it has none to be drawn. */
static halfbyte_type type_of_part(const gemm_case *made, const gemm_case_part *part)
{
    const halfbyte_problem *p = &made->problem;
    const halfbyte_type scale = p->b_scale.type;
    const bool is_c = made->operands.c.data == (const void *)made->operands.d.data;
    const struct {
        const char *name;
        halfbyte_type type;
    } types[] = {
        {"a_scale", HALFBYTE_TYPE_F32},
        {"b_scale", scale == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : scale},
        {"channel_scale", HALFBYTE_TYPE_F32},
        {"bias", p->bias_type},
        {"alpha", HALFBYTE_TYPE_F32},
        {"c", p->c_type},
        {"d", is_c ? p->d_type : HALFBYTE_TYPE_NONE},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, part->name) == 0) {
            return types[i].type;
        }
    }
    return HALFBYTE_TYPE_NONE;
}

bool gemm_case_fill(gemm_case *made, uint64_t draw, uint64_t *state)
{
    const bool is_64_bit = made->problem.index_type == HALFBYTE_INDEX_INT64;
    const wild_values wild = {is_64_bit ? INT64_MIN : INT32_MIN, is_64_bit ? INT64_MAX : INT32_MAX};
    const bool is_packed = made->problem.b_layout == HALFBYTE_B_PACKED;
    const bool is_int4 = made->problem.family == HALFBYTE_FAMILY_W4A8;
    const bool minus8 = !(draw & GEMM_CASE_NO_MINUS8);
    int64_t *given = NULL;
    bool good = true;
    memset(made->arena, GEMM_CASE_POISON, made->arena_bytes);
    for (int i = 0; i < made->parts; i++) {
        const gemm_case_part *part = &made->part[i];
        unsigned char *data = made->arena + part->offset;
        const halfbyte_type type = type_of_part(made, part);
        if (strcmp(part->name, "b") == 0 && is_packed) {
            good &= fill_packed(made, part, minus8, state);
        } else if (strcmp(part->name, "b") == 0 && is_int4) {
            fill_int4(data, part->bytes, minus8, state);
        } else if (strcmp(part->name, "a") == 0 || strcmp(part->name, "b") == 0) {
            fill_e4m3(data, part->bytes, state);
        } else if (type != HALFBYTE_TYPE_NONE) {
            fill_values(data, part->bytes, type, state);
        }
    }
    if (draw & GEMM_CASE_LOAD) {
        given = load_draw(made, draw & GEMM_CASE_LOAD, state);
        good &= given != NULL;
    }
    fill_groups(made, given, draw & GEMM_CASE_WILD ? &wild : NULL, state);
    free(given);
    return good;
}
