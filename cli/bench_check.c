/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors for a measurement, and a sample of their product computed anew by the CPU model. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common.h"

enum { ROWS = 4 }; /* of a group */

int bench_fill(instance *made, halfbyte_device *model, uint64_t seed, bool minus8)
{
    int code = instance_randomize_weights(made, seed, FLAVOUR_QUICK);
    if (code == CLI_OK && minus8 && made->problem.family == HALFBYTE_FAMILY_W4A8 && made->n > 0 &&
        made->k > 0)
        made->b[0] = (uint8_t)((made->b[0] & 0xf0) | 8);
    if (code == CLI_OK)
        code = instance_randomize_activations(made, seed, FLAVOUR_QUICK);
    return code == CLI_OK ? instance_pack(made, model) : code;
}

typedef struct sample {
    instance *made;
    halfbyte_device *model;
    int64_t *starts, *ends; /* rows that are computed; MASKED: of the group */
    const char *d;
    uint64_t *compared, *different;
} sample;

static bool is_masked(const sample *state)
{
    return state->made->problem.grouping == HALFBYTE_GROUPING_MASKED;
}

/* A few rows of the first, the middle and the last group that has rows: its first or its last. */
static void choose_rows(sample *state, bool last)
{
    const instance *made = state->made;
    int64_t first_group = 0, last_group = made->groups - 1, at = 0;
    while (first_group < made->groups - 1 && made->sizes[first_group] == 0)
        ++first_group;
    while (last_group > first_group && made->sizes[last_group] == 0)
        --last_group;
    for (int64_t group = 0; group < made->groups; at += made->sizes[group++]) {
        int64_t size = made->sizes[group];
        bool wanted =
            group == first_group || group == last_group || group == (first_group + last_group) / 2;
        int64_t rows = !wanted ? 0 : size < ROWS ? size : ROWS;
        /* owned[at]: the group's first row in the buffer. */
        int64_t start = is_masked(state) || size == 0 ? 0 : made->owned[at];
        state->starts[group] = last ? start + size - rows : start;
        state->ends[group] = state->starts[group] + rows;
    }
}

static int run_model(sample *state)
{
    const instance *made = state->made;
    halfbyte_problem problem = made->problem;
    halfbyte_operands operands = made->operands;
    halfbyte_plan *plan = NULL;
    problem.flags &= ~(uint32_t)HALFBYTE_ZERO_FILL_PADDING;
    problem.index_type = HALFBYTE_INDEX_INT64;
    memset(&operands.groups, 0, sizeof operands.groups);
    if (is_masked(state)) {
        operands.groups.counts = state->ends;
    } else {
        problem.grouping = HALFBYTE_GROUPING_RANGES;
        operands.groups.starts = state->starts;
        operands.groups.ends = state->ends;
    }
    halfbyte_status status = halfbyte_plan_create(&plan, &problem, state->model);
    if (status == HALFBYTE_SUCCESS)
        status = halfbyte_run(plan, &operands, NULL, 0, NULL);
    halfbyte_plan_destroy(plan);
    return status == HALFBYTE_SUCCESS ? CLI_OK : cli_fail_status(status, "the CPU model");
}

static void compare(sample *state)
{
    const instance *made = state->made;
    uint64_t element = (uint64_t)halfbyte_type_bits(made->problem.d_type) / 8;
    for (int64_t group = 0; group < made->groups; ++group) {
        uint64_t base = is_masked(state) ? (uint64_t)(group * made->m) : 0;
        uint64_t at = (base + (uint64_t)state->starts[group]) * (uint64_t)made->n * element;
        uint64_t count = (uint64_t)(state->ends[group] - state->starts[group]) * (uint64_t)made->n;
        for (uint64_t i = 0; i < count; ++i, at += element)
            *state->different += memcmp(state->d + at, (const char *)made->d + at, element) != 0;
        *state->compared += count;
    }
}

int bench_check_rows(instance *made, halfbyte_device *model, const void *d, uint64_t *compared,
                     uint64_t *different)
{
    sample state = {made, model, NULL, NULL, d, compared, different};
    int code = CLI_OK;
    *compared = *different = 0;
    state.starts = cli_alloc((uint64_t)made->groups, sizeof *state.starts);
    state.ends = cli_alloc((uint64_t)made->groups, sizeof *state.ends);
    if (state.starts == NULL || state.ends == NULL)
        code = cli_fail_memory((uint64_t)made->groups * sizeof *state.ends);
    /* Masked rows are counted from the first, so their last ones are no sample of their own. */
    for (int last = 0; code == CLI_OK && last <= !is_masked(&state); ++last) {
        choose_rows(&state, last == 1);
        code = run_model(&state);
        if (code == CLI_OK)
            compare(&state);
    }
    free(state.starts);
    free(state.ends);
    return code;
}
