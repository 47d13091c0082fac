/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The maps that a plan remembers: what is found is what was kept for the very same description,
 * whatever else was kept meanwhile and by how many threads.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/map_cache.h"

static gemm_map description(uint32_t i)
{
    return (gemm_map){.data = (const void *)(uintptr_t)(0x7f0000000000u + 4096u * i),
                      .columns = 7168,
                      .rows = 1 + i % 5,
                      .planes = 1,
                      .row_bytes = 7168,
                      .plane_bytes = 7168 * 128,
                      .box_rows = 64};
}

/* The map that stands for a description: every byte depends on it. */
static tensor_map map_of(const gemm_map *from)
{
    tensor_map map;
    const uint64_t key = (uintptr_t)from->data / 256 + from->rows * 31 + from->box_rows;
    for (size_t i = 0; i < sizeof map.opaque; i++) {
        map.opaque[i] = (unsigned char)(key * (2 * i + 1) >> 3);
    }
    return map;
}

static void keep(map_cache *cache, const gemm_map *from)
{
    const tensor_map map = map_of(from);
    map_cache_keep(cache, from, &map);
}

static bool found_right(map_cache *cache, const gemm_map *from, bool *right)
{
    tensor_map map;
    memset(&map, 0, sizeof map);
    if (!map_cache_find(cache, from, &map)) {
        return false;
    }
    const tensor_map want = map_of(from);
    *right &= memcmp(&map, &want, sizeof map) == 0;
    return true;
}

static void test_kept_and_found(void **state)
{
    (void)state;
    static map_cache cache;
    map_cache_init(&cache);
    bool right = true;
    const gemm_map first = description(1);
    assert_false(found_right(&cache, &first, &right));
    keep(&cache, &first);
    assert_true(found_right(&cache, &first, &right) && right);
}

/* Each field counts: what is found is of that very description, also where others fall to the same
 * set, as one in 16 does. */
static gemm_map with_other_field(gemm_map map, int field, uint32_t by)
{
    switch (field) {
    case 0: map.data = (const char *)map.data + 16 * (size_t)by; break;
    case 1: map.columns += by; break;
    case 2: map.rows += by; break;
    case 3: map.planes += by; break;
    case 4: map.row_bytes += 16 * (uint64_t)by; break;
    case 5: map.plane_bytes += 16 * (uint64_t)by; break;
    default: map.box_rows += by; break;
    }
    return map;
}

static void test_other_descriptions(void **state)
{
    (void)state;
    const gemm_map first = description(1);
    static map_cache cache;
    map_cache_init(&cache);
    keep(&cache, &first);
    for (int field = 0; field < 7; field++) {
        for (uint32_t by = 1; by <= 400; by++) {
            const gemm_map other = with_other_field(first, field, by);
            tensor_map found;
            assert_false(map_cache_find(&cache, &other, &found));
        }
    }
    bool right = true;
    assert_true(found_right(&cache, &first, &right) && right);
}

/* More than there is room for: the last one is always there, and none is wrong. */
static void test_many(void **state)
{
    (void)state;
    static map_cache cache;
    enum { MANY = 1000 };
    bool right = true;
    int found = 0;
    map_cache_init(&cache);
    for (uint32_t i = 0; i < MANY; i++) {
        const gemm_map from = description(i);
        keep(&cache, &from);
        assert_true(found_right(&cache, &from, &right));
    }
    for (uint32_t i = 0; i < MANY; i++) {
        const gemm_map from = description(i);
        found += found_right(&cache, &from, &right);
    }
    assert_true(right);
    /* The hash spreads them. */
    assert_in_range(found, MAP_CACHE_SETS * MAP_CACHE_WAYS / 2, MAP_CACHE_SETS * MAP_CACHE_WAYS);
}

/* The maps of one run, wherever its operands lie, do not drive each other out. */
static void test_one_run(void **state)
{
    (void)state;
    bool right = true;
    for (uint32_t i = 0; i < 2000; i++) {
        static map_cache cache;
        map_cache_init(&cache);
        gemm_map of_run[3];
        for (uint32_t j = 0; j < 3; j++) {
            of_run[j] = description(i * (j + 1));
            of_run[j].rows += j;
            keep(&cache, &of_run[j]);
        }
        for (int j = 0; j < 3; j++) {
            assert_true(found_right(&cache, &of_run[j], &right));
        }
    }
    assert_true(right);
}

/* The weights of some layers, again and again: most stay. */
static void test_layers(void **state)
{
    (void)state;
    static map_cache cache;
    enum { LAYERS = 24 };
    bool right = true;
    int found = 0;
    map_cache_init(&cache);
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < LAYERS; i++) {
            gemm_map from = description(0);
            from.data = (const char *)from.data + i * 7168 * 2112;
            if (found_right(&cache, &from, &right)) {
                found++;
            } else {
                keep(&cache, &from);
            }
        }
    }
    assert_true(right);
    assert_in_range(found, LAYERS / 2, LAYERS);
}

enum { THREADS = 4, ROUNDS = 20000 };

static map_cache shared;

static void *thread_run(void *number)
{
    bool right = true;
    uint32_t at = *(const uint32_t *)number;
    for (int i = 0; i < ROUNDS; i++) {
        at = at * 1664525u + 1013904223u;
        const gemm_map from = description(at >> 24);
        if (!found_right(&shared, &from, &right)) {
            keep(&shared, &from);
        }
    }
    return right ? number : NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    uint32_t number[THREADS];
    map_cache_init(&shared);
    for (uint32_t i = 0; i < THREADS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&thread[i], NULL, thread_run, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(thread[i], &result), 0);
        assert_ptr_equal(result, &number[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_and_found), cmocka_unit_test(test_other_descriptions),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_one_run),
        cmocka_unit_test(test_layers),         cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
