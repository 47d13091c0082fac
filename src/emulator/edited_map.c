/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensormap.replace and its fences.  PTX ISA 9.7.9.28, 9.7.13.4.
 */
#include <stdlib.h>
#include <string.h>

#include "emulator/copy.h"
#include "emulator/edited_map.h"
#include "emulator/tensor_map.h"

/* A copy that reads the map, until either has happened. */
typedef struct map_reader {
    touch by, also;
} map_reader;

/* A map in global memory that was used or edited. */
typedef struct watched_map {
    struct watched_map *next;
    const tensor_map *map;
    uint32_t version; /* edits so far */
    const thread *writer;
    const emu_site *write_site;
    uint32_t write_clock;   /* of the last edit */
    uint32_t release_clock; /* of the writer at its release fence after it; 0 = none yet */
    uint32_t *acquired;     /* version that each thread of the machine acquired */
    map_reader *readers;
    uint32_t reader_count, reader_capacity;
} watched_map;

static watched_map *all_maps;

void edited_maps_forget(void)
{
    while (all_maps != NULL) {
        watched_map *one = all_maps;
        all_maps = one->next;
        free(one->acquired);
        free(one->readers);
        free(one);
    }
}

static watched_map *find(const tensor_map *map)
{
    for (watched_map *one = all_maps; one != NULL; one = one->next) {
        if (one->map == map) {
            return one;
        }
    }
    return NULL;
}

/* The watched map at this address; NULL for maps outside all buffers. */
static watched_map *watch(const tensor_map *map)
{
    watched_map *one = find(map);
    if (one != NULL || memory_find(the_machine.memory, map, sizeof *map) == NULL) {
        return one;
    }
    one = calloc(1, sizeof *one);
    if (one == NULL ||
        (one->acquired = calloc(the_machine.thread_count, sizeof *one->acquired)) == NULL) {
        free(one);
        abort_run("out of memory");
        return NULL;
    }
    one->map = map;
    one->next = all_maps;
    all_maps = one;
    return one;
}

bool edited_map_watched(const tensor_map *map)
{
    return map != NULL && watch(map) != NULL;
}

/* In the place of an older one of the same agent, if that has completed: it comes later. */
static void keep_reader(watched_map *one, touch by, touch also)
{
    for (uint32_t i = 0; i < one->reader_count; i++) {
        map_reader *kept = &one->readers[i];
        if (touch_agent(kept->by) == touch_agent(by) &&
            touch_agent(kept->also) == touch_agent(also) &&
            touch_clock(kept->by) != TOUCH_IN_FLIGHT) {
            *kept = (map_reader){by, also};
            return;
        }
    }
    if (one->reader_count == one->reader_capacity) {
        const uint32_t capacity = one->reader_capacity ? 2 * one->reader_capacity : 16;
        map_reader *readers = realloc(one->readers, capacity * sizeof *readers);
        if (readers == NULL) {
            abort_run("out of memory");
            return;
        }
        one->readers = readers;
        one->reader_capacity = capacity;
    }
    one->readers[one->reader_count++] = (map_reader){by, also};
}

void edited_map_use(const thread *self, const emu_site *site, const tensor_map *map, touch by,
                    touch also)
{
    watched_map *one = map == NULL ? NULL : watch(map);
    if (one == NULL) {
        return;
    }
    if (one->version != 0 && one->acquired[self->index] != one->version) {
        hazard(self, "l", site, one->write_site,
               "the tensor map was edited, and this thread has not acquired it by "
               "fence_proxy_tensormap_acquire since");
    }
    keep_reader(one, by, also);
}

void edited_map_read_complete(const tensor_map *map, uint32_t agent, uint32_t clock,
                              touch in_flight)
{
    watched_map *one = map == NULL ? NULL : find(map);
    for (uint32_t i = 0; one != NULL && i < one->reader_count; i++) {
        if (one->readers[i].by == in_flight) {
            one->readers[i].by = touch_make(agent, clock, touch_site(in_flight), true);
            return;
        }
    }
}

/* Checks an edit; false if it cannot be made. */
static bool edit_begin(thread *self, const emu_site *site, tensor_map *map, tensor_shape *shape)
{
    if (!global_allowed(self, site, map, sizeof *map, true) ||
        !tensor_map_check(self, site, map, 0, shape)) {
        return false;
    }
    watched_map *one = watch(map);
    if (one == NULL) {
        return false;
    }
    const observer by = thread_observer(self, site);
    for (uint32_t i = 0; i < one->reader_count; i++) {
        const map_reader *reader = &one->readers[i];
        if (!shadow_ordered(&by, reader->by) && !shadow_ordered(&by, reader->also)) {
            hazard(self, "l", site, site_numbered(touch_site(reader->by)),
                   "edits a tensor map that this copy may still read");
        }
    }
    if (one->version != 0 && self->vc[one->writer->index] < one->write_clock) {
        hazard(self, "l", site, one->write_site,
               "edits a tensor map with no order after another edit");
    }
    one->version++;
    one->writer = self;
    one->write_site = site;
    one->write_clock = thread_clock(self);
    one->release_clock = 0;
    return true;
}

void emu_tensormap_replace_global_address(tensor_map *map, const void *address, emu_site *site)
{
    thread *self = thread_enter(site);
    tensor_shape shape;
    if (edit_begin(self, site, map, &shape)) {
        shape.address = (uint64_t)(uintptr_t)address;
        tensor_map_store(map, &shape);
    }
}

void emu_tensormap_replace_global_dim(tensor_map *map, uint32_t ord, uint32_t value, emu_site *site)
{
    thread *self = thread_enter(site);
    tensor_shape shape;
    if (edit_begin(self, site, map, &shape) && ord < 3) {
        shape.dims[ord] = value;
        tensor_map_store(map, &shape);
    }
}

void emu_tensormap_replace_global_stride(tensor_map *map, uint32_t ord, uint64_t bytes,
                                         emu_site *site)
{
    thread *self = thread_enter(site);
    tensor_shape shape;
    if (edit_begin(self, site, map, &shape) && ord < 2) {
        shape.strides[ord + 1] = bytes; /* ord 0: between rows */
        tensor_map_store(map, &shape);
    }
}

void emu_fence_proxy_tensormap_release(emu_site *site)
{
    thread *self = thread_enter(site);
    if (site_removed(site)) {
        return;
    }
    for (watched_map *one = all_maps; one != NULL; one = one->next) {
        if (one->writer == self && one->release_clock == 0) {
            one->release_clock = thread_clock(self);
        }
    }
    thread_release(self);
}

void emu_fence_proxy_tensormap_acquire(const tensor_map *map, emu_site *site)
{
    thread *self = thread_enter(site);
    watched_map *one = site_removed(site) ? NULL : find(map);
    if (one == NULL || one->version == 0) {
        return;
    }
    if (one->release_clock == 0 || self->vc[one->writer->index] < one->release_clock) {
        hazard(self, "l", site, one->write_site,
               "acquires a tensor map whose edit was not released by fence_proxy_tensormap_release "
               "and "
               "ordered before this");
        return;
    }
    one->acquired[self->index] = one->version;
}
