/* SPDX-License-Identifier: Apache-2.0 */
/* One problem of `halfbyte check`, looked at from all sides. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "common.h"
#include "problem.h"
#include "random.h"
#include "reference.h"

/* What a difference is reported with. */
typedef struct context {
    check_run *run;
    instance *made;
    uint64_t seed;
    char text[PROBLEM_TEXT_BYTES + 64]; /* problem, flavour, seed */
    size_t d_bytes, elem_bytes;
    unsigned char *expected; /* D of the base device, unowned rows included */
} context;

static unsigned long load_bits(const unsigned char *at, size_t bytes)
{
    uint32_t bits = 0;
    memcpy(&bits, at, bytes); /* little-endian */
    return bits;
}

/* Counts the elements of two result buffers that differ. */
static void compare(const context *at, check_count *count, const unsigned char *got,
                    const unsigned char *expected, size_t elems, const char *what)
{
    count->compared += elems;
    if (memcmp(got, expected, elems * at->elem_bytes) == 0)
        return;
    for (size_t i = 0; i < elems; ++i) {
        const unsigned char *x = got + i * at->elem_bytes;
        const unsigned char *y = expected + i * at->elem_bytes;
        if (memcmp(x, y, at->elem_bytes) == 0)
            continue;
        ++count->mismatches;
        check_mismatch(count, "%s: %s: element %zu is %0*lx, expected %0*lx", at->text, what, i,
                       (int)at->elem_bytes * 2, load_bits(x, at->elem_bytes),
                       (int)at->elem_bytes * 2, load_bits(y, at->elem_bytes));
    }
}

static int check_paths(const context *at)
{
    check_count *count = &at->run->counts[CHECK_PATHS];
    const check_devices *devices = &at->run->devices;
    ++count->problems;
    for (int i = 0; i < devices->count; ++i) {
        int code = instance_run(at->made, devices->others[i], NULL, NULL);
        if (code != CLI_OK)
            return code;
        compare(at, count, at->made->d, at->expected, at->d_bytes / at->elem_bytes,
                devices->names[i]);
    }
    return CLI_OK;
}

/* The other layout of the weights. */
static int check_packed(const context *at)
{
    check_count *count = &at->run->counts[CHECK_PACKED];
    instance *made = at->made;
    halfbyte_b_layout layout = made->problem.b_layout;
    if (made->problem.family != HALFBYTE_FAMILY_W4A8)
        return CLI_OK;
    ++count->problems;
    bool was_packed = layout == HALFBYTE_B_PACKED;
    made->problem.b_layout = was_packed ? HALFBYTE_B_ROW_MAJOR : HALFBYTE_B_PACKED;
    const void *data = made->operands.b.data;
    made->operands.b.data = made->b;
    int code = instance_pack(made, at->run->devices.base);
    if (code == CLI_OK)
        code = instance_run(made, at->run->devices.base, NULL, NULL);
    if (code == CLI_OK)
        compare(at, count, made->d, at->expected, at->d_bytes / at->elem_bytes,
                was_packed ? "row-major weights" : "packed weights");
    made->problem.b_layout = layout;
    made->operands.b.data = was_packed ? data : made->b;
    return code;
}

static const void *offset(const void *data, int64_t elems, halfbyte_type type)
{
    int bits = type == HALFBYTE_TYPE_NONE ? 32 : halfbyte_type_bits(type);
    return (const char *)data + elems * bits / 8;
}

/* One owned row of an instance as a dense problem of its own, by pointers into the same tensors. */
static void single_row(const instance *made, int64_t row, halfbyte_problem *problem,
                       halfbyte_operands *operands)
{
    int64_t group = made->owner[row];
    int64_t at = made->owned[row];
    bool masked = made->problem.grouping == HALFBYTE_GROUPING_MASKED;
    const halfbyte_scale_spec *a_spec = &made->problem.a_scale;
    int64_t a_elems = made->a_extent.mn * made->a_extent.kb;
    int64_t b_elems = made->b_extent.mn * made->b_extent.kb;
    *problem = made->problem;
    *operands = made->operands;
    problem->grouping = HALFBYTE_GROUPING_DENSE;
    problem->m_max = 1;
    problem->groups = 1;
    problem->flags = 0;
    problem->b_layout = HALFBYTE_B_ROW_MAJOR;
    operands->m = 1;
    operands->a.data = made->a + at * operands->a.ld;
    operands->b.data =
        offset(made->b, group * made->n * operands->b.ld,
               problem->family == HALFBYTE_FAMILY_W4A8 ? HALFBYTE_TYPE_INT4 : HALFBYTE_TYPE_E4M3);
    operands->b_scale.data = offset(made->b_scale, group * b_elems, problem->b_scale.type);
    operands->channel_scale.data = made->channel_scale + group * made->n;
    operands->bias.data = offset(made->bias, group * made->n, problem->bias_type);
    operands->c.data = offset(made->c, at * made->n, problem->c_type);
    operands->d.data = (void *)(uintptr_t)offset(made->d, at * made->n, problem->d_type);
    if (a_spec->mode == HALFBYTE_SCALE_OUTER || a_spec->mode == HALFBYTE_SCALE_1X128) {
        int64_t in_group = masked ? at - group * made->m : at;
        int64_t base = masked ? group * a_elems : 0;
        operands->a_scale.data =
            made->a_scale + base + scale_position(a_spec, &made->a_extent, in_group, 0);
    }
    operands->groups = (halfbyte_groups){.starts = NULL};
}

/* Batch invariance: some rows alone give what they gave among the others. */
static int check_rows(const context *at)
{
    check_count *count = &at->run->counts[CHECK_ROWS];
    const instance *made = at->made;
    size_t row_bytes = (size_t)made->n * at->elem_bytes;
    ++count->problems;
    for (int i = 0; i < 3 && made->owned_rows > 0; ++i) {
        halfbyte_problem problem;
        halfbyte_operands operands;
        halfbyte_plan *plan = NULL;
        int64_t row =
            (int64_t)(random_bits(at->seed, RANDOM_SHAPE, UINT64_C(1) << 60 | (uint64_t)i) %
                      (uint64_t)made->owned_rows);
        single_row(made, row, &problem, &operands);
        memset(operands.d.data, 0xff, row_bytes);
        halfbyte_status status = halfbyte_plan_create(&plan, &problem, at->run->devices.base);
        if (status == HALFBYTE_SUCCESS)
            status = halfbyte_run(plan, &operands, NULL, 0, NULL);
        halfbyte_plan_destroy(plan);
        if (status != HALFBYTE_SUCCESS)
            return cli_fail_status(status, at->text);
        compare(at, count, operands.d.data, at->expected + (size_t)made->owned[row] * row_bytes,
                (size_t)made->n, "a row alone");
    }
    return CLI_OK;
}

static int check_bounds(const context *at)
{
    check_count *count = &at->run->counts[CHECK_BOUNDS];
    const instance *made = at->made;
    reference exact;
    int code = reference_create(&exact, made);
    ++count->problems;
    for (int64_t row = 0; code == CLI_OK && row < made->owned_rows; ++row) {
        for (int64_t column = 0; column < made->n; ++column) {
            double value = 0;
            double bound = 0;
            float got = 0;
            size_t position = (size_t)(made->owned[row] * made->n + column);
            reference_element(&exact, row, column, &value, &bound);
            halfbyte_convert(&got, HALFBYTE_TYPE_F32, at->expected + position * at->elem_bytes,
                             made->problem.d_type, 1);
            /* What fp16 cannot hold becomes infinite; the bound is for the rest. */
            if (made->problem.d_type == HALFBYTE_TYPE_F16 && fabs(value) + bound >= 65504)
                continue;
            ++count->compared;
            if (fabs((double)got - value) <= bound)
                continue;
            ++count->mismatches;
            check_mismatch(count, "%s: row %lld, column %lld: %.9g is further than %.3g from %.9g",
                           at->text, (long long)row, (long long)column, (double)got, bound, value);
        }
    }
    reference_free(&exact);
    return code;
}

static const char *flavour_name(flavour kind)
{
    return kind == FLAVOUR_PLAIN ? "plain" : kind == FLAVOUR_WIDE ? "wide" : "special";
}

static int run_checks(context *at, flavour kind)
{
    const check_run *run = at->run;
    instance *made = at->made;
    int code = instance_run(made, run->devices.base, NULL, NULL);
    if (code != CLI_OK)
        return code;
    memcpy(at->expected, made->d, at->d_bytes);
    if (run->selected[CHECK_PATHS])
        code = check_paths(at);
    if (code == CLI_OK && run->selected[CHECK_ROWS])
        code = check_rows(at);
    if (code == CLI_OK && run->selected[CHECK_PACKED])
        code = check_packed(at);
    if (code == CLI_OK && run->selected[CHECK_BOUNDS] && kind != FLAVOUR_SPECIAL)
        code = check_bounds(at);
    return code;
}

int check_problem(check_run *run, const halfbyte_problem *problem, int64_t gap, uint64_t seed,
                  flavour kind)
{
    instance made;
    context at = {.run = run, .made = &made, .seed = seed};
    halfbyte_problem sized = *problem;
    char text[PROBLEM_TEXT_BYTES];
    sized.m_max += gap * sized.groups;
    problem_print(&sized, text);
    snprintf(at.text, sizeof at.text, "%s, %s numbers, seed %llu", text, flavour_name(kind),
             (unsigned long long)seed);
    int64_t *sizes = cli_alloc((uint64_t)problem->groups, sizeof *sizes);
    if (sizes == NULL)
        return cli_fail_memory((uint64_t)problem->groups * sizeof *sizes);
    /* Uneven groups, some of them empty; MASKED: not always all rows. */
    int64_t left = problem->m_max;
    for (int64_t group = 0; group < problem->groups; ++group) {
        bool masked = problem->grouping == HALFBYTE_GROUPING_MASKED;
        bool last = group + 1 == problem->groups;
        int64_t share =
            (int64_t)(random_bits(seed, RANDOM_SHAPE, UINT64_C(1) << 61 | (uint64_t)group) %
                      (uint64_t)((masked ? problem->m_max : left) + 1));
        sizes[group] = !masked && last ? left : share;
        left -= masked ? 0 : sizes[group];
    }
    int code = instance_create(&made, &sized, sizes, gap);
    free(sizes);
    if (code == CLI_OK)
        code = instance_randomize_weights(&made, seed, kind);
    if (code == CLI_OK)
        code = instance_randomize_activations(&made, seed, kind);
    if (code == CLI_OK)
        code = instance_pack(&made, run->devices.base);
    if (code == CLI_OK) {
        at.elem_bytes = (size_t)halfbyte_type_bits(problem->d_type) / 8;
        at.d_bytes = (size_t)(made.a_rows * made.n) * at.elem_bytes;
        at.expected = cli_alloc(at.d_bytes, 1);
        code = at.expected != NULL ? run_checks(&at, kind) : cli_fail_memory(at.d_bytes);
    }
    free(at.expected);
    instance_free(&made);
    return code;
}

/* ---- chains ---------------------------------------------------------------------------------- */

/* With no scales and an fp32 result, one block of 128 is four chained instructions and nothing
 * else: fma(partial, 1, +0) = partial. */
static int chain_expected(const instance *made, int64_t row, int64_t column, uint32_t *bits)
{
    *bits = 0;
    for (int64_t k = 0; k < made->k; k += 32) {
        halfbyte_status status =
            halfbyte_tensor_core_dot(HALFBYTE_TYPE_E4M3, made->a + row * made->operands.a.ld + k,
                                     made->b + column * made->operands.b.ld + k, *bits, bits);
        if (status != HALFBYTE_SUCCESS)
            return cli_fail_status(status, "chains");
    }
    return CLI_OK;
}

static int compare_chains(check_run *run, const instance *made, const uint32_t *expected,
                          halfbyte_device *device, const char *name)
{
    check_count *count = &run->counts[CHECK_CHAINS];
    instance copy = *made;
    int code = instance_run(&copy, device, NULL, NULL);
    const unsigned char *got = made->d;
    for (int64_t i = 0; code == CLI_OK && i < made->m * made->n; ++i) {
        uint32_t bits = 0;
        memcpy(&bits, got + i * 4, sizeof bits);
        ++count->compared;
        if (bits == expected[i])
            continue;
        ++count->mismatches;
        check_mismatch(count, "%s: output [%lld, %lld] is %08lx, the instruction gives %08lx", name,
                       (long long)(i / made->n), (long long)(i % made->n), (unsigned long)bits,
                       (unsigned long)expected[i]);
    }
    return code;
}

static int compare_all_chains(check_run *run, instance *made, uint32_t *expected)
{
    int code = CLI_OK;
    for (int64_t i = 0; code == CLI_OK && i < made->m * made->n; ++i)
        code = chain_expected(made, i / made->n, i % made->n, &expected[i]);
    ++run->counts[CHECK_CHAINS].problems;
    if (code == CLI_OK)
        code = compare_chains(run, made, expected, run->devices.base, "portable, 1 thread");
    for (int i = 0; code == CLI_OK && i < run->devices.count; ++i)
        code = compare_chains(run, made, expected, run->devices.others[i], run->devices.names[i]);
    return code;
}

int check_chains(check_run *run, uint64_t seed)
{
    int code = CLI_OK;
    for (int kind = FLAVOUR_PLAIN; code == CLI_OK && kind <= FLAVOUR_SPECIAL; ++kind) {
        halfbyte_problem problem = halfbyte_problem_init();
        instance made;
        problem.family = HALFBYTE_FAMILY_FP8;
        problem.m_max = 48;
        problem.n = 56;
        problem.k = 128;
        problem.groups = 1;
        problem.d_type = HALFBYTE_TYPE_F32;
        code = instance_create(&made, &problem, NULL, 0);
        if (code == CLI_OK)
            code = instance_randomize_weights(&made, seed, (flavour)kind);
        if (code == CLI_OK)
            code = instance_randomize_activations(&made, seed, (flavour)kind);
        uint32_t *expected = cli_alloc((uint64_t)(problem.m_max * problem.n), sizeof *expected);
        if (code == CLI_OK && expected == NULL)
            code = cli_fail_memory((uint64_t)(problem.m_max * problem.n) * sizeof *expected);
        if (code == CLI_OK)
            code = compare_all_chains(run, &made, expected);
        free(expected);
        instance_free(&made);
    }
    return code;
}
