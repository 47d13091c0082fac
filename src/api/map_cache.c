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
static map_cache_entry *entry_of(map_cache *cache, const gemm_map *from)
{
    const uint64_t key = (uint64_t)(uintptr_t)from->data ^ from->rows << 40 ^ from->box_rows;
    return &cache->entries[key * 0x9e3779b97f4a7c15u >> 58];
}
_Static_assert(MAP_CACHE_ENTRIES == 64, "six bits of the hash");

static bool entry_enter(map_cache_entry *entry)
{
    return !atomic_flag_test_and_set_explicit(&entry->busy, memory_order_acquire);
}

static void entry_leave(map_cache_entry *entry)
{
    atomic_flag_clear_explicit(&entry->busy, memory_order_release);
}

void map_cache_init(map_cache *cache)
{
    memset(cache, 0, sizeof *cache);
    for (int i = 0; i < MAP_CACHE_ENTRIES; i++) {
        atomic_flag_clear(&cache->entries[i].busy);
    }
}

bool map_cache_find(map_cache *cache, const gemm_map *from, tensor_map *map)
{
    map_cache_entry *entry = entry_of(cache, from);
    if (!entry_enter(entry)) {
        return false;
    }
    const bool found = entry->holds && same(&entry->from, from);
    if (found) {
        memcpy(map, entry->map, sizeof *map);
    }
    entry_leave(entry);
    return found;
}

void map_cache_keep(map_cache *cache, const gemm_map *from, const tensor_map *map)
{
    map_cache_entry *entry = entry_of(cache, from);
    if (!entry_enter(entry)) {
        return;
    }
    entry->from = *from;
    memcpy(entry->map, map, sizeof *map);
    entry->holds = true;
    entry_leave(entry);
}
