/* SPDX-License-Identifier: Apache-2.0 */
/* What host code decides for a run that no result shows: which kernels take which groups, and what
 * becomes of the weights in L2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/gemm_launch.h"
#include "api/gemm_select.h"
#include "api/problem_check.h"

enum { SMS = 132 };

static const gemm_kernel_set every_kernel = ((gemm_kernel_set)1 << KERNEL_COUNT) - 1;

/* A product at addresses that nobody touches here. */
typedef struct product {
    halfbyte_problem problem;
    halfbyte_operands operands;
    halfbyte_packed_header header;
} product;

static void *address(uintptr_t number)
{
    return (void *)(number << 40);
}

/* m: rows of A, of MASKED of a plane. */
static void product_make(product *made, halfbyte_family family, halfbyte_grouping grouping,
                         int64_t groups, int64_t m, int64_t n, int64_t k)
{
    const bool fp8 = family == HALFBYTE_FAMILY_FP8;
    halfbyte_problem p = halfbyte_problem_init();
    p.family = family;
    p.grouping = grouping;
    p.groups = groups;
    p.m_max = m;
    p.n = n;
    p.k = k;
    p.d_type = HALFBYTE_TYPE_BF16;
    p.a_scale.mode = HALFBYTE_SCALE_OUTER;
    p.b_scale.mode = fp8 ? HALFBYTE_SCALE_128X128 : HALFBYTE_SCALE_K_GROUP;
    if (!fp8) {
        p.b_scale.type = HALFBYTE_TYPE_BF16;
        p.b_layout = HALFBYTE_B_PACKED;
        p.weight_group_size = 128;
    }
    problem_resolve(&p, HALFBYTE_PROFILE_SM90);
    made->problem = p;
    made->header = (halfbyte_packed_header){.version = 1, .n = n, .k = k, .groups = groups};
    made->operands = halfbyte_operands_init();
    halfbyte_operands *o = &made->operands;
    o->m = m;
    o->a = (halfbyte_matrix_in){address(1), k, m * k};
    o->b = (halfbyte_matrix_in){address(2), k, n * k};
    o->b_header = &made->header;
    o->d = (halfbyte_matrix_out){address(3), n, m * n};
    o->a_scale = (halfbyte_scale_in){address(4), 1, 1, m};
    o->b_scale = (halfbyte_scale_in){address(5), 1, n, n * k / 128};
    o->groups.ends = address(6);
}

static gemm_choice choice_of(const product *made, gemm_kernel_set kernels)
{
    const gemm_kernel_set serving = gemm_select(&made->problem, every_kernel) & kernels;
    assert_true(serving != 0);
    return gemm_choice_for(serving, NULL, &made->problem, &made->operands, SMS);
}

static halfbyte_status encode(const void *context, const gemm_map *from, tensor_map *map)
{
    (void)context, (void)from, (void)map;
    return HALFBYTE_SUCCESS;
}

static const gemm_launches *launches_of(const product *made, const gemm_choice *choice)
{
    static const gemm_machine machine = {SMS, encode, NULL};
    static gemm_launches launches;
    assert_int_equal(gemm_launches_make(&machine, choice, &made->problem, &made->operands,
                                        address(7), &launches),
                     HALFBYTE_SUCCESS);
    return &launches;
}

static void alone_check(const product *made)
{
    const gemm_choice choice = choice_of(made, every_kernel);
    assert_true(choice.large == GEMM_NO_KERNEL && choice.rows_most == INT32_MAX);
    const gemm_launches *launches = launches_of(made, &choice);
    int products = 0;
    for (int i = 0; i < launches->count; i++) {
        const gemm_launch *one = &launches->launch[i];
        if (one->kernel < KERNEL_COUNT) {
            assert_true(one->params.gemm.groups.rows_least == 0);
            assert_true(one->params.gemm.groups.rows_most == INT32_MAX);
            assert_false(one->programmatic);
            products++;
        }
    }
    assert_int_equal(products, 1);
}

/* All but what depends on the kernel and on the sizes. */
static void same_check(const gemm_params *few, const gemm_params *many)
{
    const int32_t own = GEMM_LAUNCH_DEPENDENTS | GEMM_D_BOXES;
    gemm_groups small = few->groups, large = many->groups;
    small.rows_least = large.rows_least = 0;
    small.rows_most = large.rows_most = 0;
    assert_memory_equal(&small, &large, sizeof small);
    assert_memory_equal(&few->epilogue, &many->epilogue, sizeof few->epilogue);
    assert_memory_equal(&few->a_scale, &many->a_scale, sizeof few->a_scale);
    assert_memory_equal(&few->b_scale, &many->b_scale, sizeof few->b_scale);
    assert_true(few->b_packed == many->b_packed);
    assert_int_equal(few->flags & ~own, many->flags & ~own);
    assert_true(few->m == many->m && few->n == many->n && few->k_blocks == many->k_blocks);
    assert_true(few->k_offset == many->k_offset && few->block_k == many->block_k);
    assert_true(few->k_groups == many->k_groups && few->k_splits == many->k_splits);
}

/* Two launches have all sizes between them, and the second waits for the first alone. */
static void pair_check(const product *made)
{
    const gemm_choice choice = choice_of(made, every_kernel);
    assert_in_range(choice.large, 0, KERNEL_COUNT - 1);
    assert_true(gemm_kernel_accepts(choice.large, &made->problem));
    assert_int_not_equal(choice.large, choice.kernel);
    assert_in_range(choice.rows_most, kernel_table[choice.kernel].tile_m, 128);
    assert_int_equal(choice.rows_most % kernel_table[choice.kernel].tile_m, 0);

    const gemm_launches *launches = launches_of(made, &choice);
    assert_in_range(launches->count, 2, 4);
    const gemm_launch *large = &launches->launch[launches->count - 1], *small = large - 1;
    const gemm_params *few = &small->params.gemm, *many = &large->params.gemm;
    assert_true(small->kernel == choice.kernel && large->kernel == choice.large);
    assert_true(few->groups.rows_least == 0 && few->groups.rows_most == choice.rows_most);
    assert_true(many->groups.rows_least == choice.rows_most + 1);
    assert_true(many->groups.rows_most == INT32_MAX);
    const bool early = made->problem.num_sms == 0 || made->problem.num_sms >= SMS;
    assert_true(large->programmatic == early && !small->programmatic);
    assert_int_equal(few->flags & GEMM_LAUNCH_DEPENDENTS, early ? GEMM_LAUNCH_DEPENDENTS : 0);
    assert_int_equal(many->flags & GEMM_LAUNCH_DEPENDENTS, 0);
    assert_true(few->a_box_rows == (int32_t)kernel_table[choice.kernel].tile_m);
    assert_true(many->a_box_rows == (int32_t)kernel_table[choice.large].tile_m);
    same_check(few, many);
    assert_int_equal(many->b_policy, L2_EVICT_NORMAL);
}

static const halfbyte_family families[] = {HALFBYTE_FAMILY_FP8, HALFBYTE_FAMILY_W4A8};

static void test_uneven(void **state)
{
    (void)state;
    product made;
    for (int64_t mean = 8; mean <= 64; mean *= 2) {
        product_make(&made, HALFBYTE_FAMILY_W4A8, HALFBYTE_GROUPING_RANGES, 256, 256 * mean, 4096,
                     7168);
        pair_check(&made);
        made.problem.num_sms = 66;
        pair_check(&made);
        made.problem.num_sms = SMS;
        pair_check(&made);
        made.problem.grouping = HALFBYTE_GROUPING_LABELS;
        made.operands.groups = (halfbyte_groups){.labels = address(6)};
        pair_check(&made);
    }
    product_make(&made, HALFBYTE_FAMILY_W4A8, HALFBYTE_GROUPING_MASKED, 256, 2048, 4096, 7168);
    made.operands.expected_m = 16;
    made.problem.flags = HALFBYTE_ZERO_FILL_PADDING;
    pair_check(&made);
    /* The rows that no group has are those of no group of any size. */
    const gemm_choice choice = choice_of(&made, every_kernel);
    const gemm_launches *launches = launches_of(&made, &choice);
    assert_int_equal(launches->launch[0].kernel, KERNEL_INDEX_halfbyte_sm90_zero_padding);
    assert_true(launches->launch[0].params.padding.groups.rows_least == 0);
    assert_true(launches->launch[0].params.padding.groups.rows_most == INT32_MAX);
}

/* However rows fall to groups, the memory takes longer than the tiles.  FP8 was slower by two. */
static void test_never_slow(void **state)
{
    (void)state;
    product made;
    product_make(&made, HALFBYTE_FAMILY_FP8, HALFBYTE_GROUPING_RANGES, 64, 2048, 4096, 7168);
    alone_check(&made);
    product_make(&made, HALFBYTE_FAMILY_W4A8, HALFBYTE_GROUPING_RANGES, 256, 1024, 4096, 7168);
    alone_check(&made);
}

/* The kernel that is chosen for the mean is not the one that takes it. */
static void test_mean_is_small(void **state)
{
    int pairs = 0;
    (void)state;
    for (int f = 0; f < 2; f++) {
        for (int64_t groups = 8; groups <= 512; groups *= 2) {
            for (int64_t mean = 1; mean <= 2048; mean += mean / 3 + 1) {
                for (int64_t k = 512; k <= 16384; k *= 2) {
                    product made;
                    product_make(&made, families[f], HALFBYTE_GROUPING_RANGES, groups,
                                 groups * mean, 4096, k);
                    const gemm_choice choice = choice_of(&made, every_kernel);
                    assert_true(choice.rows_most >= mean);
                    assert_true(f == 1 || choice.large == GEMM_NO_KERNEL);
                    pairs += choice.large != GEMM_NO_KERNEL;
                }
            }
        }
    }
    assert_true(pairs > 0);
}

/* Dense, short, of one group, of groups that have no more rows than a tile, of sums in parts, of
 * rows that are large already; and where there is one kernel. */
static void test_alone(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        product made;
        product_make(&made, families[f], HALFBYTE_GROUPING_DENSE, 1, 65536, 4096, 7168);
        alone_check(&made);
        product_make(&made, families[f], HALFBYTE_GROUPING_RANGES, 8, 512, 4096, 7168);
        alone_check(&made);
        product_make(&made, families[f], HALFBYTE_GROUPING_RANGES, 1, 65536, 4096, 7168);
        alone_check(&made);
        product_make(&made, families[f], HALFBYTE_GROUPING_MASKED, 256, 128, 4096, 7168);
        alone_check(&made);
        product_make(&made, families[f], HALFBYTE_GROUPING_RANGES, 256, 256, 4096, 7168);
        alone_check(&made);
        product_make(&made, families[f], HALFBYTE_GROUPING_RANGES, 256, 2048, 4096, 7168);
        made.problem.k_splits = 2;
        alone_check(&made);
        made.problem.k_splits = 1;
        for (int i = 0; i < KERNEL_COUNT; i++) {
            if (gemm_kernel_accepts(i, &made.problem)) {
                const gemm_choice choice = choice_of(&made, (gemm_kernel_set)1 << i);
                assert_true(choice.kernel == i && choice.large == GEMM_NO_KERNEL);
            }
        }
    }
}

/* Extents as large as addresses, sizes at their limits: an answer, at once. */
static void test_extremes(void **state)
{
    static const int64_t ms[] = {1, 127, 129, INT32_MAX}, ns[] = {8, 1016, 1032, 65536};
    (void)state;
    for (int i = 0; i < 2 * 4 * 4 * 2; i++) {
        product made;
        product_make(&made, families[i % 2], HALFBYTE_GROUPING_RANGES, i / 32 ? 512 : 2,
                     ms[i / 2 % 4], ns[i / 8 % 4], 65536);
        const gemm_choice choice = choice_of(&made, every_kernel);
        assert_true(choice.rows_most > 0);
        assert_true(choice.large == GEMM_NO_KERNEL || choice.rows_most < made.operands.m);
    }
}

/* What was measured alone runs alone. */
static void test_tuned(void **state)
{
    static const char text[] = "halfbyte-tune 1\n"
                               "family=w4a8 grouping=ranges n=4096 k=7168 rows=64 "
                               "kernel=w4a8_m64n128k256s6\n";
    (void)state;
    tune_table *table = NULL;
    product made;
    assert_int_equal(tune_parse(text, sizeof text - 1, "text", &table), HALFBYTE_SUCCESS);
    product_make(&made, HALFBYTE_FAMILY_W4A8, HALFBYTE_GROUPING_RANGES, 256, 16384, 4096, 7168);
    const gemm_kernel_set serving = gemm_select(&made.problem, every_kernel);
    gemm_choice choice = gemm_choice_for(serving, table, &made.problem, &made.operands, SMS);
    assert_int_equal(choice.kernel, KERNEL_INDEX_halfbyte_sm90_w4a8_m64n128k256s6);
    assert_true(choice.large == GEMM_NO_KERNEL && choice.rows_most == INT32_MAX);
    made.operands.m = 256 * 32; /* no entry fits */
    choice = gemm_choice_for(serving, table, &made.problem, &made.operands, SMS);
    assert_true(choice.large != GEMM_NO_KERNEL);
    tune_free(table);
}

/* Weights that are read once leave L2 first, unless they are many bytes or many rows read them. */
static void test_policy(void **state)
{
    static const struct {
        int64_t groups, m, n;
        uint64_t policy;
    } rows[] = {
        {1, 512, 1024, L2_EVICT_FIRST},    {1, 513, 1024, L2_EVICT_NORMAL},
        {1, 1, 131072, L2_EVICT_FIRST},    {1, 1, 131200, L2_EVICT_NORMAL},
        {128, 1280, 1024, L2_EVICT_FIRST}, {128, 1280, 1032, L2_EVICT_NORMAL},
        {4, 2048, 1024, L2_EVICT_FIRST},   {4, 2049, 1024, L2_EVICT_NORMAL},
        {256, 100, 1032, L2_EVICT_FIRST}, /* at most a hundred of them have a row */
    };
    const gemm_choice choice =
        gemm_choice_of(KERNEL_INDEX_halfbyte_sm90_fp8_any_m128n128k128s6); /* 128 rows a tile */
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        product made;
        product_make(&made, HALFBYTE_FAMILY_FP8,
                     rows[i].groups > 1 ? HALFBYTE_GROUPING_RANGES : HALFBYTE_GROUPING_DENSE,
                     rows[i].groups, rows[i].m, rows[i].n, 2048);
        assert_int_equal(launches_of(&made, &choice)->launch[0].params.gemm.b_policy,
                         rows[i].policy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uneven),        cmocka_unit_test(test_never_slow),
        cmocka_unit_test(test_mean_is_small), cmocka_unit_test(test_alone),
        cmocka_unit_test(test_extremes),      cmocka_unit_test(test_tuned),
        cmocka_unit_test(test_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
