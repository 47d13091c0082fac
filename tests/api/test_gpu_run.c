/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte_run() on a GPU device whose driver only writes down what it is asked for.  What a run
 * may call is in its table; anything else (to take memory, to wait, to read) is a null pointer
 * there and would end the test.  What the kernels do with their parameters is tested on the
 * emulator and on GPUs.  malloc and its kin come by here: see CMakeLists.txt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/device.h"
#include "api/gemm_launch.h"
#include "api/gemm_select.h"
#include "api/plan.h"
#include "api/problem_check.h"
#include "cuda/gpu.h"

enum { MOST_CALLS = 12, M = 100, N = 256, K = 384, GROUPS = 3, SMS = 132 };

/* Of the driver, in order: one of these, or the index of a kernel. */
enum { ENCODE = -4, PUSH, POP, CLEAR };
static int calls[MOST_CALLS];
static int call_count;
static int fails_at; /* number of the call that fails, from 1; 0 = none */
static cuda_launch_config launched;
static cuda_launch_attribute attributes[2];
static gemm_params passed;
static add_splits_params passed_splits;
static group_bounds_params passed_bounds;
static cuda_pointer cleared;
static size_t cleared_bytes;

/* The first map that a run encodes. */
static struct {
    uint64_t address, dims[3], strides_bytes[2];
    uint32_t box_rows;
} first_map;

static gpu fake;

/* ---- allocations ----------------------------------------------------------------------------- */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static int allocations;

void *__wrap_malloc(size_t bytes)
{
    allocations++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    allocations++;
    return __real_calloc(count, bytes);
}

/* ---- driver ---------------------------------------------------------------------------------- */

static cuda_result call_record(int what)
{
    assert_true(call_count < MOST_CALLS);
    calls[call_count++] = what;
    return call_count == fails_at ? 700 : 0;
}

static cuda_result fake_push(cuda_context context)
{
    (void)context;
    return call_record(PUSH);
}

static cuda_result fake_pop(cuda_context *context)
{
    *context = NULL;
    return call_record(POP);
}

static cuda_result fake_error_name(cuda_result result, const char **name)
{
    (void)result;
    *name = "CUDA_ERROR_OF_THE_TEST";
    return 0;
}

/* A map's second dimension says enough to tell A's from B's. */
static cuda_result fake_encode(tensor_map *map, int type, uint32_t rank, void *base,
                               const uint64_t *dims, const uint64_t *strides_bytes,
                               const uint32_t *box, const uint32_t *element_strides, int interleave,
                               int swizzle, int l2_promotion, int fill)
{
    assert_true(type == CUDA_TENSOR_UINT8 && rank == 3);
    assert_true(strides_bytes[0] % 16 == 0 && box[0] == 128 && element_strides[1] == 1);
    assert_true(interleave == 0 && swizzle == CUDA_TENSOR_SWIZZLE_128B && fill == 0);
    assert_int_equal(l2_promotion, CUDA_TENSOR_L2_256B);
    memset(map, (int)(dims[1] & 255), sizeof *map);
    if (call_count == 0) {
        first_map.address = (uintptr_t)base;
        memcpy(first_map.dims, dims, sizeof first_map.dims);
        memcpy(first_map.strides_bytes, strides_bytes, sizeof first_map.strides_bytes);
        first_map.box_rows = box[1];
    }
    return call_record(ENCODE);
}

/* A kernel's function is the address of its entry in the table. */
static cuda_result fake_launch(const cuda_launch_config *config, cuda_function function,
                               void **parameters, void **extra)
{
    const int kernel = (int)(uintptr_t)function - 1;
    assert_null(extra);
    assert_in_range(kernel, 0, KERNEL_ALL - 1);
    launched = *config;
    memcpy(attributes, config->attributes, config->num_attributes * sizeof *attributes);
    switch (kernel) {
    case KERNEL_INDEX_halfbyte_sm90_group_bounds:
        memcpy(&passed_bounds, parameters[0], sizeof passed_bounds);
        break;
    case KERNEL_INDEX_halfbyte_sm90_add_splits:
        memcpy(&passed_splits, parameters[0], sizeof passed_splits);
        break;
    case KERNEL_INDEX_halfbyte_sm90_zero_padding: break;
    default: memcpy(&passed, parameters[0], sizeof passed);
    }
    return call_record(kernel);
}

static cuda_result fake_clear(cuda_pointer dst, size_t pitch, unsigned char value, size_t width,
                              size_t height, cuda_stream stream)
{
    (void)stream;
    assert_true(pitch >= width && height == 1 && value == 0);
    cleared = dst;
    cleared_bytes = width;
    return call_record(CLEAR);
}

static const cuda_driver run_driver = {.error_name = fake_error_name,
                                       .context_push = fake_push,
                                       .context_pop = fake_pop,
                                       .launch = fake_launch,
                                       .tensor_map_encode = fake_encode,
                                       .memset_rows = fake_clear};

static halfbyte_device device = {.executor = HALFBYTE_EXECUTOR_GPU, .gpu = &fake};
static const halfbyte_stream stream = (halfbyte_stream)(uintptr_t)0x1230;
static halfbyte_plan plan;
static halfbyte_operands operands;

static int fresh(void **state)
{
    (void)state;
    call_count = fails_at = 0;
    fake.driver = &run_driver;
    fake.sm_count = SMS;
    for (int i = 0; i < KERNEL_ALL; i++) {
        fake.kernels[i].function = (cuda_function)(uintptr_t)(i + 1);
    }
    return 0;
}

/* ---- a problem, at addresses that nobody may touch here -------------------------------------- */

static void *address(uintptr_t number)
{
    return (void *)(number << 32);
}

/* Serves the whole FP8 family, so that one kernel's name is in every sequence. */
enum { PRODUCT = KERNEL_INDEX_halfbyte_sm90_fp8_any_m128n128k128s6 };
enum { PRODUCT_W4A8 = KERNEL_INDEX_halfbyte_sm90_w4a8_m128n128k256s3 };
static int product; /* the kernel that the plan has */

static void problem_make(halfbyte_grouping grouping)
{
    halfbyte_problem *p = &plan.problem;
    product = PRODUCT;
    *p = halfbyte_problem_init();
    p->family = HALFBYTE_FAMILY_FP8;
    p->grouping = grouping;
    p->groups = grouping == HALFBYTE_GROUPING_DENSE ? 1 : GROUPS;
    p->m_max = M;
    p->n = N;
    p->k = K;
    p->d_type = HALFBYTE_TYPE_F32;
    p->a_scale.mode = HALFBYTE_SCALE_OUTER;
    p->b_scale.mode = HALFBYTE_SCALE_128X128;
    operands = halfbyte_operands_init();
    operands.m = M;
    operands.a = (halfbyte_matrix_in){address(1), K, M * K};
    operands.b = (halfbyte_matrix_in){address(2), K, N * K};
    operands.d = (halfbyte_matrix_out){address(3), N, M * N};
    operands.a_scale = (halfbyte_scale_in){address(4), 1, 1, M};
    operands.b_scale = (halfbyte_scale_in){address(5), 1, 2, 6};
    if (grouping == HALFBYTE_GROUPING_RANGES) {
        operands.groups.ends = address(6);
    } else if (grouping == HALFBYTE_GROUPING_LABELS) {
        operands.groups.labels = address(6);
    }
}

/* D in bf16 rows of N + 8. */
static void problem_make_w4a8(halfbyte_grouping grouping)
{
    static halfbyte_packed_header header;
    problem_make(grouping);
    product = PRODUCT_W4A8;
    plan.problem.family = HALFBYTE_FAMILY_W4A8;
    plan.problem.b_layout = HALFBYTE_B_PACKED;
    plan.problem.b_scale.mode = HALFBYTE_SCALE_OUTER;
    plan.problem.d_type = HALFBYTE_TYPE_BF16;
    header = (halfbyte_packed_header){
        .version = 1, .n = N, .k = plan.problem.k, .groups = plan.problem.groups};
    operands.b_header = &header;
    operands.b_scale = (halfbyte_scale_in){address(5), 1, 1, N};
    operands.d = (halfbyte_matrix_out){address(3), N + 8, M * (N + 8)};
}

static halfbyte_status run_with(map_cache *maps)
{
    halfbyte_problem resolved = plan.problem;
    problem_resolve(&resolved, HALFBYTE_PROFILE_SM90);
    const halfbyte_plan made = {.problem = resolved,
                                .device = &device,
                                .workspace_bytes = gemm_workspace_bytes(&resolved),
                                .kernels = (gemm_kernel_set)1 << product,
                                .maps = maps};
    call_count = 0;
    allocations = 0;
    const halfbyte_status status =
        halfbyte_run(&made, &operands, address(7), made.workspace_bytes, stream);
    assert_int_equal(allocations, 0);
    return status;
}

static halfbyte_status run(void)
{
    return run_with(NULL);
}

static void calls_expect(const int *expected, int count)
{
    assert_int_equal(call_count, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(calls[i], expected[i]);
    }
}

#define EXPECT_CALLS(...)                                                                          \
    calls_expect((const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_one_launch(void **state)
{
    (void)state;
    problem_make(HALFBYTE_GROUPING_DENSE);
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, ENCODE, PUSH, PRODUCT, POP);
    assert_true(launched.stream == stream && launched.grid_x == 2 && launched.num_attributes == 0);
    assert_true(passed.m == M && passed.n == N && passed.k_blocks == 3 && passed.k_splits == 1);
    assert_true(passed.epilogue.d.data == address(3) && passed.epilogue.d.ld == N);
    assert_true(*(const unsigned char *)&passed.a == M && *(const unsigned char *)&passed.b == 0);
    assert_true(first_map.dims[0] == K && first_map.box_rows == M && passed.a_box_rows == M);

    problem_make(HALFBYTE_GROUPING_MASKED);
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, ENCODE, PUSH, PRODUCT, POP);
    assert_true(passed.groups.kind == GEMM_MASKED && passed.groups.count == GROUPS);
    assert_true(first_map.box_rows == M && passed.a_box_rows == M);
    assert_int_equal(launched.grid_x, 2 * GROUPS);
    plan.problem.num_sms = 4;
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    assert_int_equal(launched.grid_x, 4);

    problem_make(HALFBYTE_GROUPING_RANGES);
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, ENCODE, PUSH, PRODUCT, POP);
    assert_true(passed.groups.kind == GEMM_RANGES && passed.groups.ends == address(6));
    assert_true(passed.groups.ends_stride == 1 && passed.groups.starts == NULL);
}

/* A plan's later runs have the maps of its first ones. */
static void test_maps_again(void **state)
{
    (void)state;
    static map_cache maps;
    map_cache_init(&maps);
    problem_make(HALFBYTE_GROUPING_DENSE);
    assert_int_equal(run_with(&maps), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, ENCODE, PUSH, PRODUCT, POP);
    const gemm_params first = passed;
    memset(&passed, 0, sizeof passed);
    assert_int_equal(run_with(&maps), HALFBYTE_SUCCESS);
    EXPECT_CALLS(PUSH, PRODUCT, POP);
    assert_memory_equal(&passed.a, &first.a, sizeof first.a);
    assert_memory_equal(&passed.b, &first.b, sizeof first.b);

    operands.m--;
    assert_int_equal(run_with(&maps), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, PUSH, PRODUCT, POP);
    assert_memory_not_equal(&passed.a, &first.a, sizeof first.a);
    assert_memory_equal(&passed.b, &first.b, sizeof first.b);
    operands.b.data = address(9);
    assert_int_equal(run_with(&maps), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, PUSH, PRODUCT, POP);

    /* What could not be encoded is not kept. */
    operands.a.data = address(10);
    fails_at = 1;
    assert_int_equal(run_with(&maps), HALFBYTE_ERR_CUDA);
    fails_at = 0;
    assert_int_equal(run_with(&maps), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, PUSH, PRODUCT, POP);
}

static void test_more_launches(void **state)
{
    (void)state;
    problem_make(HALFBYTE_GROUPING_LABELS);
    plan.problem.flags = HALFBYTE_ZERO_FILL_PADDING | HALFBYTE_WEIGHTS_CONSTANT;
    plan.problem.k_splits = 2;
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, ENCODE, PUSH, CLEAR, KERNEL_INDEX_halfbyte_sm90_group_bounds,
                 KERNEL_INDEX_halfbyte_sm90_zero_padding, PRODUCT,
                 KERNEL_INDEX_halfbyte_sm90_add_splits, POP);
    assert_true(cleared == (uintptr_t)address(7) && cleared_bytes == (size_t)GROUPS * 8);
    assert_true(passed_bounds.labels == address(6) && passed_bounds.tops == address(7));
    assert_true(passed_bounds.ends == passed_bounds.tops + GROUPS && passed_bounds.m == M);
    assert_true(passed.groups.starts == passed_bounds.tops && passed.groups.from_end == 1);
    /* The sums lie behind the bounds, one split after the other. */
    const float *const sums = (const float *)((const char *)address(7) + 256);
    assert_true(passed.epilogue.d.data == sums && passed.epilogue.d.type == ELEMENT_F32);
    assert_true(passed.k_splits == 2 && passed.split_stride == M * N);
    assert_true(passed.epilogue.has_terms == 0 && passed.epilogue.row_scale.data == NULL);
    assert_true(passed_splits.sums == sums && passed_splits.splits == 2);
    assert_true(passed_splits.gemm.epilogue.d.data == address(3));
    assert_true(passed_splits.gemm.epilogue.row_scale.data == address(4));
    assert_int_equal(passed_splits.gemm.k_splits, 1);
    assert_int_equal(launched.num_attributes, 0); /* the clear must have ended */
}

static void test_early_start(void **state)
{
    (void)state;
    problem_make(HALFBYTE_GROUPING_DENSE);
    plan.problem.flags = HALFBYTE_WEIGHTS_CONSTANT;
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    assert_true(launched.num_attributes == 1 && attributes[0].id == CUDA_LAUNCH_PROGRAMMATIC);
    assert_int_equal(attributes[0].value.programmatic, 1);
    assert_int_equal(passed.flags, GEMM_WEIGHTS_EARLY);
}

/* Nothing to read, nothing to do. */
static void test_empty(void **state)
{
    (void)state;
    problem_make(HALFBYTE_GROUPING_DENSE);
    plan.problem.k = 0;
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    EXPECT_CALLS(PUSH, PRODUCT, POP);
    assert_int_equal(passed.k_blocks, 0);
    problem_make(HALFBYTE_GROUPING_DENSE);
    operands.m = 0;
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    assert_int_equal(call_count, 0);
    problem_make(HALFBYTE_GROUPING_DENSE);
    operands.d.ld = N - 1;
    assert_int_equal(run(), HALFBYTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(call_count, 0);
}

/* W4A8: a map of D as bytes, in boxes of D_BOX_ROWS, where stores by it may take its place. */
static void test_map_of_d(void **state)
{
    (void)state;
    problem_make_w4a8(HALFBYTE_GROUPING_DENSE);
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, ENCODE, PUSH, PRODUCT_W4A8, POP);
    assert_true((passed.flags & GEMM_D_BOXES) != 0 && first_map.address == (uintptr_t)address(3));
    assert_true(first_map.dims[0] == 2 * N && first_map.dims[1] == M && first_map.dims[2] == 1);
    assert_true(first_map.strides_bytes[0] == 2 * (N + 8) && first_map.box_rows == D_BOX_ROWS);

    problem_make_w4a8(HALFBYTE_GROUPING_MASKED);
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    assert_true((passed.flags & GEMM_D_BOXES) != 0 && first_map.dims[2] == GROUPS);
    assert_true(first_map.strides_bytes[1] == (uint64_t)M * 2 * (N + 8));

    plan.problem.k = 0; /* nothing is read, and D is written all the same */
    ((halfbyte_packed_header *)(uintptr_t)operands.b_header)->k = 0;
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, PUSH, PRODUCT_W4A8, POP);
}

/* FP8: in boxes of a warpgroup's rows, by the kernels that leave D in shared memory. */
static void test_map_of_d_fp8(void **state)
{
    (void)state;
    problem_make(HALFBYTE_GROUPING_DENSE);
    plan.problem.d_type = HALFBYTE_TYPE_BF16;
    product = KERNEL_INDEX_halfbyte_sm90_fp8_ahead_m128n256k128s3;
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    EXPECT_CALLS(ENCODE, ENCODE, ENCODE, PUSH, product, POP);
    assert_true((passed.flags & GEMM_D_BOXES) != 0 && first_map.address == (uintptr_t)address(3));
    assert_true(first_map.dims[0] == 2 * N && first_map.box_rows == DOWN_ROWS);

    plan.problem.m_max = operands.m = 2 * M; /* more rows than a tile of A has */
    product = PRODUCT;
    assert_int_equal(run(), HALFBYTE_SUCCESS);
    assert_true((passed.flags & GEMM_D_BOXES) == 0);
    assert_true(first_map.box_rows == 128 && passed.a_box_rows == 128);
}

/* Every row of kernels.def says one of the boxes that kernels send. */
static void test_boxes_of_rows(void **state)
{
    int staged = 0;
    (void)state;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        const uint32_t rows = kernel_table[i].d_box_rows;
        const bool fp8 = strstr(kernel_table[i].name, "_fp8_") != NULL;
        assert_true(fp8 ? rows == 0 || rows == DOWN_ROWS : rows == D_BOX_ROWS);
        staged += fp8 && rows == DOWN_ROWS;
    }
    assert_true(staged > 0 && staged < KERNEL_COUNT);
}

static void test_no_map_of_d(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        problem_make_w4a8(i == 0 ? HALFBYTE_GROUPING_LABELS : HALFBYTE_GROUPING_DENSE);
        switch (i) {
        case 1: plan.problem.d_type = HALFBYTE_TYPE_F32; break;
        case 2: operands.d.ld = N + 4; break;
        case 3: operands.d.data = (char *)address(3) + 8; break;
        case 4: plan.problem.k_splits = 2; break;
        default: break;
        }
        assert_int_equal(run(), HALFBYTE_SUCCESS);
        assert_true((passed.flags & GEMM_D_BOXES) == 0);
        assert_int_equal(first_map.address, (uintptr_t)address(1));
        assert_true(calls[0] == ENCODE && calls[1] == PUSH);
    }
}

/* Each call fails in turn: its failure is the caller's, what would follow is not enqueued, and the
 * context is taken away again. */
static void test_failures(void **state)
{
    (void)state;
    problem_make(HALFBYTE_GROUPING_LABELS);
    plan.problem.flags = HALFBYTE_ZERO_FILL_PADDING;
    plan.problem.k_splits = 3;
    for (fails_at = 1; fails_at <= 8; fails_at++) {
        assert_int_equal(run(), HALFBYTE_ERR_CUDA);
        assert_non_null(strstr(halfbyte_last_error(), "failed with CUDA_ERROR_OF_THE_TEST (700)"));
        assert_int_equal(call_count, fails_at + (fails_at > 3));
        assert_int_equal(calls[call_count - 1], fails_at > 3 ? POP : calls[fails_at - 1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_launch, fresh),
        cmocka_unit_test_setup(test_maps_again, fresh),
        cmocka_unit_test_setup(test_more_launches, fresh),
        cmocka_unit_test_setup(test_early_start, fresh),
        cmocka_unit_test_setup(test_empty, fresh),
        cmocka_unit_test_setup(test_map_of_d, fresh),
        cmocka_unit_test_setup(test_map_of_d_fp8, fresh),
        cmocka_unit_test_setup(test_boxes_of_rows, fresh),
        cmocka_unit_test_setup(test_no_map_of_d, fresh),
        cmocka_unit_test_setup(test_failures, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
