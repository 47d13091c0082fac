/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies out of shared memory, and the bulk groups of a thread.  PTX ISA 9.7.9.25, 9.7.9.27.
 */
#include <stdlib.h>
#include <string.h>

#include "emulator/copy.h"
#include "emulator/edited_map.h"
#include "emulator/emu_mbarrier.h"
#include "emulator/operation.h"
#include "emulator/schedule.h"
#include "emulator/stored.h"
#include "model/arith.h"

/* Bulk groups of one thread, numbered from 1. */
typedef struct bulk_groups {
    uint32_t read_agent, done_agent;
    uint32_t committed;
    uint32_t open;                /* operations of the group that is not committed */
    uint32_t waited, waited_read; /* groups */
    const emu_site *last_site;
    operation *first, *last; /* operations that are not complete */
    wait_list waiters;
} bulk_groups;

static bulk_groups *groups_of(thread *self)
{
    if (self->bulk == NULL) {
        self->bulk = calloc(1, sizeof *self->bulk);
        if (self->bulk == NULL) {
            static bulk_groups spare; /* the run ends at the next switch */
            abort_run("out of memory");
            self->bulk = &spare;
        }
        self->bulk->read_agent = agent_new(AGENT_STORE_READ, self);
        self->bulk->done_agent = agent_new(AGENT_STORE_DONE, self);
    }
    return self->bulk;
}

void bulk_free(thread *self)
{
    free(self->bulk);
    self->bulk = NULL;
}

static void add_values(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t element_bytes)
{
    for (uint32_t i = 0; i < bytes; i += element_bytes) {
        if (element_bytes == 4) {
            float a, b;
            memcpy(&a, to + i, 4);
            memcpy(&b, from + i, 4);
            a = add_rn(a, b);
            memcpy(to + i, &a, 4);
        } else {
            uint16_t a, b;
            memcpy(&a, to + i, 2);
            memcpy(&b, from + i, 2);
            a = cvt_bf16(add_rn(bf16_decode(a), bf16_decode(b)));
            memcpy(to + i, &a, 2);
        }
    }
}

/* Rows of the source, out of the swizzle, one after another. */
static void take_rows(const operation *self, const tensor_shape *shape, uint32_t first,
                      uint32_t end)
{
    const uint8_t *smem = self->issuer->block->smem;
    const uint32_t row_bytes = box_row_bytes(shape);
    for (uint32_t row = first; row < end; row++) {
        const uint32_t address = self->store.address + row * box_pitch(shape);
        for (uint32_t i = 0; i < row_bytes; i += 16) {
            memcpy(self->store.taken + row * row_bytes + i,
                   smem + swizzled(address + i, shape->swizzle), 16);
        }
    }
}

static void take_half(const operation *self, uint32_t half)
{
    const store_operation *store = &self->store;
    if (store->map == NULL) {
        const uint32_t middle = store->bytes / 32 * 16;
        const uint32_t first = half ? middle : 0;
        memcpy(store->taken + first, self->issuer->block->smem + store->address + first,
               (half ? store->bytes : middle) - first);
    } else {
        const uint32_t rows = box_rows(&self->shape);
        take_rows(self, &self->shape, half ? rows / 2 : 0, half ? rows : rows / 2);
    }
}

static void write_out(const operation *self)
{
    const store_operation *store = &self->store;
    const tensor_shape *shape = &self->shape;
    if (store->map == NULL) {
        memcpy(store->target, store->taken, store->bytes);
        return;
    }
    for (uint32_t row = 0; row < box_rows(shape); row++) {
        const box_row part = box_row_at(shape, store->at, row);
        uint8_t *to = (uint8_t *)(uintptr_t)part.source;
        const uint8_t *from = store->taken + row * box_row_bytes(shape) + part.first;
        if (part.count == 0 || !memory_readable(part.source, part.count)) {
            continue;
        }
        if (store->add) {
            add_values(to, from, part.count, shape->element_bytes);
        } else {
            memcpy(to, from, part.count);
        }
    }
}

static void unlink_of_thread(operation *self, bulk_groups *groups)
{
    operation **at = &groups->first;
    operation *before = NULL;
    while (*at != self) {
        before = *at;
        at = &(*at)->store.next_of_thread;
    }
    *at = self->store.next_of_thread;
    if (groups->last == self) {
        groups->last = before;
    }
}

static bool advance(operation *self)
{
    bulk_groups *groups = self->issuer->bulk;
    if (self->stage == 0 && self->store.map != NULL) {
        tensor_map_decode(self->store.map, &self->shape);
    }
    if (self->stage < 2) {
        take_half(self, self->stage);
        if (self->stage == 1) {
            self->store.read = true;
            wait_list_wake(&groups->waiters);
        }
        return false;
    }
    write_out(self);
    free(self->store.taken);
    unlink_of_thread(self, groups);
    wait_list_wake(&groups->waiters);
    return true;
}

static void discard(operation *self)
{
    free(self->store.taken);
}

static const operation_kind store_kind = {"store", advance, NULL, discard, false, true};

static bool source_allowed(thread *self, const emu_site *site, smem_addr src, uint32_t bytes,
                           uint32_t alignment)
{
    if (src >> SMEM_RANK_SHIFT != 0 || src % alignment != 0 || src < SMEM_START ||
        src + bytes > self->block->smem_end) {
        hazard(
            self, "memory", site, NULL,
            "store of %u bytes from shared address 0x%x: outside the block's, or no multiple of %u",
            bytes, src, alignment);
        return false;
    }
    return true;
}

static void issue(thread *self, const emu_site *site, const store_operation *store,
                  uint32_t footprint)
{
    bulk_groups *groups = groups_of(self);
    operation *issued = operation_new(&store_kind, self, site);
    issued->store = *store;
    issued->store.taken = malloc(store->bytes);
    issued->store.group = groups->committed + 1;
    if (issued->store.taken == NULL) {
        abort_run("out of memory");
        return;
    }
    groups->open++;
    groups->last_site = site;
    const observer by = {self->vc,
                         self->f,
                         self,
                         site,
                         touch_make(groups->read_agent, issued->store.group, site->id, true),
                         true};
    shadow_read(self->block, store->address, footprint, &by);
    edited_map_use(self, site, store->map, by.self, by.self);
    stores_keep(self, site, store, groups->done_agent, issued->store.group);
    *(groups->last != NULL ? &groups->last->store.next_of_thread : &groups->first) = issued;
    groups->last = issued;
    operation_issue(issued);
}

void emu_tma_store(const tensor_map *map, smem_addr src, uint32_t dims, const int32_t *coordinates,
                   bool add, emu_site *site)
{
    thread *self = thread_enter(site);
    tensor_shape shape;
    if (!tensor_map_check(self, site, map, dims, &shape)) {
        return;
    }
    if (add && shape.element_bytes != 4 && shape.element_bytes != 2) {
        hazard(self, "memory", site, NULL, "reduction of elements of %u bytes",
               shape.element_bytes);
        return;
    }
    const uint32_t footprint = box_pitch(&shape) * box_rows(&shape);
    store_operation store = {
        .map = map, .add = add, .address = src, .bytes = box_row_bytes(&shape) * box_rows(&shape)};
    memcpy(store.at, coordinates, dims * sizeof store.at[0]);
    if (source_allowed(self, site, src, footprint, 128) &&
        box_allowed(self, site, &shape, store.at, true)) {
        issue(self, site, &store, footprint);
    }
}

void emu_bulk_store(void *dst, smem_addr src, uint32_t bytes, emu_site *site)
{
    thread *self = thread_enter(site);
    const store_operation store = {.target = dst, .address = src, .bytes = bytes};
    if (bytes % 16 != 0 || bytes == 0 || (uintptr_t)dst % 16 != 0) {
        hazard(self, "memory", site, NULL, "bulk store of %u bytes to %p: no multiples of 16",
               bytes, dst);
        return;
    }
    if (source_allowed(self, site, src, bytes, 16) &&
        global_allowed(self, site, dst, bytes, true)) {
        issue(self, site, &store, bytes);
    }
}

void emu_bulk_commit(emu_site *site)
{
    thread *self = thread_enter(site);
    if (!site_removed(site)) {
        bulk_groups *groups = groups_of(self);
        groups->committed++;
        groups->open = 0;
    }
}

uint32_t bulk_current_group(thread *self)
{
    return groups_of(self)->committed + 1;
}

touch bulk_read_touch(const thread *self, uint32_t group, const emu_site *site)
{
    return touch_make(self->bulk->read_agent, group, site->id, true);
}

void bulk_map_was_read(thread *issuer)
{
    if (issuer->bulk != NULL) {
        wait_list_wake(&issuer->bulk->waiters);
    }
}

/* Whether a copy into shared memory still has to read its map, as part of these groups. */
static bool map_unread(const thread *self, uint32_t group)
{
    for (const operation *one = the_machine.first; one != NULL; one = one->next) {
        if (one->kind->into_block && one->issuer == self && one->load.map_group != 0 &&
            one->load.map_group <= group && one->stage == 0) {
            return true;
        }
    }
    return false;
}

/* Whether an operation of the groups up to this one still has to read its source, or to complete.
 */
static bool unfinished(const bulk_groups *groups, uint32_t group, bool read)
{
    for (const operation *one = groups->first; one != NULL; one = one->store.next_of_thread) {
        if (one->store.group <= group && !(read && one->store.read)) {
            return true;
        }
    }
    return false;
}

static void learn(thread *self, uint32_t agent, uint32_t group, uint32_t *waited)
{
    if (self->vc[agent] < group) {
        self->vc[agent] = group;
    }
    if (*waited < group) {
        *waited = group;
    }
}

void emu_bulk_wait(uint32_t pending, bool read, emu_site *site)
{
    thread *self = thread_enter(site);
    bulk_groups *groups = groups_of(self);
    if (site_removed(site)) {
        return;
    }
    pending += site_mutation(site) == EMU_MUTATE_WEAKEN;
    const uint32_t target = groups->committed > pending ? groups->committed - pending : 0;
    while (unfinished(groups, target, read) || map_unread(self, target)) {
        thread_block(self, WAIT_BULK, self, target, &groups->waiters);
    }
    learn(self, groups->read_agent, target, &groups->waited_read);
    if (!read) {
        learn(self, groups->done_agent, target, &groups->waited);
    }
}

void bulk_at_exit(thread *self)
{
    const bulk_groups *groups = self->bulk;
    if (groups != NULL && groups->open > 0) {
        hazard(self, "m", groups->last_site, NULL,
               "the thread returns, but this bulk store was not committed");
    } else if (groups != NULL && groups->waited_read < groups->committed) {
        hazard(self, "g", groups->last_site, NULL,
               "the thread returns before it has waited for the reads of its bulk stores");
    }
}
