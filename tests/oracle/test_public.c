/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 605 problems of public_w4a8.h on the CPU model: each output within the bound of section 9 of
 * docs/numerics.md around the value in fp64, some of them equal to the oracle's.  A few problems
 * and some outputs of each; with arguments PART and PARTS all outputs of each PARTS-th problem.
 */
#include "oracle/bound.h"
#include "oracle/operand.h"
#include "oracle/oracle_element.h"
#include "oracle/public_w4a8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int part, parts; /* 0 parts: a few problems */

/* Of the problems with several experts every 37th, which meets all extents. */
enum { STRIDE = 37, SOME_OUTPUTS = 150, ORACLE_OUTPUTS = 12 };

static bool taken(int index)
{
    return parts > 0 ? index % parts == part : index >= PUBLIC_SEVERAL || index % STRIDE == 0;
}

static void extents(void **state)
{
    enum { DIMENSIONS = 4, VALUES = 6 };
    static const int64_t wanted[DIMENSIONS][VALUES] = {{2, 4, 8, 16, 32, 0},
                                                       {2, 4, 6, 8, 0, 0},
                                                       {256, 512, 1024, 2048, 7168, 0},
                                                       {256, 512, 1024, 2048, 4096, 7168}};
    int met[DIMENSIONS][VALUES] = {{0}};
    (void)state;
    for (int i = 0; i < PUBLIC_SEVERAL; i += STRIDE) {
        struct public_problem p = public_problem_at(i);
        int64_t extent[DIMENSIONS] = {p.tokens, p.experts, p.n, p.k};
        for (int d = 0; d < DIMENSIONS; d++) {
            for (int v = 0; v < VALUES; v++)
                met[d][v] += extent[d] == wanted[d][v];
        }
    }
    for (int d = 0; d < DIMENSIONS; d++) {
        for (int v = 0; v < VALUES; v++)
            assert_int_equal(met[d][v] > 0, wanted[d][v] != 0);
    }
    for (int i = 0; i < PUBLIC_PROBLEMS; i++) {
        for (int j = 0; j < i; j++) {
            struct public_problem a = public_problem_at(i), b = public_problem_at(j);
            assert_true(a.tokens != b.tokens || a.experts != b.experts || a.n != b.n || a.k != b.k);
        }
    }
}

/* ---- outputs --------------------------------------------------------------------------------- */

struct tally {
    long outputs, held, tolerated; /* tolerated: within PUBLIC_ATOL and PUBLIC_RTOL */
    double squares, error_squares;
    double most;   /* error / bound */
    double widest; /* the largest bound */
};

/* One output of the group that owns row; c->problem is that with row-major weights. */
static void check_output(const struct gemm_case *c, int64_t group, int64_t row, int64_t column,
                         struct tally *tally)
{
    const halfbyte_problem *p = &c->problem;
    struct bounded b = bound_element(p, &c->before, group, row, column);
    uint32_t code = oracle_load(c->operands.d.data, p->d_type,
                                oracle_d_offset(p, &c->operands, group, row, column));
    double error = fabs(bound_code_value(p->d_type, code) - b.value);
    assert_true(b.applies);
    tally->outputs++;
    tally->held += bound_holds(&b, p->d_type, code);
    tally->tolerated += error <= PUBLIC_ATOL + PUBLIC_RTOL * fabs(b.value);
    tally->squares += b.value * b.value;
    tally->error_squares += error * error;
    tally->most = fmax(tally->most, error / b.bound);
    tally->widest = fmax(tally->widest, b.bound);
}

static int64_t group_of(const struct gemm_case *c, int64_t row)
{
    int64_t group = 0;
    while (!oracle_group_owns(&c->problem, &c->before, group, row)) {
        group++;
        assert_true(group < c->problem.groups);
    }
    return group;
}

static void check_outputs(const struct gemm_case *c, struct random *r, struct tally *tally)
{
    int64_t outputs = c->operands.m * c->problem.n;
    if (parts == 0) {
        for (int i = 0; i < SOME_OUTPUTS; i++) {
            int64_t row = random_below(r, c->operands.m);
            check_output(c, group_of(c, row), row, random_below(r, c->problem.n), tally);
        }
        return;
    }
    for (int64_t at = 0; at < outputs; at++) {
        int64_t row = at / c->problem.n;
        check_output(c, group_of(c, row), row, at % c->problem.n, tally);
    }
}

/* Bits of a few outputs, and whatever surrounds D. */
static void check_bits(const struct gemm_case *c, struct random *r)
{
    size_t bytes = (size_t)(c->operands.m * c->problem.n) * 2;
    assert_memory_equal(c->d_base, c->d_before, c->d_at);
    assert_memory_equal(c->d_base + c->d_at + bytes, c->d_before + c->d_at + bytes,
                        c->d_bytes - c->d_at - bytes);
    for (int i = 0; i < ORACLE_OUTPUTS; i++) {
        int64_t row = random_below(r, c->operands.m), column = random_below(r, c->problem.n);
        int64_t group = group_of(c, row);
        uint32_t got = oracle_load(c->operands.d.data, c->problem.d_type,
                                   oracle_d_offset(&c->problem, &c->operands, group, row, column));
        uint32_t wanted = oracle_element(&c->problem, &c->before, group, row, column);
        assert_int_equal(got, wanted);
    }
}

/* ---- problems -------------------------------------------------------------------------------- */

/* By the weights as they are, or packed. */
static void run(const struct gemm_case *c, bool packed, halfbyte_device *device)
{
    struct gemm_case other = *c;
    halfbyte_int4_desc desc = public_weights(c);
    size_t bytes = 0;
    if (!packed) {
        case_run(c, device);
        return;
    }
    assert_int_equal(halfbyte_packed_weights_bytes(&desc, &bytes), HALFBYTE_SUCCESS);
    void *to = malloc(bytes);
    assert_non_null(to);
    assert_int_equal(
        halfbyte_pack_weights(NULL, &desc, c->operands.b.data, to, bytes, &other.header, NULL),
        HALFBYTE_SUCCESS);
    other.problem.b_layout = HALFBYTE_B_PACKED;
    other.operands.b = (halfbyte_matrix_in){to, 0, 0};
    other.operands.b_header = &other.header;
    case_run(&other, device);
    free(to);
}

static void add(struct tally *sum, const struct tally *one)
{
    sum->outputs += one->outputs;
    sum->held += one->held;
    sum->tolerated += one->tolerated;
    sum->most = fmax(sum->most, one->most);
    sum->widest = fmax(sum->widest, one->widest);
}

static void problems(void **state)
{
    halfbyte_device *device = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AUTO);
    struct tally sum = {0};
    double worst_rms = 0;
    int count = 0;
    (void)state;
    for (int i = 0; i < PUBLIC_PROBLEMS; i++) {
        struct public_problem problem = public_problem_at(i);
        struct random r = {problem.seed + 1};
        struct tally one = {0};
        struct gemm_case c;
        if (!taken(i))
            continue;
        public_case_make(&c, &problem);
        run(&c, i % 2 == 1, device);
        check_bits(&c, &r);
        check_outputs(&c, &r, &one);
        if (one.held != one.outputs)
            case_print(&c);
        add(&sum, &one);
        worst_rms = fmax(worst_rms, sqrt(one.error_squares / one.squares));
        count++;
        case_free(&c);
    }
    halfbyte_device_close(device);
    print_message(
        "%d problems, %ld outputs, bound kept by %ld; error / bound at most %.3f, bound at "
        "most %.4f, relative rms error of a problem at most %.5f\n",
        count, sum.outputs, sum.held, sum.most, sum.widest, worst_rms);
    assert_int_equal(count, parts == 0 ? 22 : (PUBLIC_PROBLEMS - part + parts - 1) / parts);
    assert_int_equal(sum.held, sum.outputs);
    assert_true(worst_rms > 0 && worst_rms < 0.003);
}

/* Sets the scales of the last 128 of k to zero in a copy, as the model is to see them. */
static void drop_last_group(struct gemm_case *c)
{
    const halfbyte_problem *p = &c->problem;
    halfbyte_scale_in *s = &c->operands.b_scale;
    int64_t groups = p->groups, last = p->k / 128 - 1;
    size_t bytes = (size_t)(groups * s->group_stride) * 2;
    uint16_t *scale = case_memory(c, bytes, 0);
    memcpy(scale, s->data, bytes);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t i = 0; i < p->n; i++) {
            int64_t at = p->b_scale.layout == HALFBYTE_SCALE_INTERLEAVED4
                             ? last / 4 * s->stride_k + 4 * i + last % 4
                             : last * s->stride_k + i;
            scale[g * s->group_stride + at] = 0;
        }
    }
    s->data = scale;
}

/* Without the last 128 of k nearly no output keeps the bound, though the public tolerance would let
 * a good part of them pass. */
static void dropped_group(void **state)
{
    halfbyte_device *device = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AUTO);
    struct tally sum = {0};
    (void)state;
    for (int i = 0; i < PUBLIC_SEVERAL; i += STRIDE) {
        struct public_problem problem = public_problem_at(i);
        struct random r = {problem.seed + 2};
        struct gemm_case c;
        struct tally one = {0};
        public_case_make(&c, &problem);
        drop_last_group(&c);
        case_run(&c, device);
        for (int j = 0; j < SOME_OUTPUTS; j++) {
            int64_t row = random_below(&r, c.operands.m);
            check_output(&c, group_of(&c, row), row, random_below(&r, c.problem.n), &one);
        }
        add(&sum, &one);
        case_free(&c);
    }
    halfbyte_device_close(device);
    print_message("without the last group: %ld outputs, bound kept by %ld, tolerated %ld\n",
                  sum.outputs, sum.held, sum.tolerated);
    assert_true(sum.outputs > 1000);
    assert_true(sum.held * 10 < sum.outputs);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extents),
        cmocka_unit_test(problems),
        cmocka_unit_test(dropped_group),
    };
    if (argc > 2) {
        part = atoi(argv[1]);
        parts = atoi(argv[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
