/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-major int4 weights of a product: the launch that packs them into the workspace ahead of the
 * kernel, run on the emulator, gives the CPU's packed weights in the form for any of them; and the
 * kernel behind it is told so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/gemm_launch.h"
#include "api/problem_check.h"
#include "emulator/emulator.h"
#include "format/int4_packed.h"
#include "oracle/splitmix.h"

void halfbyte_sm90_pack_weights(const void *params);

enum { POISON = 0xa5, SMS = 4 };

static halfbyte_status encode(const void *context, const gemm_map *from, tensor_map *map)
{
    (void)context;
    (void)from;
    memset(map, 0, sizeof *map);
    return HALFBYTE_SUCCESS;
}

static const gemm_machine machine = {SMS, encode, NULL};

typedef struct raw_case {
    halfbyte_problem problem;
    halfbyte_operands operands;
    struct int4_packed_shape shape;
    unsigned char *weights, *workspace, *expected;
    size_t weight_bytes, workspace_bytes, packed_bytes, packed_at;
} raw_case;

static void *allocate(size_t bytes)
{
    void *memory = aligned_alloc(256, (bytes + 511) / 256 * 256);
    assert_non_null(memory);
    memset(memory, POISON, bytes);
    return memory;
}

static halfbyte_problem problem_make(int64_t groups, int64_t n, int64_t k, int64_t k_offset,
                                     halfbyte_grouping grouping)
{
    halfbyte_problem p = halfbyte_problem_init();
    p.family = HALFBYTE_FAMILY_W4A8;
    p.grouping = grouping;
    p.groups = groups;
    p.m_max = 40;
    p.n = n;
    p.k = k;
    p.weight_group_size = 128;
    p.group_k_offset = k_offset;
    p.b_scale.mode = HALFBYTE_SCALE_K_GROUP;
    p.b_scale.type = HALFBYTE_TYPE_BF16;
    p.d_type = HALFBYTE_TYPE_BF16;
    assert_int_equal(problem_check(&p, HALFBYTE_PROFILE_SM90), HALFBYTE_SUCCESS);
    problem_resolve(&p, HALFBYTE_PROFILE_SM90);
    return p;
}

static raw_case case_make(halfbyte_problem problem, struct random *r)
{
    raw_case c = {.problem = problem, .operands = halfbyte_operands_init()};
    halfbyte_matrix_in *b = &c.operands.b;
    b->ld = (problem.k + 31) / 32 * 32 + 32 * random_below(r, 2);
    b->group_stride = problem.n * b->ld + 32 * random_below(r, 3);
    c.weight_bytes =
        (size_t)((problem.groups - 1) * b->group_stride + (problem.n - 1) * b->ld + problem.k) / 2;
    c.weights = allocate(c.weight_bytes);
    for (size_t i = 0; i < c.weight_bytes; i++) {
        c.weights[i] = (unsigned char)random_bits(r);
    }
    b->data = c.weights;
    c.operands.m = problem.m_max;
    c.shape = (struct int4_packed_shape){problem.groups, problem.n, problem.k,
                                         problem.group_k_offset, INT4_PACKED_HOLDS_MINUS8};
    c.packed_bytes = (size_t)int4_packed_bytes(&c.shape);
    c.packed_at = problem.grouping == HALFBYTE_GROUPING_LABELS
                      ? (size_t)(problem.groups * 8 + 255) / 256 * 256
                      : 0;
    c.workspace_bytes = gemm_workspace_bytes(&problem);
    c.workspace = allocate(c.workspace_bytes);
    c.expected = allocate(c.workspace_bytes);
    assert_true(int4_packed_pack(c.expected + c.packed_at, &c.shape, c.weights, INT4_RAW, b->ld / 2,
                                 b->group_stride / 2));
    return c;
}

static void case_free(raw_case *c)
{
    free(c->weights);
    free(c->workspace);
    free(c->expected);
}

static void packing_run(raw_case *c, const gemm_launch *one)
{
    const kernel_row *row = &kernel_table[one->kernel];
    const emu_config config = emu_config_default();
    emu_memory *memory = emu_memory_create();
    emu_report *report = emu_report_create();
    const emu_launch launch = {.name = row->name,
                               .kernel = halfbyte_sm90_pack_weights,
                               .params = &one->params,
                               .params_bytes = one->params_bytes,
                               .blocks = one->blocks,
                               .cluster = one->cluster,
                               .threads = row->threads,
                               .smem_bytes = row->smem_bytes};
    assert_true(memory != NULL && report != NULL);
    assert_true(emu_memory_add(memory, c->weights, c->weight_bytes, "b", EMU_READ_ONLY));
    assert_true(
        emu_memory_add(memory, c->workspace, c->workspace_bytes, "workspace", EMU_READ_WRITE));
    assert_int_equal(emu_run(&config, memory, &launch, 1, report), EMU_OK);
    assert_int_equal(emu_report_count(report), 0);
    emu_report_destroy(report);
    emu_memory_destroy(memory);
}

/* One whose parameters are gemm_params; it is not run. */
static int some_kernel(void)
{
    int kernel = 0;
    while (strstr(kernel_table[kernel].name, "_fp8_block_dense_") != NULL) {
        kernel++;
    }
    assert_true(kernel < KERNEL_COUNT);
    return kernel;
}

/* The rest of the workspace is left alone. */
static void case_check(raw_case *c, int launches_wanted)
{
    static gemm_launches launches;
    assert_true(gemm_packs_weights(&c->problem));
    assert_true(c->workspace_bytes >= c->packed_at + c->packed_bytes);
    const gemm_choice choice = gemm_choice_of(some_kernel());
    assert_int_equal(
        gemm_launches_make(&machine, &choice, &c->problem, &c->operands, c->workspace, &launches),
        HALFBYTE_SUCCESS);
    assert_int_equal(launches.count, launches_wanted);
    assert_int_equal(launches.launch[0].kernel, KERNEL_INDEX_halfbyte_sm90_pack_weights);
    assert_false(launches.launch[0].programmatic);
    const gemm_launch *product =
        &launches.launch[c->problem.k_splits > 1 ? launches.count - 2 : launches.count - 1];
    assert_int_equal(product->kernel, some_kernel());
    assert_ptr_equal(product->params.gemm.b_packed, c->workspace + c->packed_at);
    assert_int_not_equal(product->params.gemm.flags & GEMM_HOLDS_MINUS8, 0);
    packing_run(c, &launches.launch[0]);
    assert_memory_equal(c->workspace, c->expected, c->workspace_bytes);
}

static void test_groupings(void **state)
{
    struct random r = {3};
    (void)state;
    raw_case dense = case_make(problem_make(1, 72, 320, 0, HALFBYTE_GROUPING_DENSE), &r);
    case_check(&dense, 2);
    case_free(&dense);
    raw_case sliced = case_make(problem_make(3, 136, 192, 64, HALFBYTE_GROUPING_RANGES), &r);
    case_check(&sliced, 2);
    case_free(&sliced);
    raw_case labels = case_make(problem_make(5, 64, 128, 0, HALFBYTE_GROUPING_LABELS), &r);
    case_check(&labels, 3);
    case_free(&labels);
}

/* Sums of ranges of k lie behind the packed weights. */
static void test_splits(void **state)
{
    struct random r = {4};
    halfbyte_problem problem = problem_make(1, 64, 512, 0, HALFBYTE_GROUPING_DENSE);
    (void)state;
    problem.k_splits = 2;
    problem.flags = HALFBYTE_WEIGHTS_CONSTANT;
    raw_case c = case_make(problem, &r);
    assert_int_equal(c.workspace_bytes, c.packed_bytes + 2 * 40 * 64 * sizeof(float));
    case_check(&c, 3);
    case_free(&c);
}

/* Weights that are packed already, that are not there, or that no memory holds. */
static void test_none(void **state)
{
    halfbyte_problem problem = problem_make(1, 64, 256, 0, HALFBYTE_GROUPING_DENSE);
    (void)state;
    problem.b_layout = HALFBYTE_B_PACKED;
    assert_false(gemm_packs_weights(&problem));
    assert_int_equal(gemm_workspace_bytes(&problem), 0);
    problem = problem_make(1, 64, 0, 0, HALFBYTE_GROUPING_DENSE);
    assert_false(gemm_packs_weights(&problem));
    assert_int_equal(gemm_workspace_bytes(&problem), 0);
    problem = problem_make(1 << 20, INT32_MAX / 64 * 64, INT32_MAX / 32 * 32, 0,
                           HALFBYTE_GROUPING_RANGES);
    assert_true(gemm_workspace_bytes(&problem) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groupings),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
