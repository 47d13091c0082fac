/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/oracle_element.h"
#include "oracle/dot.h"
#include "oracle/exact.h"
#include "oracle/operand.h"

#include <stdbool.h>

#define STEP 32
#define FP32_512 0x44000000u
#define FP32_ONE 0x3f800000u

struct place {
    const halfbyte_problem *p;
    const halfbyte_operands *o;
    int64_t group, row, column;
};

/* Section 4: the partial sum of block b. */
static uint32_t block_partial(const struct place *at, int64_t b)
{
    int64_t start, end;
    oracle_block_range(at->p, b, &start, &end);
    uint32_t sum = 0;
    for (int64_t k = start; k < end; k += STEP) {
        uint16_t x[STEP] = {0}, y[STEP] = {0};
        for (int64_t i = 0; i < STEP && k + i < end; i++) {
            x[i] = oracle_a(at->p, at->o, at->group, at->row, k + i);
            y[i] = oracle_b(at->p, at->o, at->group, at->column, k + i);
        }
        sum = oracle_dot(HALFBYTE_TYPE_E4M3, x, y, sum);
    }
    return sum;
}

/* Section 5: the scale of block b. */
static uint32_t block_scale(const struct place *at, int64_t b)
{
    halfbyte_scale_mode b_mode = at->p->b_scale.mode;
    bool a_varies = at->p->a_scale.mode == HALFBYTE_SCALE_1X128;
    bool b_varies = b_mode == HALFBYTE_SCALE_1X128 || b_mode == HALFBYTE_SCALE_128X128 ||
                    b_mode == HALFBYTE_SCALE_K_GROUP;
    bool w4 = at->p->family == HALFBYTE_FAMILY_W4A8;
    uint32_t s = FP32_ONE;
    if (a_varies)
        s = oracle_a_block_scale(at->p, at->o, at->group, at->row, b);
    if (b_varies) {
        uint32_t sb = oracle_b_block_scale(at->p, at->o, at->group, at->column, b);
        s = a_varies ? oracle_mul(s, sb) : sb;
    }
    if (w4)
        s = a_varies || b_varies ? oracle_mul(s, FP32_512) : FP32_512;
    return s;
}

void oracle_split_range(const halfbyte_problem *p, int64_t i, int64_t *first, int64_t *end)
{
    int64_t splits = p->k_splits > 1 ? p->k_splits : 1;
    int64_t count = oracle_blocks(p).count;
    *first = 0;
    for (int64_t before = 0; before < i; before++)
        *first += count / splits + (before < count % splits);
    *end = *first + count / splits + (i < count % splits);
}

static uint32_t all_blocks(const struct place *at)
{
    int64_t splits = at->p->k_splits > 1 ? at->p->k_splits : 1;
    uint32_t total = 0;
    for (int64_t i = 0; i < splits; i++) {
        int64_t first, end;
        oracle_split_range(at->p, i, &first, &end);
        uint32_t acc = 0;
        for (int64_t b = first; b < end; b++)
            acc = oracle_fma(block_partial(at, b), block_scale(at, b), acc);
        total = i == 0 ? acc : oracle_add(total, acc);
    }
    return total;
}

static bool is_outer(halfbyte_scale_mode mode)
{
    return mode == HALFBYTE_SCALE_TENSOR || mode == HALFBYTE_SCALE_OUTER;
}

/* Section 6. */
static uint32_t epilogue(const struct place *at, uint32_t x)
{
    const halfbyte_problem *p = at->p;
    const halfbyte_operands *o = at->o;
    if (is_outer(p->a_scale.mode))
        x = oracle_mul(x, oracle_a_outer_scale(p, o, at->group, at->row));
    if (is_outer(p->b_scale.mode))
        x = oracle_mul(x, oracle_b_outer_scale(p, o, at->group, at->column));
    if (p->channel_scale_type != HALFBYTE_TYPE_NONE)
        x = oracle_mul(
            x, oracle_vector(&o->channel_scale, p->channel_scale_type, at->group, at->column));
    if (p->alpha_mode == HALFBYTE_ALPHA_HOST)
        x = oracle_mul(x, oracle_load(&o->alpha, HALFBYTE_TYPE_F32, 0));
    if (p->alpha_mode == HALFBYTE_ALPHA_DEVICE)
        x = oracle_mul(x, oracle_load(o->alpha_pointer, HALFBYTE_TYPE_F32, 0));
    uint32_t beta = oracle_load(&o->beta, HALFBYTE_TYPE_F32, 0);
    if (p->c_type != HALFBYTE_TYPE_NONE && (beta & 0x7fffffffu) != 0)
        x = oracle_fma(beta, oracle_c(p, o, at->group, at->row, at->column), x);
    if (p->bias_type != HALFBYTE_TYPE_NONE)
        x = oracle_add(x, oracle_vector(&o->bias, p->bias_type, at->group, at->column));
    return p->d_type == HALFBYTE_TYPE_F32 ? x : oracle_narrow(p->d_type, x);
}

uint32_t oracle_element(const halfbyte_problem *p, const halfbyte_operands *o, int64_t group,
                        int64_t row, int64_t column)
{
    struct place at = {p, o, group, row, column};
    return epilogue(&at, all_blocks(&at));
}
