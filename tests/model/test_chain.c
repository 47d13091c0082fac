/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every chain variant that this CPU runs against tensor_core_block, bit for bit.
 *
 *     model_chain [GOLDEN_VECTORS [DOT_PRODUCTS [SEED]]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/bits.h"
#include "format/fp8.h"
#include "golden_vectors.h"
#include "host_fp.h"
#include "model/chain.h"
#include "model/fp_env.h"
#include "model/tensor_core.h"
#include "random_chains.h"

#ifndef HALFBYTE_SOURCE_DIR
#define HALFBYTE_SOURCE_DIR "."
#endif

static const char *vectors_path = HALFBYTE_SOURCE_DIR "/tests/golden/hopper_vectors.bin";
static uint64_t dot_products = 1000000;
static uint64_t seed = 1;

static const chain_isa isas[] = {CHAIN_ISA_PORTABLE, CHAIN_ISA_AVX2, CHAIN_ISA_AVX512};
enum { ISAS = sizeof isas / sizeof isas[0] };

static uint32_t reference_block(const uint8_t *a, const uint8_t *b, uint32_t c)
{
    uint16_t wide_a[32], wide_b[32];
    for (int k = 0; k < 32; k++) {
        wide_a[k] = a[k];
        wide_b[k] = b[k];
    }
    return tensor_core_block(TENSOR_CORE_E4M3, wide_a, wide_b, c);
}

static void partials_set(float partial[CHAIN_COLUMNS], const uint32_t c[CHAIN_COLUMNS])
{
    memcpy(partial, c, CHAIN_COLUMNS * sizeof *c);
}

/* How many of the columns hold the expected bits. */
static uint64_t partials_equal(const float partial[CHAIN_COLUMNS],
                               const uint32_t expected[CHAIN_COLUMNS])
{
    uint32_t bits[CHAIN_COLUMNS];
    uint64_t equal = 0;
    memcpy(bits, partial, sizeof bits);
    for (int column = 0; column < CHAIN_COLUMNS; column++)
        equal += bits[column] == expected[column];
    return equal;
}

static void test_variants(void **state)
{
    (void)state;
    assert_non_null(chain_ops_get(CHAIN_ISA_AUTO));
    assert_non_null(chain_ops_get(CHAIN_ISA_PORTABLE));
    for (int i = 0; i < ISAS; i++) {
        const chain_ops *ops = chain_ops_get(isas[i]);
        print_message("variant %d: %s\n", (int)isas[i], ops ? ops->name : "not on this CPU");
    }
    print_message("chosen: %s\n", chain_ops_get(CHAIN_ISA_AUTO)->name);
}

/* How many of 32 vectors, one a column, come out right in the given block. */
static uint64_t golden_place(const chain_ops *ops, const struct golden_vector *const *vectors,
                             int block)
{
    static chain_row row;
    static chain_panel panel;
    uint8_t a[CHAIN_MAX_K] = {0}, b[CHAIN_COLUMNS][CHAIN_MAX_K] = {{0}};
    uint64_t equal = 0;

    for (int column = 0; column < CHAIN_COLUMNS; column++)
        memcpy(b[column] + 32 * block, vectors[column]->b, 32);
    ops->decode_panel(b[0], CHAIN_MAX_K, CHAIN_COLUMNS, CHAIN_MAX_K, &panel);

    /* The columns have different rows of A, so each column is run with its own. */
    for (int column = 0; column < CHAIN_COLUMNS; column++) {
        float partial[CHAIN_COLUMNS] = {0};
        memcpy(a + 32 * block, vectors[column]->a, 32);
        ops->decode_row(a, CHAIN_MAX_K, &row);
        partial[column] = float_from_bits(vectors[column]->c);
        ops->run(&row, &panel, block, 1, partial);
        equal += bits_from_float(partial[column]) == vectors[column]->d;
    }
    return equal;
}

static void test_golden_vectors(void **state)
{
    size_t count, e4m3 = 0;
    struct golden_vector *all = golden_load(vectors_path, &count);
    const struct golden_vector **vectors = malloc(count * sizeof *vectors);
    (void)state;

    assert_non_null(vectors);
    for (size_t i = 0; i < count; i++) {
        if (all[i].type == TENSOR_CORE_E4M3)
            vectors[e4m3++] = &all[i];
    }
    assert_true(e4m3 >= CHAIN_COLUMNS);
    for (int i = 0; i < ISAS; i++) {
        const chain_ops *ops = chain_ops_get(isas[i]);
        uint64_t compared = 0, equal = 0;
        if (!ops)
            continue;
        /* Groups of 32 at every offset of 7: each vector meets several columns and blocks. */
        for (size_t first = 0; first + CHAIN_COLUMNS <= e4m3; first += 7) {
            equal += golden_place(ops, vectors + first, (int)(first % CHAIN_MAX_BLOCKS));
            compared += CHAIN_COLUMNS;
        }
        equal += golden_place(ops, vectors + e4m3 - CHAIN_COLUMNS, 0);
        compared += CHAIN_COLUMNS;
        print_message("%-10s %zu e4m3 vectors in %llu places, %llu mismatches\n", ops->name, e4m3,
                      (unsigned long long)compared, (unsigned long long)(compared - equal));
        assert_int_equal(equal, compared);
    }
    free(vectors);
    free(all);
}

/* The chain of all four blocks, and the accumulators after each. */
static void reference_chain(const struct chain_case *dots,
                            uint32_t expected[CHAIN_MAX_BLOCKS][CHAIN_COLUMNS])
{
    for (int column = 0; column < CHAIN_COLUMNS; column++) {
        uint32_t c = dots->c[column];
        for (int block = 0; block < CHAIN_MAX_BLOCKS; block++) {
            c = reference_block(dots->a + 32 * block, dots->b[column] + 32 * block, c);
            expected[block][column] = c;
        }
    }
}

/* Runs the case in one call and in two, split where the caller says. */
static uint64_t case_equal(const chain_ops *ops, const struct chain_case *dots, int split,
                           uint32_t expected[CHAIN_MAX_BLOCKS][CHAIN_COLUMNS])
{
    static chain_row row;
    static chain_panel panel;
    float partial[CHAIN_COLUMNS];
    uint64_t equal;

    ops->decode_row(dots->a, CHAIN_MAX_K, &row);
    ops->decode_panel(dots->b[0], CHAIN_MAX_K, CHAIN_COLUMNS, CHAIN_MAX_K, &panel);

    partials_set(partial, dots->c);
    ops->run(&row, &panel, 0, split, partial);
    equal = partials_equal(partial, expected[split - 1]);
    ops->run(&row, &panel, split, CHAIN_MAX_BLOCKS - split, partial);
    equal += partials_equal(partial, expected[CHAIN_MAX_BLOCKS - 1]);
    return equal;
}

static void test_random(void **state)
{
    static struct chain_case dots;
    uint32_t expected[CHAIN_MAX_BLOCKS][CHAIN_COLUMNS];
    const uint64_t dots_per_case = CHAIN_COLUMNS * CHAIN_MAX_BLOCKS;
    const uint64_t cases = (dot_products + dots_per_case - 1) / dots_per_case;
    uint64_t equal[ISAS] = {0};
    struct random_source source = {seed};
    (void)state;

    for (uint64_t i = 0; i < cases; i++) {
        const unsigned kind = (unsigned)(i % chain_kinds);
        const int split = 1 + (int)random_below(&source, CHAIN_MAX_BLOCKS);
        chain_case_fill(&dots, kind, &source);
        reference_chain(&dots, expected);
        for (int isa = 0; isa < ISAS; isa++) {
            const chain_ops *ops = chain_ops_get(isas[isa]);
            if (!ops)
                continue;
            const uint64_t case_count = case_equal(ops, &dots, split, expected);
            equal[isa] += case_count;
            if (case_count != 2 * CHAIN_COLUMNS)
                fail_msg("%s differs in case %llu (%s), seed %llu", ops->name,
                         (unsigned long long)i, chain_kind_names[kind], (unsigned long long)seed);
        }
    }
    for (int isa = 0; isa < ISAS; isa++) {
        const chain_ops *ops = chain_ops_get(isas[isa]);
        if (!ops)
            continue;
        print_message("%-10s %llu dot products of 32, seed %llu, 0 differences\n", ops->name,
                      (unsigned long long)(cases * dots_per_case), (unsigned long long)seed);
        assert_int_equal(equal[isa], cases * 2 * CHAIN_COLUMNS);
    }
}

/* Every pair of codes as the only product of a block, beside nothing and beside a small C. */
static void test_all_pairs(void **state)
{
    static chain_row row;
    static chain_panel panel;
    uint64_t compared = 0, equal = 0;
    (void)state;

    for (int isa = 0; isa < ISAS; isa++) {
        const chain_ops *ops = chain_ops_get(isas[isa]);
        for (int first = 0; ops && first < 256; first += CHAIN_COLUMNS) {
            uint8_t b[CHAIN_COLUMNS][32] = {{0}};
            for (int column = 0; column < CHAIN_COLUMNS; column++)
                b[column][column] = (uint8_t)(first + column);
            ops->decode_panel(b[0], 32, CHAIN_COLUMNS, 32, &panel);
            for (int code = 0; code < 256; code++) {
                uint32_t c[CHAIN_COLUMNS], expected[CHAIN_COLUMNS];
                uint8_t a[32];
                float partial[CHAIN_COLUMNS];
                memset(a, code, sizeof a);
                for (int column = 0; column < CHAIN_COLUMNS; column++) {
                    c[column] = code % 2 ? 0 : 0x3f555555;
                    expected[column] = reference_block(a, b[column], c[column]);
                }
                partials_set(partial, c);
                ops->decode_row(a, 32, &row);
                ops->run(&row, &panel, 0, 1, partial);
                equal += partials_equal(partial, expected);
                compared += CHAIN_COLUMNS;
            }
        }
    }
    assert_true(compared >= 65536);
    assert_int_equal(equal, compared);
}

/* n columns of k codes, neither a multiple of anything, equal the same inside zeros. */
static void test_ragged(void **state)
{
    static struct chain_case dots, padded;
    static chain_row row;
    static chain_panel panel;
    struct random_source source = {seed + 1};
    uint64_t compared = 0, equal = 0;
    (void)state;

    for (int round = 0; round < 400; round++) {
        const int k = (int)random_below(&source, CHAIN_MAX_K + 1);
        const int n = (int)random_below(&source, CHAIN_COLUMNS + 1);
        const int blocks = (k + 31) / 32;
        uint32_t expected[CHAIN_MAX_BLOCKS][CHAIN_COLUMNS];

        chain_case_fill(&dots, (unsigned)round % chain_kinds, &source);
        memset(&padded, 0, sizeof padded);
        memcpy(padded.a, dots.a, (size_t)k);
        memcpy(padded.c, dots.c, sizeof padded.c);
        for (int column = 0; column < n; column++)
            memcpy(padded.b[column], dots.b[column], (size_t)k);
        reference_chain(&padded, expected);

        for (int isa = 0; isa < ISAS; isa++) {
            const chain_ops *ops = chain_ops_get(isas[isa]);
            /* Exact-size heap copies, so that an address sanitizer sees a read past the end. */
            uint8_t *a = malloc((size_t)k + 1), *b = malloc((size_t)(n * k) + 1);
            float partial[CHAIN_COLUMNS];
            assert_true(a && b);
            memcpy(a + 1, dots.a, (size_t)k);
            for (int column = 0; column < n; column++)
                memcpy(b + 1 + column * k, dots.b[column], (size_t)k);
            memset(&row, 0xff, sizeof row);
            memset(&panel, 0xff, sizeof panel);
            if (ops) {
                ops->decode_row(a + 1, k, &row);
                ops->decode_panel(b + 1, k, n, k, &panel);
                partials_set(partial, dots.c);
                ops->run(&row, &panel, 0, blocks, partial);
                equal += partials_equal(partial, blocks ? expected[blocks - 1] : dots.c);
                compared += CHAIN_COLUMNS;
            }
            free(a);
            free(b);
        }
    }
    assert_true(compared > 0);
    assert_int_equal(equal, compared);
}

/* What decode_row makes of each code. */
static void test_decoded(void **state)
{
    static chain_row row;
    uint64_t compared = 0;
    (void)state;

    for (int isa = 0; isa < ISAS; isa++) {
        const chain_ops *ops = chain_ops_get(isas[isa]);
        for (int code = 0; ops && code < 256; code++) {
            const uint8_t codes[1] = {(uint8_t)code};
            const bool nan = (code & 0x7f) == E4M3_NAN;
            const bool zero = (code & 0x7f) == 0;
            const int field = code >> 3 & 15;
            ops->decode_row(codes, 1, &row);
            assert_int_equal(row.nan, nan);
            if (nan) {
                assert_true(row.value[0] >= -480.0f && row.value[0] <= 480.0f);
                assert_in_range(row.exponent[0] - CHAIN_ZERO, 0, 8 - CHAIN_ZERO);
            } else {
                assert_true(row.value[0] == e4m3_decode((uint8_t)code));
                assert_int_equal(row.exponent[0], zero ? CHAIN_ZERO : (field ? field : 1) - 7);
            }
            compared++;
        }
    }
    assert_true(compared >= 256);
}

/* The environment of fp_env.h is what makes the variants agree, whatever the host has set. */
static void test_hostile_host(void **state)
{
    (void)state;
    const fp_env host = fp_env_save();
    host_fp_set_hostile();
    fp_env_set();
    const uint64_t before = dot_products;
    dot_products = before < 20000 ? before : 20000;
    test_random(NULL);
    dot_products = before;
    fp_env_restore(host);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants),       cmocka_unit_test(test_decoded),
        cmocka_unit_test(test_golden_vectors), cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_ragged),         cmocka_unit_test(test_random),
        cmocka_unit_test(test_hostile_host),
    };
    if (argc > 1)
        vectors_path = argv[1];
    if (argc > 2)
        dot_products = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        seed = strtoull(argv[3], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
