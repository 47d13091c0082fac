/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library against the oracle, bit for bit, on random problems of every kind: each scale
 * mode, type, layout and group size of each family in each way of grouping rows, everything else
 * drawn. Most of them have no alignment at all; each kind once more as profile SM90 wants it.
 * With an argument the cross is walked that many times with other draws.
 */
#include "oracle/gemm_case.h"
#include "oracle/operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static int rounds = 1;
static uint64_t seed = 20;
static long total_problems;

#define DEVICES 6

static halfbyte_device *devices[DEVICES];
static int device_count;

static int open_devices(void **state)
{
    (void)state;
    devices[device_count++] = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AUTO);
    devices[device_count++] = case_device(HALFBYTE_PROFILE_ANY, 2, HALFBYTE_ISA_AUTO);
    devices[device_count++] = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_PORTABLE);
    devices[device_count++] = case_device(HALFBYTE_PROFILE_ANY, 7, HALFBYTE_ISA_AUTO);
    if (case_has_isa(HALFBYTE_ISA_AVX2))
        devices[device_count++] = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AVX2);
    if (case_has_isa(HALFBYTE_ISA_AVX512))
        devices[device_count++] = case_device(HALFBYTE_PROFILE_ANY, 1, HALFBYTE_ISA_AVX512);
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    while (device_count > 0)
        halfbyte_device_close(devices[--device_count]);
    return 0;
}

/* What the draws reached, so that a generator that stopped drawing something fails the test. */
struct coverage {
    long problems, packed, minus8, offset, splits, ragged_k, c_aliased, padded, idle_rows, bias,
        channel, alpha_device, second_panel, aligned;
};

static void cover(struct coverage *v, const struct gemm_case *c)
{
    const halfbyte_problem *p = &c->problem;
    bool packed = p->b_layout == HALFBYTE_B_PACKED;
    v->problems++;
    v->packed += packed;
    v->minus8 += packed && (c->header.flags & HALFBYTE_PACKED_HOLDS_MINUS8);
    v->offset += p->group_k_offset != 0;
    v->splits += p->k_splits > 1;
    v->ragged_k += p->k % 32 != 0;
    v->c_aliased += p->c_type != HALFBYTE_TYPE_NONE && c->operands.c.data == c->operands.d.data;
    v->padded += (p->flags & HALFBYTE_ZERO_FILL_PADDING) != 0;
    v->bias += p->bias_type != HALFBYTE_TYPE_NONE;
    v->channel += p->channel_scale_type != HALFBYTE_TYPE_NONE;
    v->alpha_device += p->alpha_mode == HALFBYTE_ALPHA_DEVICE;
    v->second_panel += p->n > 64;
}

/* Packing keeps every weight: the packed bytes, read by the oracle, against the plain ones. */
static void compare_packed(const struct gemm_case *c, struct comparison *sum)
{
    halfbyte_problem plain = c->problem;
    halfbyte_operands o = c->operands;
    if (!c->raw_b)
        return;
    plain.b_layout = HALFBYTE_B_ROW_MAJOR;
    o.b = (halfbyte_matrix_in){c->raw_b, c->raw_ld, c->raw_group_stride};
    for (int64_t g = 0; g < oracle_groups(&plain); g++) {
        for (int64_t column = 0; column < plain.n; column++) {
            for (int64_t k = 0; k < plain.k; k++) {
                sum->compared++;
                sum->equal += oracle_int4(&plain, &o, g, column, k) ==
                              oracle_int4(&c->problem, &c->operands, g, column, k);
            }
        }
    }
}

static void walk(halfbyte_family family, halfbyte_device *fixed, bool aligned,
                 struct coverage *covered, struct comparison *sum, struct comparison *weights)
{
    struct random r = {seed + (uint64_t)family};
    int forms = aligned ? 1 : FORM_COUNT;
    for (int i = 0; i < rounds * case_kind_count(family) * forms; i++) {
        int index = i / forms % case_kind_count(family);
        int form = aligned ? (i + i / 8) % FORM_COUNT : i % FORM_COUNT;
        struct case_kind kind = case_kind_at(family, index, (enum group_form)form);
        struct case_options options = {.aligned = aligned};
        struct gemm_case c;
        case_make(&c, &r, &kind, &options);
        case_run(&c, fixed ? fixed : devices[i % device_count]);
        struct comparison one = case_compare(&c);
        sum->compared += one.compared;
        sum->equal += one.equal;
        sum->owned += one.owned;
        if (one.equal != one.compared) {
            case_print(&c);
            fail_msg("problem %d: %lld of %lld bytes of D differ", i,
                     (long long)(one.compared - one.equal), (long long)one.compared);
        }
        if (i % 4 == 0)
            compare_packed(&c, weights);
        cover(covered, &c);
        covered->idle_rows += one.owned < case_matrices(&c.problem) * c.operands.m * c.problem.n;
        case_free(&c);
    }
}

static void check_walk(halfbyte_family family, bool aligned)
{
    struct coverage v = {0};
    struct comparison sum = {0}, weights = {0};
    halfbyte_device *sm90 =
        aligned ? case_device(HALFBYTE_PROFILE_SM90, 2, HALFBYTE_ISA_AUTO) : NULL;
    walk(family, sm90, aligned, &v, &sum, &weights);
    halfbyte_device_close(sm90);

    print_message(
        "%ld problems: %lld elements computed, %lld bytes compared, %lld weights unpacked\n",
        v.problems, (long long)sum.owned, (long long)sum.compared, (long long)weights.compared);
    total_problems += v.problems;
    long least = v.problems / 10;
    assert_int_equal(v.problems,
                     (long)rounds * case_kind_count(family) * (aligned ? 1 : FORM_COUNT));
    assert_true(sum.owned > 100 * v.problems);
    assert_int_equal(sum.equal, sum.compared);
    assert_int_equal(weights.equal, weights.compared);
    if (aligned)
        return;
    assert_true(v.splits > least && v.padded > least && v.idle_rows > least && v.bias > least);
    assert_true(v.channel > least && v.alpha_device > least && v.second_panel > least / 2);
    assert_true(v.c_aliased > least / 2 && v.ragged_k > 3 * least);
    if (family == HALFBYTE_FAMILY_W4A8) {
        assert_true(weights.compared > 500 * v.problems);
        assert_true(v.packed > least && v.minus8 > least && v.packed - v.minus8 > least / 2);
        assert_true(v.offset > least);
    }
}

static void fp8(void **state)
{
    (void)state;
    check_walk(HALFBYTE_FAMILY_FP8, false);
}

static void w4a8(void **state)
{
    (void)state;
    check_walk(HALFBYTE_FAMILY_W4A8, false);
}

static void fp8_aligned(void **state)
{
    (void)state;
    check_walk(HALFBYTE_FAMILY_FP8, true);
}

static void w4a8_aligned(void **state)
{
    (void)state;
    check_walk(HALFBYTE_FAMILY_W4A8, true);
}

static void enough_problems(void **state)
{
    (void)state;
    print_message("%ld problems in all\n", total_problems);
    assert_true(total_problems >= 2500);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = atoi(argv[1]);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp8),
        cmocka_unit_test(w4a8),
        cmocka_unit_test(fp8_aligned),
        cmocka_unit_test(w4a8_aligned),
        cmocka_unit_test(enough_problems),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
