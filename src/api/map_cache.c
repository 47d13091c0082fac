/* SPDX-License-Identifier: Apache-2.0 */
#include "api/map_cache.h"

#include <string.h>

static bool same(const gemm_map *x, const gemm_map *y)
{
    return x->data == y->data && x->columns == y->columns && x->rows == y->rows &&
           x->planes == y->planes && x->row_bytes == y->row_bytes &&
           x->plane_bytes == y->plane_bytes && x->box_rows == y->box_rows;
}

/* Where a description's map may be.  Buffers begin at multiples of 256 bytes and more, and lie
 * apart by multiples of their sizes, so all bits of the address count (Fibonacci hashing). */
static map_cache_set *set_of(map_cache *cache, const gemm_map *from)
{
    const uint64_t key = (uint64_t)(uintptr_t)from->data ^ from->rows << 40 ^ from->box_rows;
    return &cache->sets[key * 0x9e3779b97f4a7c15u >> 60];
}
_Static_assert(MAP_CACHE_SETS == 16, "four bits of the hash");

static bool set_enter(map_cache_set *set)
{
    return !atomic_flag_test_and_set_explicit(&set->busy, memory_order_acquire);
}

static void set_leave(map_cache_set *set)
{
    atomic_flag_clear_explicit(&set->busy, memory_order_release);
}

/* NULL: it is not there. */
static map_cache_entry *entry_of(map_cache_set *set, const gemm_map *from)
{
    for (int i = 0; i < MAP_CACHE_WAYS; i++) {
        if (set->entries[i].holds && same(&set->entries[i].from, from)) {
            return &set->entries[i];
        }
    }
    return NULL;
}

void map_cache_init(map_cache *cache)
{
    memset(cache, 0, sizeof *cache);
    for (int i = 0; i < MAP_CACHE_SETS; i++) {
        atomic_flag_clear(&cache->sets[i].busy);
    }
}

bool map_cache_find(map_cache *cache, const gemm_map *from, tensor_map *map)
{
    map_cache_set *set = set_of(cache, from);
    if (!set_enter(set)) {
        return false;
    }
    const map_cache_entry *entry = entry_of(set, from);
    if (entry != NULL) {
        memcpy(map, entry->map, sizeof *map);
    }
    set_leave(set);
    return entry != NULL;
}

void map_cache_keep(map_cache *cache, const gemm_map *from, const tensor_map *map)
{
    map_cache_set *set = set_of(cache, from);
    if (!set_enter(set)) {
        return;
    }
    map_cache_entry *entry = entry_of(set, from); /* another thread may have been faster */
    if (entry == NULL) {
        entry = &set->entries[set->next];
        set->next = (set->next + 1) % MAP_CACHE_WAYS;
    }
    entry->from = *from;
    memcpy(entry->map, map, sizeof *map);
    entry->holds = true;
    set_leave(set);
}
