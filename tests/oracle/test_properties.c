/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the result must not depend on: a row's neighbours and its place, the order of groups, how m
 * is cut into calls, threads, code path, zeros behind a ragged k. And what k_splits means, through
 * the public API alone. Every property over every kind of problem of both families.
 */
#include "oracle/exact.h"
#include "oracle/gemm_case.h"
#include "oracle/operand.h"
#include "oracle/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int rounds = 1;
static halfbyte_device *device;

struct property {
    long problems, compared, equal;
};

typedef void check_function(struct gemm_case *c, struct random *r, struct property *property);

static const halfbyte_family families[2] = {HALFBYTE_FAMILY_FP8, HALFBYTE_FAMILY_W4A8};

/* Runs check on drawn problems of every kind, DENSE, that `suits` accepts; row-major B if asked. */
static struct property for_every_kind(check_function *check,
                                      bool (*suits)(const struct case_kind *), bool row_major,
                                      uint64_t seed)
{
    struct property property = {0, 0, 0};
    struct random r = {seed};
    for (int f = 0; f < 2; f++) {
        for (int i = 0; i < rounds * case_kind_count(families[f]); i++) {
            struct case_kind kind =
                case_kind_at(families[f], i % case_kind_count(families[f]), FORM_DENSE);
            struct case_options options = {.aligned = false};
            struct gemm_case c = {.memories = 0};
            if (suits && !suits(&kind))
                continue;
            do {
                case_free(&c);
                case_make(&c, &r, &kind, &options);
            } while (row_major && c.problem.b_layout != HALFBYTE_B_ROW_MAJOR);
            long before = property.compared - property.equal;
            case_run(&c, device);
            check(&c, &r, &property);
            property.problems++;
            if (property.compared - property.equal != before)
                case_print(&c);
            case_free(&c);
        }
    }
    print_message("%ld problems, %ld rows compared\n", property.problems, property.compared);
    assert_int_equal(property.equal, property.compared);
    assert_true(property.compared > property.problems);
    return property;
}

static void compare_row(const struct gemm_case *v, int64_t i, const struct gemm_case *c, int64_t j,
                        struct property *property)
{
    property->compared++;
    property->equal += transform_same_row(v, i, c, j);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void check_alone(struct gemm_case *c, struct random *r, struct property *property)
{
    for (int trial = 0; trial < 4; trial++) {
        int64_t row = random_below(r, c->operands.m);
        struct gemm_case v;
        transform_take_rows(c, &v, row, 1);
        case_run(&v, device);
        compare_row(&v, 0, c, row, property);
    }
}

static void check_elsewhere(struct gemm_case *c, struct random *r, struct property *property)
{
    int64_t map[40], rows = random_between(r, 1, 40);
    for (int64_t i = 0; i < rows; i++)
        map[i] = random_percent(r, 30) ? -1 : random_below(r, c->operands.m);
    map[rows - 1] = c->operands.m - 1;
    struct gemm_case v;
    transform_gather_rows(c, &v, map, rows, r);
    case_run(&v, device);
    for (int64_t i = 0; i < rows; i++) {
        if (map[i] >= 0)
            compare_row(&v, i, c, map[i], property);
    }
}

static void check_split_m(struct gemm_case *c, struct random *r, struct property *property)
{
    int64_t m = c->operands.m, cut = random_between(r, 0, m);
    struct gemm_case v;
    for (int half = 0; half < 2; half++) {
        int64_t first = half ? cut : 0, count = half ? m - cut : cut;
        if (count == 0)
            continue;
        transform_take_rows(c, &v, first, count);
        case_run(&v, device);
        for (int64_t i = 0; i < count; i++)
            compare_row(&v, i, c, first + i, property);
    }
}

static void row_alone(void **state)
{
    (void)state;
    for_every_kind(check_alone, NULL, false, 61);
}

static void row_elsewhere(void **state)
{
    (void)state;
    for_every_kind(check_elsewhere, NULL, false, 62);
}

static void m_in_two_calls(void **state)
{
    (void)state;
    for_every_kind(check_split_m, NULL, false, 63);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The same rows as one group among others, in other orders, whose weights are random bytes. */
static void check_in_a_group(struct gemm_case *c, struct random *r, struct property *property)
{
    enum { GROUPS = 4 };
    int64_t map[GROUPS] = {-1, -1, -1, -1}, place = random_below(r, GROUPS);
    int64_t m = c->operands.m;
    map[place] = 0;
    struct gemm_case v;
    transform_regroup(c, &v, map, GROUPS, r);
    v.problem.grouping = HALFBYTE_GROUPING_RANGES;
    v.problem.index_type = HALFBYTE_INDEX_INT64;
    int64_t cut = random_between(r, 0, m), last = random_between(r, cut, m);
    int64_t ends[GROUPS];
    for (int64_t g = 0; g < GROUPS; g++)
        ends[g] = g < place ? cut : g == place ? last : m;
    if (place == 0)
        cut = 0;
    v.operands.groups.ends = ends;
    case_run(&v, device);
    for (int64_t i = cut; i < last; i++)
        compare_row(&v, i, c, i, property);
}

static void row_in_a_group(void **state)
{
    (void)state;
    for_every_kind(check_in_a_group, NULL, false, 64);
}

/* Groups of a RANGES problem in another order, each with its rows. */
static void groups_permuted(void **state)
{
    (void)state;
    struct random r = {65};
    struct property property = {0, 0, 0};
    for (int f = 0; f < 2; f++) {
        for (int i = 0; i < rounds * case_kind_count(families[f]); i++) {
            struct case_kind kind =
                case_kind_at(families[f], i % case_kind_count(families[f]), FORM_STARTS_COUNTS);
            struct case_options options = {.aligned = false};
            struct gemm_case c, v;
            case_make(&c, &r, &kind, &options);
            case_run(&c, device);
            int64_t groups = oracle_groups(&c.problem), map[8], start[8], count[8];
            for (int64_t g = 0; g < groups; g++)
                map[g] = (g + 1 + i) % groups; /* turned round, or mirrored below */
            for (int64_t g = 0; g < groups && i % 2; g++)
                map[g] = groups - 1 - g;
            transform_regroup(&c, &v, map, groups, &r);
            for (int64_t g = 0; g < groups; g++) {
                start[g] = count[g] = 0;
                for (int64_t row = c.operands.m - 1; row >= 0; row--) {
                    if (oracle_group_owns(&c.problem, &c.before, map[g], row)) {
                        start[g] = row;
                        count[g]++;
                    }
                }
            }
            v.problem.index_type = HALFBYTE_INDEX_INT64;
            v.operands.groups = (halfbyte_groups){.starts = start, .counts = count};
            case_run(&v, device);
            for (int64_t row = 0; row < c.operands.m; row++) {
                bool owned = false;
                for (int64_t g = 0; g < groups; g++)
                    owned |= oracle_group_owns(&c.problem, &c.before, g, row);
                if (owned)
                    compare_row(&v, row, &c, row, &property);
            }
            property.problems++;
            case_free(&c);
        }
    }
    assert_true(property.compared > 4 * property.problems);
    assert_int_equal(property.equal, property.compared);
}

/* ---- threads and code paths ------------------------------------------------------------------ */

static void threads_and_code_paths(void **state)
{
    (void)state;
    static const int threads[3] = {1, 2, 7};
    static const halfbyte_isa isas[4] = {HALFBYTE_ISA_AUTO, HALFBYTE_ISA_PORTABLE,
                                         HALFBYTE_ISA_AVX2, HALFBYTE_ISA_AVX512};
    struct random r = {66};
    long compared = 0, equal = 0;
    int devices = 0;
    halfbyte_device *all[12];
    for (int i = 0; i < 4; i++) {
        for (int t = 0; t < 3 && case_has_isa(isas[i]); t++)
            all[devices++] = case_device(HALFBYTE_PROFILE_ANY, threads[t], isas[i]);
    }
    for (int i = 0; i < 160 * rounds; i++) {
        halfbyte_family family = families[i % 2];
        struct case_kind kind = case_kind_at(family, (int)random_below(&r, case_kind_count(family)),
                                             (enum group_form)random_below(&r, FORM_COUNT));
        struct case_options options = {.m = random_between(&r, 1, 70)};
        struct gemm_case c;
        case_make(&c, &r, &kind, &options);
        uint8_t *first = case_memory(&c, c.d_bytes, 0);
        for (int d = 0; d < devices; d++) {
            memcpy(c.d_base, c.d_before, c.d_bytes);
            case_run(&c, all[d]);
            if (d == 0)
                memcpy(first, c.d_base, c.d_bytes);
            compared++;
            equal += memcmp(first, c.d_base, c.d_bytes) == 0;
        }
        case_free(&c);
    }
    for (int d = 0; d < devices; d++)
        halfbyte_device_close(all[d]);
    print_message("%d devices\n", devices);
    assert_true(devices >= 6);
    assert_int_equal(compared, 160L * rounds * devices);
    assert_int_equal(equal, compared);
}

/* ---- k --------------------------------------------------------------------------------------- */

static void check_wider(struct gemm_case *c, struct random *r, struct property *property)
{
    (void)r;
    struct gemm_case v;
    transform_widen_k(c, &v);
    case_run(&v, device);
    for (int64_t row = 0; row < c->operands.m; row++)
        compare_row(&v, row, c, row, property);
}

static void ragged_k_in_a_wider_buffer(void **state)
{
    (void)state;
    for_every_kind(check_wider, NULL, true, 67);
}

static bool along_k_only(const struct case_kind *kind)
{
    bool a =
        kind->a_scale.mode == HALFBYTE_SCALE_NONE || kind->a_scale.mode == HALFBYTE_SCALE_1X128;
    bool b = kind->b_scale.mode != HALFBYTE_SCALE_TENSOR &&
             kind->b_scale.mode != HALFBYTE_SCALE_OUTER &&
             kind->b_scale.layout != HALFBYTE_SCALE_INTERLEAVED4;
    bool grids = kind->a_scale.mode == HALFBYTE_SCALE_NONE || kind->weight_group_size == 0 ||
                 kind->weight_group_size == 128;
    return a && b && grids;
}

/* `to` takes over the memory of `from`, which took some after `to` was copied from it. */
static void take_memory(struct gemm_case *to, const struct gemm_case *from)
{
    memcpy(to->memory, from->memory, sizeof to->memory);
    to->memories = from->memories;
}

/* With s splits D is the add_rn chain of s products over their own blocks, computed apart. */
static void check_splits(struct gemm_case *c, struct random *r, struct property *property)
{
    struct gemm_case whole, part;
    transform_again(c, &whole);
    take_memory(&whole, c);
    halfbyte_problem *p = &whole.problem;
    p->d_type = HALFBYTE_TYPE_F32;
    p->c_type = p->bias_type = p->channel_scale_type = HALFBYTE_TYPE_NONE;
    p->alpha_mode = HALFBYTE_ALPHA_NONE;
    int64_t blocks = oracle_blocks(p).count;
    p->k_splits = random_between(r, 1, blocks < 7 ? blocks : 7);
    size_t bytes = (size_t)(c->operands.m * p->n) * sizeof(uint32_t);
    uint32_t *d = case_memory(&whole, bytes, 0), *sum = case_memory(&whole, bytes, 0);
    whole.operands.d.data = d;
    whole.before = whole.operands;
    case_run(&whole, device);
    int64_t first = 0;
    for (int64_t i = 0; i < p->k_splits; i++) {
        int64_t count = blocks / p->k_splits + (i < blocks % p->k_splits);
        uint32_t *one = case_memory(&whole, bytes, 0);
        transform_take_blocks(&whole, &part, first, first + count);
        part.operands.d.data = one;
        case_run(&part, device);
        for (int64_t e = 0; e < c->operands.m * p->n; e++)
            sum[e] = i == 0 ? one[e] : oracle_add(sum[e], one[e]);
        first += count;
    }
    take_memory(c, &whole);
    for (int64_t e = 0; e < c->operands.m * p->n; e++) {
        property->compared++;
        property->equal += sum[e] == d[e];
    }
}

static void k_splits_definition(void **state)
{
    (void)state;
    for_every_kind(check_splits, along_k_only, true, 68);
}

static int open_device(void **state)
{
    (void)state;
    device = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AUTO);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    halfbyte_device_close(device);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_alone),
        cmocka_unit_test(row_elsewhere),
        cmocka_unit_test(m_in_two_calls),
        cmocka_unit_test(row_in_a_group),
        cmocka_unit_test(groups_permuted),
        cmocka_unit_test(threads_and_code_paths),
        cmocka_unit_test(ragged_k_in_a_wider_buffer),
        cmocka_unit_test(k_splits_definition),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
