/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warps: rendezvous, and the instructions that are little more.
 */
#include "emulator/emu_warp.h"

#include <string.h>

#include "emulator/schedule.h"

enum { ALL_LANES = -1 };

static bool complete(const warp *w)
{
    return (w->present | w->exited) == (uint32_t)ALL_LANES;
}

static void check_same(thread *self, emu_site *site, meeting kind)
{
    const emu_site *first = self->warp->meeting;
    if (site->id == first->id ||
        (kind == MEETING_ANY && strcmp(site->instruction, first->instruction) == 0)) {
        return;
    }
    hazard(self, "m", site, first,
           "lanes of warp %u execute different instructions: %s here, %s there",
           self->warp->in_block, site->instruction, first->instruction);
}

bool warp_meet(thread *self, emu_site *site, meeting kind)
{
    warp *w = self->warp;
    if (w->present == 0) {
        w->meeting = site;
    } else {
        check_same(self, site, kind);
    }
    w->present |= (uint32_t)1 << self->lane;
    const uint32_t generation = w->generation;
    while (!complete(w)) {
        thread_block(self, WAIT_WARP, w, 0, &w->lanes);
        if (w->generation != generation) {
            return false;
        }
    }
    if (w->exited != 0) {
        hazard(self, "m", site, NULL, "executed by %d lanes of warp %u, the others have returned",
               __builtin_popcount(w->present), w->in_block);
    }
    if (kind == MEETING_ALIGNED && the_machine.config.relaxed) {
        warp_join_clocks(w);
    }
    return true;
}

void warp_part(warp *w)
{
    w->present = 0;
    w->generation++;
    wait_list_wake(&w->lanes);
}

void warp_lane_exits(thread *self)
{
    warp *w = self->warp;
    w->exited |= (uint32_t)1 << self->lane;
    if (w->present != 0 && complete(w)) {
        wait_list_wake(&w->lanes);
    }
}

void warp_join_clocks(warp *w)
{
    const clock_table *clocks = &the_machine.clocks;
    thread *first = &w->threads[0];
    for (int i = 1; i < LANES; i++) {
        clock_join(clocks, first->vc, w->threads[i].vc);
        clock_join(clocks, first->f, w->threads[i].f);
    }
    for (int i = 1; i < LANES; i++) {
        clock_copy(clocks, w->threads[i].vc, first->vc);
        clock_copy(clocks, w->threads[i].f, first->f);
    }
    for (int i = 0; i < LANES; i++) {
        thread_release(&w->threads[i]);
    }
}

void emu_warp_sync(emu_site *site)
{
    thread *self = thread_enter(site);
    if (site_removed(site)) {
        return;
    }
    if (warp_meet(self, site, MEETING_ANY)) {
        warp_join_clocks(self->warp);
        warp_part(self->warp);
    }
}

/* Every lane gives a value and gets the values of all. */
static const uint64_t *exchange(thread *self, emu_site *site, uint64_t value)
{
    warp *w = self->warp;
    uint64_t *values = w->exchange[w->generation & 1];
    values[self->lane] = value;
    if (warp_meet(self, site, MEETING_ANY)) {
        warp_part(w);
    }
    return values;
}

/* The leader is the same each time, as PTX says, but any lane may be it. */
bool emu_elect_one(emu_site *site)
{
    thread *self = thread_enter(site);
    const uint32_t leader =
        the_machine.config.order == EMU_SHUFFLED ? (uint32_t)(the_machine.config.seed % LANES) : 0;
    exchange(self, site, 0);
    return self->lane == leader;
}

uint32_t emu_shuffle_u32(uint32_t value, uint32_t lane, emu_site *site)
{
    return (uint32_t)exchange(thread_enter(site), site, value)[lane % LANES];
}

uint32_t emu_shuffle_xor_u32(uint32_t value, uint32_t mask, emu_site *site)
{
    thread *self = thread_enter(site);
    return (uint32_t)exchange(self, site, value)[(self->lane ^ mask) % LANES];
}

uint32_t emu_vote_count(bool predicate, emu_site *site)
{
    const uint64_t *values = exchange(thread_enter(site), site, predicate);
    uint32_t count = 0;
    for (int i = 0; i < LANES; i++) {
        count += values[i] != 0;
    }
    return count;
}
