/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the error bound have teeth? Each mutation changes what the library is given, so that it
 * computes what a kernel with that bug would, and the result is held against the bound of the
 * operands that were meant. Every mutant of every problem must be seen.
 *
 * One wrong nibble is below the bound's sight: shown here too, with the two ways that do see it.
 */
#include "oracle/bound.h"
#include "oracle/gemm_case.h"
#include "oracle/operand.h"
#include "oracle/oracle_element.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PROBLEMS 16 /* of each mutation */
#define ROWS 7
#define COLUMNS 24

static halfbyte_device *device;

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

/* A copy of a whole operand with room behind it, since a mutant may read beyond what was meant. */
static void *copy_with_room(struct gemm_case *c, const void *data, size_t bytes, size_t room)
{
    uint8_t *copy = case_memory(c, bytes + room, 0);
    memcpy(copy, data, bytes);
    for (size_t i = 0; i < room; i++)
        copy[bytes + i] = copy[i % bytes];
    return copy;
}

static size_t scale_bytes(const halfbyte_scale_spec *spec, const halfbyte_scale_in *s, int64_t mn,
                          int64_t kb)
{
    int64_t last = spec->mode == HALFBYTE_SCALE_OUTER        ? mn - 1
                   : spec->layout == HALFBYTE_SCALE_MN_MAJOR ? mn - 1 + (kb - 1) * s->stride_k
                                                             : kb - 1 + (mn - 1) * s->stride_mn;
    halfbyte_type type = spec->type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : spec->type;
    return (size_t)(last + 1) * (size_t)halfbyte_type_bits(type) / 8;
}

/* ---- mutations: each changes the operands (or the problem) that the library sees ------------- */

static int64_t b_extent_k(const halfbyte_problem *p)
{
    return oracle_blocks(p).count;
}

static void wrong_a_stride(struct gemm_case *c)
{
    halfbyte_scale_in *s = &c->operands.a_scale;
    int64_t kb = (c->problem.k + 127) / 128;
    size_t bytes = scale_bytes(&c->problem.a_scale, s, c->operands.m, kb);
    s->data = copy_with_room(c, s->data, bytes, 16 * (size_t)(kb + c->operands.m));
    s->stride_k += c->problem.a_scale.layout == HALFBYTE_SCALE_MN_MAJOR;
    s->stride_mn += c->problem.a_scale.layout == HALFBYTE_SCALE_K_MAJOR;
}

static void wrong_b_stride(struct gemm_case *c)
{
    halfbyte_scale_in *s = &c->operands.b_scale;
    int64_t kb = b_extent_k(&c->problem);
    size_t bytes = scale_bytes(&c->problem.b_scale, s, c->problem.n, kb);
    s->data = copy_with_room(c, s->data, bytes, 16 * (size_t)(kb + c->problem.n));
    s->stride_k += c->problem.b_scale.layout == HALFBYTE_SCALE_MN_MAJOR;
    s->stride_mn += c->problem.b_scale.layout == HALFBYTE_SCALE_K_MAJOR;
}

static void transpose(halfbyte_scale_spec *spec, halfbyte_scale_in *s, int64_t mn, int64_t kb)
{
    if (spec->layout == HALFBYTE_SCALE_MN_MAJOR) {
        spec->layout = HALFBYTE_SCALE_K_MAJOR;
        s->stride_mn = kb;
        s->stride_k = 1;
    } else {
        spec->layout = HALFBYTE_SCALE_MN_MAJOR;
        s->stride_k = mn;
        s->stride_mn = 1;
    }
}

static void transposed_a(struct gemm_case *c)
{
    transpose(&c->problem.a_scale, &c->operands.a_scale, c->operands.m, (c->problem.k + 127) / 128);
}

static void transposed_b(struct gemm_case *c)
{
    transpose(&c->problem.b_scale, &c->operands.b_scale, c->problem.n, b_extent_k(&c->problem));
}

static void dropped_group(struct gemm_case *c)
{
    halfbyte_matrix_in *a = &c->operands.a;
    int64_t start, end, rows = c->operands.m;
    size_t bytes = (size_t)((rows - 1) * a->ld + c->problem.k);
    uint8_t *data = copy_with_room(c, a->data, bytes, 16);
    oracle_block_range(&c->problem, oracle_blocks(&c->problem).count / 2, &start, &end);
    for (int64_t row = 0; row < rows; row++)
        memset(data + row * a->ld + start, 0, (size_t)(end - start));
    a->data = data;
}

static void offset_ignored(struct gemm_case *c)
{
    c->problem.group_k_offset = 0;
}

static void neighbour_row(struct gemm_case *c)
{
    halfbyte_scale_in *s = &c->operands.a_scale;
    int64_t kb = (c->problem.k + 127) / 128;
    int64_t step = c->problem.a_scale.layout == HALFBYTE_SCALE_K_MAJOR ? s->stride_mn : 1;
    size_t bytes = scale_bytes(&c->problem.a_scale, s, c->operands.m, kb);
    s->data = (const float *)copy_with_room(c, s->data, bytes, 4 * (size_t)step) + step;
}

static void swapped_nibbles(struct gemm_case *c)
{
    halfbyte_matrix_in *b = &c->operands.b;
    size_t bytes = (size_t)((c->problem.n - 1) * b->ld + c->problem.k + 1) / 2;
    uint8_t *data = copy_with_room(c, b->data, bytes, 16);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(data[i] << 4 | data[i] >> 4);
    b->data = data;
}

static void short_k(struct gemm_case *c)
{
    c->problem.k -= 32;
}

static void no_alpha(struct gemm_case *c)
{
    c->problem.alpha_mode = HALFBYTE_ALPHA_NONE;
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct case_kind kind_of(halfbyte_family family, halfbyte_scale_mode a,
                                halfbyte_scale_layout a_layout, halfbyte_scale_mode b,
                                halfbyte_scale_layout b_layout, int64_t size)
{
    struct case_kind kind = {family,
                             FORM_DENSE,
                             {a, HALFBYTE_TYPE_F32, a_layout},
                             {b, HALFBYTE_TYPE_F32, b_layout},
                             size};
    if (a == HALFBYTE_SCALE_NONE)
        kind.a_scale.type = HALFBYTE_TYPE_NONE;
    return kind;
}

struct problem_tally {
    int violated, violating_problems, elements, honest;
};

/* Elements of D outside the bound of the operands that were meant. */
static int violations(const struct gemm_case *mutant, const halfbyte_problem *meant)
{
    int outside = 0;
    for (int64_t row = 0; row < mutant->operands.m; row++) {
        for (int64_t column = 0; column < meant->n; column++) {
            struct bounded b = bound_element(meant, &mutant->before, 0, row, column);
            int64_t at = oracle_d_offset(meant, &mutant->before, 0, row, column);
            assert_true(b.applies);
            outside += !bound_holds(&b, meant->d_type,
                                    oracle_load(mutant->operands.d.data, meant->d_type, at));
        }
    }
    return outside;
}

/* A drawn problem whose bound applies; D of fp32 or bf16, so that nothing overflows. */
static void make_meant(struct gemm_case *c, struct random *r, const struct case_kind *kind,
                       halfbyte_b_layout b_layout, bool with_offset)
{
    struct case_options options = {
        .plain = true, .finite = true, .m = ROWS, .n = COLUMNS, .k = 512};
    for (;;) {
        case_make(c, r, kind, &options);
        bool offset_fits = !with_offset || c->problem.group_k_offset != 0;
        if (c->problem.d_type != HALFBYTE_TYPE_F16 && c->problem.b_layout == b_layout &&
            c->problem.alpha_mode != HALFBYTE_ALPHA_NONE && offset_fits)
            return;
        case_free(c);
    }
}

struct mutation {
    const char *name;
    void (*mutate)(struct gemm_case *c);
    halfbyte_family family;
    halfbyte_scale_mode a, b;
    halfbyte_scale_layout a_layout, b_layout;
    int64_t size;
};

#define FP8 HALFBYTE_FAMILY_FP8
#define W4 HALFBYTE_FAMILY_W4A8
#define NONE HALFBYTE_SCALE_NONE
#define OUTER HALFBYTE_SCALE_OUTER
#define S1X128 HALFBYTE_SCALE_1X128
#define S128 HALFBYTE_SCALE_128X128
#define GROUP HALFBYTE_SCALE_K_GROUP
#define MN HALFBYTE_SCALE_MN_MAJOR
#define KM HALFBYTE_SCALE_K_MAJOR

static const struct mutation mutations[] = {
    {"A scale, wrong stride along k", wrong_a_stride, FP8, S1X128, S128, MN, KM, 0},
    {"A scale, wrong stride along m", wrong_a_stride, FP8, S1X128, S128, KM, KM, 0},
    {"B scale, wrong stride along k", wrong_b_stride, W4, OUTER, GROUP, MN, MN, 128},
    {"B scale, wrong stride along n", wrong_b_stride, W4, OUTER, GROUP, MN, KM, 32},
    {"A scale transposed", transposed_a, FP8, S1X128, S1X128, MN, KM, 0},
    {"A scale transposed, w4", transposed_a, W4, S1X128, GROUP, KM, KM, 128},
    {"B scale transposed", transposed_b, FP8, S1X128, S1X128, MN, KM, 0},
    {"B scale transposed, w4", transposed_b, W4, OUTER, GROUP, MN, MN, 64},
    {"k group dropped, 128", dropped_group, FP8, S1X128, S128, MN, KM, 0},
    {"k group dropped, w4 128", dropped_group, W4, S1X128, GROUP, MN, KM, 128},
    {"k group dropped, w4 32", dropped_group, W4, NONE, GROUP, MN, KM, 32},
    {"group_k_offset ignored, 64", offset_ignored, W4, OUTER, GROUP, MN, KM, 64},
    {"group_k_offset ignored, 128", offset_ignored, W4, OUTER, GROUP, MN, MN, 128},
    {"A scale of the next row, OUTER", neighbour_row, W4, OUTER, GROUP, MN, KM, 128},
    {"A scale of the next row, 1X128", neighbour_row, FP8, S1X128, S128, MN, KM, 0},
    {"w4 nibbles swapped", swapped_nibbles, W4, OUTER, GROUP, MN, KM, 128},
    {"last 32 of k left out", short_k, W4, OUTER, OUTER, MN, MN, 0},
    {"alpha left out", no_alpha, FP8, OUTER, OUTER, MN, MN, 0},
};

#define MUTATIONS ((int)(sizeof mutations / sizeof mutations[0]))

static void try_mutation(const struct mutation *mutation, struct random *r,
                         struct problem_tally *tally)
{
    struct case_kind kind = kind_of(mutation->family, mutation->a, mutation->a_layout, mutation->b,
                                    mutation->b_layout, mutation->size);
    struct gemm_case c;
    bool with_offset = mutation->mutate == offset_ignored;
    make_meant(&c, r, &kind, HALFBYTE_B_ROW_MAJOR, with_offset);
    if (with_offset && c.problem.k_splits > 4)
        c.problem.k_splits = 4; /* the mutant may have one block less */
    halfbyte_problem meant = c.problem;

    case_run(&c, device);
    tally->honest += violations(&c, &meant);
    memcpy(c.d_base, c.d_before, c.d_bytes);
    mutation->mutate(&c);
    case_run(&c, device);
    int outside = violations(&c, &meant);
    tally->violated += outside;
    tally->violating_problems += outside > 0;
    tally->elements += (int)(c.operands.m * meant.n);
    case_free(&c);
}

static void bound_sees_mutations(void **state)
{
    (void)state;
    struct random r = {41};
    for (int i = 0; i < MUTATIONS; i++) {
        struct problem_tally tally = {0};
        for (int problem = 0; problem < PROBLEMS; problem++)
            try_mutation(&mutations[i], &r, &tally);
        print_message("%-32s seen in %d of %d problems, %d of %d elements\n", mutations[i].name,
                      tally.violating_problems, PROBLEMS, tally.violated, tally.elements);
        assert_int_equal(tally.honest, 0);
        assert_int_equal(tally.elements, PROBLEMS * ROWS * COLUMNS);
        assert_int_equal(tally.violating_problems, PROBLEMS);
    }
}

/* ---- one nibble ------------------------------------------------------------------------------ */

/*
 * Activations over the whole range of e4m3: the large ones push the small ones' last bits out of
 * the sum, which the bound must allow for and a wrong weight can hide behind. (With activations of
 * one size nothing is cut, and the bound sees even one nibble.)
 */
static void widen_activations(struct gemm_case *c, struct random *r)
{
    halfbyte_matrix_in *a = &c->operands.a;
    int64_t count = (c->operands.m - 1) * a->ld + c->problem.k;
    uint8_t *data = case_memory(c, (size_t)count, 0);
    for (int64_t i = 0; i < count; i++) {
        uint8_t code = (uint8_t)random_bits(r);
        data[i] = (code & 0x7f) == 0x7f ? 0 : code;
    }
    a->data = data;
    c->before.a = *a;
}

/* Adds to one int4 weight of a row-major tensor, wrapping round. */
static void change_nibble(uint8_t *data, int64_t at, int difference)
{
    int shift = at % 2 ? 4 : 0, old = data[at / 2] >> shift & 15;
    data[at / 2] = (uint8_t)((data[at / 2] & ~(15 << shift)) | ((old + difference) & 15) << shift);
}

static void one_nibble(void **state)
{
    (void)state;
    enum { TRIALS = 200 };
    struct random r = {42};
    struct case_kind kind = kind_of(W4, OUTER, MN, GROUP, KM, 128);
    int by_bound = 0, by_equality = 0, trials = 0;
    while (trials < TRIALS) {
        struct gemm_case c;
        make_meant(&c, &r, &kind, HALFBYTE_B_ROW_MAJOR, false);
        if (c.problem.d_type != HALFBYTE_TYPE_F32) {
            case_free(&c);
            continue;
        }
        widen_activations(&c, &r);
        halfbyte_matrix_in *b = &c.operands.b;
        size_t bytes = (size_t)((c.problem.n - 1) * b->ld + c.problem.k + 1) / 2;
        uint8_t *data = copy_with_room(&c, b->data, bytes, 16);
        int64_t column = random_below(&r, c.problem.n), k = random_below(&r, c.problem.k);
        change_nibble(data, column * b->ld + k, 1);
        b->data = data;
        case_run(&c, device);
        by_bound += violations(&c, &c.problem) > 0;
        struct comparison compared = case_compare(&c);
        by_equality += compared.equal != compared.compared;
        trials++;
        case_free(&c);
    }
    print_message("one nibble off by one: seen by the bound in %d, by equality in %d of %d\n",
                  by_bound, by_equality, trials);
    assert_int_equal(by_equality, trials);
    assert_true(by_bound < trials * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_sees_mutations),
        cmocka_unit_test(one_nibble),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
