/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale_layout.h against the layouts as their users describe them: by reshape and transpose, or as
 * an array walked in memory order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/scale_layout.h"
#include "reference.h"

#define POISON 0xa5

static struct scale_layout layout_of(enum scale_order order, int64_t mn, int64_t num_k, int64_t ld)
{
    struct scale_layout layout;
    assert_true(scale_layout_init(&layout, order, mn, num_k, ld));
    assert_int_equal(layout.order, order);
    assert_int_equal(layout.num_mn, mn);
    assert_int_equal(layout.num_k, num_k);
    return layout;
}

/* Walks memory in order and says whose scale stands there. */
static void offsets_follow_memory_order(void **state)
{
    (void)state;
    for (int64_t mn = 1; mn < 9; mn++)
        for (int64_t num_k = 1; num_k < 14; num_k++)
            for (int64_t gap = 0; gap < 3; gap++) {
                const struct scale_layout by_mn = layout_of(SCALE_MN_MAJOR, mn, num_k, mn + gap);
                int64_t offset = 0;
                for (int64_t k = 0; k < num_k; k++, offset += gap)
                    for (int64_t i = 0; i < mn; i++)
                        assert_int_equal(scale_layout_offset(&by_mn, i, k), offset++);
                assert_int_equal(scale_layout_elems(&by_mn), offset - gap);

                const struct scale_layout by_k = layout_of(SCALE_K_MAJOR, mn, num_k, num_k + gap);
                offset = 0;
                for (int64_t i = 0; i < mn; i++, offset += gap)
                    for (int64_t k = 0; k < num_k; k++)
                        assert_int_equal(scale_layout_offset(&by_k, i, k), offset++);
                assert_int_equal(scale_layout_elems(&by_k), offset - gap);
            }
    for (int64_t mn = 1; mn < 9; mn++)
        for (int64_t num_k = 1; num_k < 14; num_k++) {
            /* [N, G/A, A] permuted to [G/A, N, A] */
            const struct scale_layout moe = layout_of(SCALE_W4A8_MOE, mn, num_k, 0);
            const int64_t a = num_k == 4 || num_k == 8 || num_k == 12 ? 4 : 1;
            int64_t offset = 0;
            for (int64_t outer = 0; outer < num_k / a; outer++)
                for (int64_t n = 0; n < mn; n++)
                    for (int64_t inner = 0; inner < a; inner++)
                        assert_int_equal(scale_layout_offset(&moe, n, outer * a + inner), offset++);
            assert_int_equal(scale_layout_elems(&moe), mn * num_k);
            assert_int_equal(offset, mn * num_k);
            assert_int_equal(moe.ld, a);

            const struct scale_layout l4 = layout_of(SCALE_BLK128_L4, mn, num_k, 0);
            int64_t padded = num_k;
            while (padded % 4 != 0)
                padded++;
            for (int64_t i = 0; i < mn; i++)
                for (int64_t k = 0; k < num_k; k++)
                    assert_int_equal(scale_layout_offset(&l4, i, k), i * padded + k);
            assert_int_equal(scale_layout_elems(&l4), mn * padded);
            assert_int_equal(l4.ld, padded);
        }
}

/* Element (n, g) sits at row g/A, column n*A + g%A of a matrix with num_mn*A columns. */
static void interleaves_known_tensors(void **state)
{
    (void)state;
    static const uint16_t plain[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                         {10, 11, 12, 13, 14, 15, 16, 17}};
    static const uint16_t want[16] = {0, 1, 2, 3, 10, 11, 12, 13, 4, 5, 6, 7, 14, 15, 16, 17};
    const struct scale_layout from = layout_of(SCALE_K_MAJOR, 2, 8, 8);
    const struct scale_layout to = layout_of(SCALE_W4A8_MOE, 2, 8, 4);
    uint16_t got[16];
    assert_true(scale_layout_convert(got, &to, plain, &from, 2));
    assert_memory_equal(got, want, sizeof want);

    static const uint16_t narrow[2][3] = {{0, 1, 2}, {10, 11, 12}};
    static const uint16_t want_narrow[6] = {0, 10, 1, 11, 2, 12};
    const struct scale_layout from3 = layout_of(SCALE_K_MAJOR, 2, 3, 3);
    const struct scale_layout to3 = layout_of(SCALE_W4A8_MOE, 2, 3, 1);
    assert_true(scale_layout_convert(got, &to3, narrow, &from3, 2));
    assert_memory_equal(got, want_narrow, sizeof want_narrow);

    static const uint16_t want_l4[8] = {0, 1, 2, 0, 10, 11, 12, 0};
    const struct scale_layout l4 = layout_of(SCALE_BLK128_L4, 2, 3, 0);
    memset(got, POISON, sizeof got);
    assert_true(scale_layout_convert(got, &l4, narrow, &from3, 2));
    assert_memory_equal(got, want_l4, sizeof want_l4);
    assert_int_equal(got[8], POISON << 8 | POISON);
}

static void check_conversion(const struct scale_layout *to, const struct scale_layout *from,
                             size_t elem_bytes, uint64_t *seed)
{
    enum { MAX = 4096, LEAD = 3 }; /* 3 bytes in front: no alignment is needed */
    static uint8_t src[MAX], dst[MAX], want[MAX], back[MAX], want_back[MAX];
    assert_true((size_t)scale_layout_elems(to) * elem_bytes + LEAD < MAX);
    assert_true((size_t)scale_layout_elems(from) * elem_bytes + LEAD < MAX);
    for (size_t i = 0; i < MAX; i++)
        src[i] = (uint8_t)ref_random(seed);
    memset(dst, POISON, MAX);
    memset(want, POISON, MAX);
    memset(back, POISON, MAX);
    memset(want_back, POISON, MAX);
    if (to->order == SCALE_BLK128_L4)
        memset(want + LEAD, 0, (size_t)scale_layout_elems(to) * elem_bytes);
    if (from->order == SCALE_BLK128_L4)
        memset(want_back + LEAD, 0, (size_t)scale_layout_elems(from) * elem_bytes);
    for (int64_t mn = 0; mn < to->num_mn; mn++)
        for (int64_t k = 0; k < to->num_k; k++)
            for (size_t b = 0; b < elem_bytes; b++) {
                const size_t at_from = (size_t)scale_layout_offset(from, mn, k) * elem_bytes + b;
                const size_t at_to = (size_t)scale_layout_offset(to, mn, k) * elem_bytes + b;
                want[LEAD + at_to] = want_back[LEAD + at_from] = src[LEAD + at_from];
            }
    assert_true(scale_layout_convert(dst + LEAD, to, src + LEAD, from, elem_bytes));
    assert_memory_equal(dst, want, MAX);
    assert_true(scale_layout_convert(back + LEAD, from, dst + LEAD, to, elem_bytes));
    assert_memory_equal(back, want_back, MAX);
}

static void converts_every_pair_of_layouts(void **state)
{
    (void)state;
    static const enum scale_order orders[4] = {SCALE_MN_MAJOR, SCALE_K_MAJOR, SCALE_W4A8_MOE,
                                               SCALE_BLK128_L4};
    static const size_t sizes[3] = {1, 2, 4};
    uint64_t seed = 13, compared = 0;
    for (int64_t mn = 0; mn < 12; mn++)
        for (int64_t num_k = 0; num_k < 14; num_k++)
            for (int to = 0; to < 4; to++)
                for (int from = 0; from < 4; from++)
                    for (int s = 0; s < 3; s++, compared++) {
                        const int64_t to_ld = to == 0 ? mn + 1 : to == 1 ? num_k + 3 : 0;
                        const int64_t from_ld = from == 0 ? mn + 2 : from == 1 ? num_k : 0;
                        const struct scale_layout a = layout_of(orders[to], mn, num_k, to_ld);
                        const struct scale_layout b = layout_of(orders[from], mn, num_k, from_ld);
                        check_conversion(&a, &b, sizes[s], &seed);
                    }
    assert_int_equal(compared, 12 * 14 * 16 * 3);
}

static void refuses_bad_layouts(void **state)
{
    (void)state;
    struct scale_layout layout = {SCALE_K_MAJOR, 77, 77, 77};
    const struct {
        int order;
        int64_t mn, num_k, ld;
    } bad[] = {
        {SCALE_MN_MAJOR, -1, 4, 8},
        {SCALE_MN_MAJOR, 4, -1, 8},
        {SCALE_MN_MAJOR, 4, 4, -8},
        {SCALE_MN_MAJOR, 4, 8, 3},
        {SCALE_K_MAJOR, 8, 4, 3},
        {SCALE_K_MAJOR, 8, 4, 0},
        {SCALE_W4A8_MOE, 8, 4, 1},
        {SCALE_W4A8_MOE, 8, 5, 4},
        {SCALE_BLK128_L4, 8, 5, 5},
        {9, 8, 5, 8},
        {-1, 8, 5, 8},
        {SCALE_MN_MAJOR, 4, INT64_C(1) << 40, INT64_C(1) << 30},
        {SCALE_K_MAJOR, INT64_C(1) << 40, 4, INT64_C(1) << 30},
        {SCALE_W4A8_MOE, INT64_C(1) << 40, INT64_C(1) << 30, 0},
        {SCALE_BLK128_L4, 2, INT64_MAX, 0},
        {SCALE_BLK128_L4, INT64_C(1) << 40, INT64_C(1) << 30, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(scale_layout_init(&layout, (enum scale_order)bad[i].order, bad[i].mn,
                                       bad[i].num_k, bad[i].ld));
        assert_true(layout.order == SCALE_K_MAJOR && layout.num_mn == 77 && layout.num_k == 77 &&
                    layout.ld == 77);
    }

    static const uint8_t src[64] = {1, 2, 3};
    uint8_t dst[64], want[64];
    memset(dst, POISON, sizeof dst);
    memset(want, POISON, sizeof want);
    const struct scale_layout a = layout_of(SCALE_K_MAJOR, 2, 4, 4);
    const struct scale_layout fewer_rows = layout_of(SCALE_MN_MAJOR, 1, 4, 2);
    const struct scale_layout fewer_blocks = layout_of(SCALE_MN_MAJOR, 2, 3, 2);
    static const size_t bad_sizes[] = {0, 3, 8, (size_t)-1};
    for (size_t i = 0; i < 4; i++)
        assert_false(scale_layout_convert(dst, &a, src, &a, bad_sizes[i]));
    assert_false(scale_layout_convert(dst, &a, src, &fewer_rows, 2));
    assert_false(scale_layout_convert(dst, &a, src, &fewer_blocks, 2));
    assert_memory_equal(dst, want, sizeof dst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_follow_memory_order),
        cmocka_unit_test(interleaves_known_tensors),
        cmocka_unit_test(converts_every_pair_of_layouts),
        cmocka_unit_test(refuses_bad_layouts),
    };
    return cmocka_run_group_tests_name("format_scale_layout", tests, NULL, NULL);
}
