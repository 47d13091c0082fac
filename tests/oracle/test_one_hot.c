/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-hot activations: row k of A holds a single 1.0, at k, so D[k, n] is weight (n, k) times its
 * scale, rounded once. Every weight of a matrix shows alone, whatever the sums around it would
 * hide.
 */
#include "oracle/exact.h"
#include "oracle/gemm_case.h"
#include "oracle/operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ONE_E4M3 0x38u
#define N 72
#define K 416

static halfbyte_device *device;

/* Weights of the case stay; A becomes the unit matrix, everything of the epilogue goes. */
static void make_one_hot(struct gemm_case *c, struct random *r, const struct case_kind *kind,
                         halfbyte_b_layout layout)
{
    struct case_options options = {.finite = true, .m = 1, .n = N, .k = K};
    do {
        case_free(c);
        case_make(c, r, kind, &options);
    } while (c->problem.b_layout != layout);
    halfbyte_problem *p = &c->problem;
    p->d_type = HALFBYTE_TYPE_F32;
    p->bias_type = p->c_type = p->channel_scale_type = HALFBYTE_TYPE_NONE;
    p->alpha_mode = HALFBYTE_ALPHA_NONE;
    p->k_splits = 1;
    p->m_max = p->k;
    uint8_t *a = case_memory(c, (size_t)(p->k * p->k), 0);
    memset(a, 0, (size_t)(p->k * p->k));
    for (int64_t k = 0; k < p->k; k++)
        a[k * p->k + k] = ONE_E4M3;
    c->operands.m = p->k;
    c->operands.a = (halfbyte_matrix_in){a, p->k, 0};
    float *d = case_memory(c, (size_t)(p->k * p->n) * sizeof *d, 0);
    c->operands.d = (halfbyte_matrix_out){d, p->n, 0};
}

/* weight * scale in one rounding: the partial sum is exact, the factor 512 too; a zero is +0. */
static uint32_t expected(const struct gemm_case *c, int64_t column, int64_t k)
{
    const halfbyte_problem *p = &c->problem;
    struct oracle_blocks blocks = oracle_blocks(p);
    int64_t b = (k + blocks.offset) / blocks.length;
    uint32_t scale = oracle_b_block_scale(p, &c->operands, 0, column, b);
    uint32_t weight;
    if (p->family == HALFBYTE_FAMILY_FP8) {
        weight = oracle_widen(HALFBYTE_TYPE_E4M3, oracle_b(p, &c->operands, 0, column, k));
    } else {
        float value = (float)oracle_int4(p, &c->operands, 0, column, k);
        memcpy(&weight, &value, sizeof weight);
    }
    uint32_t product = oracle_mul(weight, scale);
    return (product & 0x7fffffffu) == 0 ? 0 : product;
}

/* Compares all of D; returns how many elements differ. */
static int64_t differing(const struct gemm_case *c, int64_t *compared)
{
    int64_t different = 0;
    for (int64_t k = 0; k < c->problem.k; k++) {
        for (int64_t column = 0; column < c->problem.n; column++) {
            uint32_t got =
                oracle_load(c->operands.d.data, HALFBYTE_TYPE_F32, k * c->operands.d.ld + column);
            ++*compared;
            different += !(got == expected(c, column, k));
        }
    }
    return different;
}

static void every_weight(void **state)
{
    (void)state;
    struct random r = {51};
    int64_t compared = 0, matrices = 0;
    for (int family = HALFBYTE_FAMILY_FP8; family <= HALFBYTE_FAMILY_W4A8; family++) {
        for (int i = 0; i < case_kind_count((halfbyte_family)family); i++) {
            struct case_kind kind = case_kind_at((halfbyte_family)family, i, FORM_DENSE);
            bool along_k = kind.b_scale.mode >= HALFBYTE_SCALE_1X128;
            if (kind.a_scale.mode != HALFBYTE_SCALE_NONE || !along_k)
                continue;
            for (int packed = 0; packed < family; packed++) {
                struct gemm_case c = {.memories = 0};
                make_one_hot(&c, &r, &kind, (halfbyte_b_layout)packed);
                case_run(&c, device);
                assert_int_equal(differing(&c, &compared), 0);
                matrices++;
                case_free(&c);
            }
        }
    }
    print_message("%lld weights of %lld matrices\n", (long long)compared, (long long)matrices);
    assert_int_equal(matrices, 4 + 2 * 44);
    assert_true(compared >= matrices * N * K);
}

/* One wrong nibble in what the library is given is one wrong element, in its place. */
static void one_nibble(void **state)
{
    (void)state;
    enum { TRIALS = 100 };
    struct random r = {52};
    struct case_kind kind = {HALFBYTE_FAMILY_W4A8,
                             FORM_DENSE,
                             {HALFBYTE_SCALE_NONE, HALFBYTE_TYPE_NONE, HALFBYTE_SCALE_MN_MAJOR},
                             {HALFBYTE_SCALE_K_GROUP, HALFBYTE_TYPE_BF16, HALFBYTE_SCALE_K_MAJOR},
                             64};
    int64_t compared = 0, seen = 0, others = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct gemm_case c = {.memories = 0};
        make_one_hot(&c, &r, &kind, HALFBYTE_B_ROW_MAJOR);
        int64_t column = random_below(&r, N), k = random_below(&r, K);
        const halfbyte_matrix_in meant = c.operands.b;
        size_t bytes = (size_t)((N - 1) * meant.ld + K + 1) / 2;
        uint8_t *wrong = case_memory(&c, bytes, 0);
        memcpy(wrong, meant.data, bytes);
        wrong[(column * meant.ld + k) / 2] ^= (uint8_t)(k % 2 ? 0x10 : 0x01);
        c.operands.b.data = wrong;
        uint32_t scale = oracle_b_block_scale(&c.problem, &c.operands, 0, column,
                                              (k + c.problem.group_k_offset) / 64);
        case_run(&c, device);
        c.operands.b = meant;
        int64_t different = differing(&c, &compared);
        uint32_t there = oracle_load(c.operands.d.data, HALFBYTE_TYPE_F32, k * N + column);
        bool here = !(there == expected(&c, column, k));
        seen += here || (scale & 0x7fffffffu) == 0; /* a zero scale hides every weight, rightly */
        others += different - here;
        case_free(&c);
    }
    assert_int_equal(compared, (int64_t)TRIALS * N * K);
    assert_int_equal(seen, TRIALS);
    assert_int_equal(others, 0);
}

static int open_device(void **state)
{
    (void)state;
    device = case_device(HALFBYTE_PROFILE_ANY, 2, HALFBYTE_ISA_AUTO);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    halfbyte_device_close(device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_weight),
        cmocka_unit_test(one_nibble),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
