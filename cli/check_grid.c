/* SPDX-License-Identifier: Apache-2.0 */
/* The problems of `halfbyte check`: every pair of scale modes, the rest drawn by seed. */
#include "check.h"
#include "random.h"

static const halfbyte_scale_mode a_modes[] = {HALFBYTE_SCALE_NONE, HALFBYTE_SCALE_TENSOR,
                                              HALFBYTE_SCALE_OUTER, HALFBYTE_SCALE_1X128};

typedef struct b_choice {
    halfbyte_family family;
    halfbyte_scale_mode mode;
    int64_t weight_group_size;
} b_choice;

static const b_choice b_choices[] = {
    {HALFBYTE_FAMILY_FP8, HALFBYTE_SCALE_NONE, 0},
    {HALFBYTE_FAMILY_FP8, HALFBYTE_SCALE_TENSOR, 0},
    {HALFBYTE_FAMILY_FP8, HALFBYTE_SCALE_OUTER, 0},
    {HALFBYTE_FAMILY_FP8, HALFBYTE_SCALE_1X128, 0},
    {HALFBYTE_FAMILY_FP8, HALFBYTE_SCALE_128X128, 0},
    {HALFBYTE_FAMILY_W4A8, HALFBYTE_SCALE_NONE, 0},
    {HALFBYTE_FAMILY_W4A8, HALFBYTE_SCALE_TENSOR, 0},
    {HALFBYTE_FAMILY_W4A8, HALFBYTE_SCALE_OUTER, 0},
    {HALFBYTE_FAMILY_W4A8, HALFBYTE_SCALE_K_GROUP, 32},
    {HALFBYTE_FAMILY_W4A8, HALFBYTE_SCALE_K_GROUP, 64},
    {HALFBYTE_FAMILY_W4A8, HALFBYTE_SCALE_K_GROUP, 128},
    {HALFBYTE_FAMILY_W4A8, HALFBYTE_SCALE_K_GROUP, 0},
};
enum { NUM_A = sizeof a_modes / sizeof a_modes[0], NUM_B = sizeof b_choices / sizeof b_choices[0] };

int check_num_problems(void)
{
    return NUM_A * NUM_B;
}

/* Numbers of one problem, drawn one after the other. */
typedef struct draws {
    uint64_t seed, next;
} draws;

static int64_t draw(draws *from, int64_t below)
{
    return (int64_t)(random_bits(from->seed, RANDOM_SHAPE, from->next++) % (uint64_t)below);
}

static void draw_b_scale(draws *from, halfbyte_problem *problem)
{
    static const halfbyte_type types[] = {HALFBYTE_TYPE_NONE, HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16,
                                          HALFBYTE_TYPE_E4M3};
    halfbyte_scale_spec *spec = &problem->b_scale;
    int64_t span = problem->weight_group_size;
    bool int4 = problem->family == HALFBYTE_FAMILY_W4A8;
    if (int4 && spec->mode == HALFBYTE_SCALE_OUTER)
        spec->type = types[draw(from, 3)];
    if (spec->mode == HALFBYTE_SCALE_K_GROUP)
        spec->type = types[draw(from, 4)];
    if (spec->mode >= HALFBYTE_SCALE_1X128)
        spec->layout = (halfbyte_scale_layout)draw(from, 2);
    if (span > 32 && problem->a_scale.mode != HALFBYTE_SCALE_1X128)
        problem->group_k_offset = 32 * draw(from, span / 32);
    if (span > 0 && (problem->k + problem->group_k_offset + span - 1) / span % 4 == 0 &&
        draw(from, 2) == 0)
        spec->layout = HALFBYTE_SCALE_INTERLEAVED4;
}

static void draw_epilogue(draws *from, halfbyte_problem *problem)
{
    static const halfbyte_type outputs[] = {HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F32,
                                            HALFBYTE_TYPE_F16};
    static const halfbyte_type inputs[] = {HALFBYTE_TYPE_NONE, HALFBYTE_TYPE_F32,
                                           HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16};
    problem->d_type = outputs[draw(from, 3)];
    problem->c_type = inputs[draw(from, 4)];
    problem->bias_type = inputs[draw(from, 4)];
    problem->channel_scale_type = draw(from, 3) == 0 ? HALFBYTE_TYPE_F32 : HALFBYTE_TYPE_NONE;
    problem->alpha_mode = draw(from, 3) == 0 ? HALFBYTE_ALPHA_HOST : HALFBYTE_ALPHA_NONE;
    int64_t span = problem->weight_group_size > 0 ? problem->weight_group_size : 128;
    int64_t blocks = (problem->k + problem->group_k_offset + span - 1) / span;
    problem->k_splits = draw(from, 4) == 0 ? 1 + draw(from, blocks < 3 ? blocks : 3) : 0;
}

void check_make_problem(uint64_t seed, int index, halfbyte_problem *problem, int64_t *gap)
{
    static const int64_t ms[] = {1, 2, 7, 17, 33};
    static const int64_t ns[] = {1, 5, 16, 24, 67, 130};
    static const int64_t ks[] = {1, 31, 32, 96, 128, 200, 256, 416, 512, 640};
    draws from = {.seed = seed, .next = (uint64_t)index << 32};
    const b_choice *b = &b_choices[index % NUM_B];
    *problem = halfbyte_problem_init();
    problem->family = b->family;
    problem->b_scale.mode = b->mode;
    problem->weight_group_size = b->weight_group_size;
    problem->a_scale.mode = a_modes[index / NUM_B];
    problem->m_max = ms[draw(&from, 5)];
    problem->n = ns[draw(&from, 6)];
    problem->k = ks[draw(&from, 10)];
    if (problem->a_scale.mode == HALFBYTE_SCALE_1X128)
        problem->a_scale.layout = (halfbyte_scale_layout)draw(&from, 2);
    problem->grouping = (halfbyte_grouping)draw(&from, 4);
    problem->groups = problem->grouping == HALFBYTE_GROUPING_DENSE ? 1 : 1 + draw(&from, 4);
    bool contiguous = problem->grouping == HALFBYTE_GROUPING_RANGES ||
                      problem->grouping == HALFBYTE_GROUPING_LABELS;
    *gap = contiguous ? draw(&from, 3) : 0;
    if (problem->grouping == HALFBYTE_GROUPING_MASKED)
        problem->m_max = problem->m_max > 7 ? 7 : problem->m_max;
    if (problem->grouping == HALFBYTE_GROUPING_RANGES && draw(&from, 2) == 0)
        problem->index_type = HALFBYTE_INDEX_INT64;
    if (problem->grouping != HALFBYTE_GROUPING_DENSE && draw(&from, 2) == 0)
        problem->flags = HALFBYTE_ZERO_FILL_PADDING;
    draw_b_scale(&from, problem);
    draw_epilogue(&from, problem);
    if (problem->family == HALFBYTE_FAMILY_W4A8 && draw(&from, 3) == 0)
        problem->b_layout = HALFBYTE_B_PACKED;
}
