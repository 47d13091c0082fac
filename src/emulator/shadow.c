/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/conflict.h"
#include "emulator/machine.h"

/* More readers of a cell than fit inline: the latest read of each agent.  The cell's first inline
 * read then names the list. */
typedef struct read_list {
    uint32_t capacity;
    uint32_t next_free; /* while no cell uses it: number of the next such list */
    touch by_agent[];
} read_list;

enum { LIST_AGENT = 0xffff };

bool shadow_create(shadow *s, uint32_t bytes)
{
    *s = (shadow){.cells = (bytes + 3) / 4, .low = (bytes + 3) / 4};
    s->writes = calloc(s->cells, sizeof *s->writes);
    s->reads = aligned_alloc(64, s->cells * sizeof *s->reads);
    if (s->writes == NULL || s->reads == NULL) {
        shadow_destroy(s);
        return false;
    }
    memset(s->reads, 0, s->cells * sizeof *s->reads);
    return true;
}

void shadow_destroy(shadow *s)
{
    free(s->writes);
    free(s->reads);
    for (uint32_t i = 0; i < s->list_count; i++) {
        free(s->lists[i]);
    }
    free(s->lists);
    *s = (shadow){0};
}

void shadow_clear(shadow *s)
{
    if (s->low < s->high) {
        memset(s->writes + s->low, 0, (s->high - s->low) * sizeof *s->writes);
        memset(s->reads + s->low, 0, (s->high - s->low) * sizeof *s->reads);
    }
    for (uint32_t i = 0; i < s->list_count; i++) {
        free(s->lists[i]);
    }
    s->list_count = 0;
    s->free_list = 0;
    s->low = s->cells;
    s->high = 0;
}

bool shadow_ordered(const observer *by, touch earlier)
{
    const uint32_t agent = touch_agent(earlier);
    const uint32_t clock = touch_clock(earlier);
    return by->vc[agent] >= clock && (!by->async || touch_async(earlier) || by->f[agent] >= clock);
}

/* The number, from 1, of an empty list; 0 if memory is out. */
static uint32_t list_take(shadow *s)
{
    const uint32_t number = s->free_list;
    if (number != 0) {
        read_list *list = s->lists[number - 1];
        s->free_list = list->next_free;
        memset(list->by_agent, 0, list->capacity * sizeof list->by_agent[0]);
        return number;
    }
    if (s->list_count == s->list_capacity) {
        const uint32_t room = s->list_capacity ? 2 * s->list_capacity : 64;
        read_list **lists = realloc(s->lists, room * sizeof *lists);
        if (lists == NULL) {
            return 0;
        }
        s->lists = lists;
        s->list_capacity = room;
    }
    const uint32_t capacity = the_machine.clocks.used;
    read_list *list = calloc(1, sizeof *list + capacity * sizeof list->by_agent[0]);
    if (list == NULL) {
        return 0;
    }
    list->capacity = capacity;
    s->lists[s->list_count] = list;
    return ++s->list_count;
}

static void list_give_back(shadow *s, touch named)
{
    const uint32_t number = touch_clock(named);
    s->lists[number - 1]->next_free = s->free_list;
    s->free_list = number;
}

static void list_add(shadow *s, touch *reads, touch self)
{
    read_list **list = &s->lists[touch_clock(reads[0]) - 1];
    const uint32_t agent = touch_agent(self);
    if (agent >= (*list)->capacity) {
        const uint32_t capacity = the_machine.clocks.used;
        read_list *larger = realloc(*list, sizeof **list + capacity * sizeof(*list)->by_agent[0]);
        if (larger == NULL) {
            return;
        }
        memset(larger->by_agent + larger->capacity, 0,
               (capacity - larger->capacity) * sizeof larger->by_agent[0]);
        larger->capacity = capacity;
        *list = larger;
    }
    (*list)->by_agent[agent] = self;
}

/* Moves the inline reads of a cell into a list; false if memory is out. */
static bool list_start(shadow *s, touch *reads)
{
    touch inline_reads[SHADOW_READS];
    const uint32_t number = list_take(s);
    if (number == 0) {
        return false;
    }
    memcpy(inline_reads, reads, sizeof inline_reads);
    memset(reads, 0, sizeof inline_reads);
    reads[0] = touch_make(LIST_AGENT, number, 0, false);
    for (int i = 0; i < SHADOW_READS; i++) {
        list_add(s, reads, inline_reads[i]);
    }
    return true;
}

static inline void keep_read(shadow *s, touch *reads, touch self)
{
    const uint64_t agent_bits = (uint64_t)0xffff << 32;
    for (int i = 0; i < SHADOW_READS; i++) {
        if (reads[i] == 0 || ((reads[i] ^ self) & agent_bits) == 0) {
            reads[i] = self;
            return;
        }
        if (i == 0 && touch_agent(reads[0]) == LIST_AGENT) {
            break;
        }
    }
    if (touch_agent(reads[0]) == LIST_AGENT || list_start(s, reads)) {
        list_add(s, reads, self);
    }
}

static inline void widen(shadow *s, uint32_t first, uint32_t end)
{
    s->low = first < s->low ? first : s->low;
    s->high = end > s->high ? end : s->high;
}

void shadow_read(block *owner, uint32_t address, uint32_t bytes, const observer *by)
{
    shadow *s = &owner->shadow;
    const uint32_t end = (address + bytes + 3) / 4;
    touch fine = 0; /* a write that was found to be ordered */
    if (the_machine.config.no_clocks) {
        return;
    }
    widen(s, address / 4, end);
    for (uint32_t cell = address / 4; cell < end; cell++) {
        const touch write = s->writes[cell];
        if (write != fine) {
            if (shadow_ordered(by, write)) {
                fine = write;
            } else {
                conflict_report(owner, cell * 4, write, true, by, false);
            }
        }
        keep_read(s, s->reads[cell], by->self);
    }
}

/* relaxed: what was read in the ordinary way may be overwritten asynchronously without a fence. */
static bool read_ordered(const observer *by, touch read)
{
    return shadow_ordered(by, read) ||
           (the_machine.config.relaxed && by->vc[touch_agent(read)] >= touch_clock(read));
}

static void check_reads(block *owner, uint32_t cell, const observer *by)
{
    shadow *s = &owner->shadow;
    const touch *reads = s->reads[cell];
    uint32_t count = SHADOW_READS;
    if (touch_agent(reads[0]) == LIST_AGENT) {
        const read_list *list = s->lists[touch_clock(reads[0]) - 1];
        reads = list->by_agent;
        count = list->capacity;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (reads[i] != 0 && !read_ordered(by, reads[i])) {
            conflict_report(owner, cell * 4, reads[i], false, by, true);
        }
    }
}

void shadow_write(block *owner, uint32_t address, uint32_t bytes, const observer *by)
{
    shadow *s = &owner->shadow;
    const uint32_t end = (address + bytes + 3) / 4;
    static const touch none[SHADOW_READS];
    touch fine = 0;
    touch fine_reads[SHADOW_READS] = {0}; /* of a cell that was checked */
    if (the_machine.config.no_clocks) {
        return;
    }
    widen(s, address / 4, end);
    for (uint32_t cell = address / 4; cell < end; cell++) {
        const touch write = s->writes[cell];
        if (write != fine) {
            if (shadow_ordered(by, write)) {
                fine = write;
            } else {
                conflict_report(owner, cell * 4, write, true, by, true);
            }
        }
        s->writes[cell] = by->self;
        if (s->reads[cell][0] != 0) {
            if (memcmp(s->reads[cell], fine_reads, sizeof fine_reads) != 0) {
                check_reads(owner, cell, by);
                memcpy(fine_reads, s->reads[cell], sizeof fine_reads);
            }
            if (touch_agent(s->reads[cell][0]) == LIST_AGENT) {
                list_give_back(s, s->reads[cell][0]);
            }
            memcpy(s->reads[cell], none, sizeof none);
        }
    }
}

void shadow_complete(block *owner, uint32_t address, uint32_t bytes, touch before, touch after)
{
    const uint32_t end = (address + bytes + 3) / 4;
    for (uint32_t cell = address / 4; cell < end; cell++) {
        if (owner->shadow.writes[cell] == before) {
            owner->shadow.writes[cell] = after;
        }
    }
}
