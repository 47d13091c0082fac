/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps that a plan's runs have encoded.  The driver takes as long for one as all the rest of
 * a run; weights lie where they lay the last time, and activations mostly do.
 *
 * A map says where a tensor lies and how, nothing of what is there, so one that was made for the
 * same description is right whatever has happened to the memory since.
 *
 * Any number of threads may use a cache at a time.  Nobody waits: a set that another thread holds
 * is passed over, by the one that looks and by the one that keeps.
 */
#ifndef HALFBYTE_API_MAP_CACHE_H
#define HALFBYTE_API_MAP_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cuda/gemm_map.h"
#include "kernels/hopper/types.h"

/* As many entries as some tens of layers that share a plan have operands; in a set more than a run
 * has maps, so that a run's maps do not drive each other out at every run. */
enum { MAP_CACHE_SETS = 16, MAP_CACHE_WAYS = 8 };

typedef struct map_cache_entry {
    bool holds;
    gemm_map from;
    unsigned char map[sizeof(tensor_map)];
} map_cache_entry;

typedef struct map_cache_set {
    atomic_flag busy;
    unsigned next; /* of the entries, to be replaced */
    map_cache_entry entries[MAP_CACHE_WAYS];
} map_cache_set;

typedef struct map_cache {
    map_cache_set sets[MAP_CACHE_SETS];
} map_cache;

/* Makes all entries empty. */
void map_cache_init(map_cache *cache);

/* The map of that description, if it is there. */
bool map_cache_find(map_cache *cache, const gemm_map *from, tensor_map *map);

/* Keeps it, in the place of another one if need be. */
void map_cache_keep(map_cache *cache, const gemm_map *from, const tensor_map *map);

#endif
