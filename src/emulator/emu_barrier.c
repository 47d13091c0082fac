/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers of a block.  PTX ISA 9.7.13.1.
 */
#include <string.h>

#include "emulator/schedule.h"

enum { WARP_STEP = 32 }; /* a mutant's thread counts are off by a warp */

static bool usable(const thread *self, const emu_site *site, uint32_t id, uint32_t threads)
{
    if (id >= NAMED_BARRIERS) {
        hazard(self, "k", site, NULL, "barrier %u: there are 16", id);
        return false;
    }
    if (threads % LANES != 0 || threads == 0 || threads > self->block->thread_count) {
        hazard(self, "k", site, NULL,
               "barrier %u for %u threads: not a number of whole warps of the block's %u threads",
               id, threads, self->block->thread_count);
        return threads != 0;
    }
    return true;
}

static void check_arrival(const thread *self, const emu_site *site, const named_barrier *barrier,
                          uint32_t threads)
{
    if (barrier->arrived == 0) {
        return;
    }
    if (barrier->expected != threads) {
        hazard(self, "k", site, barrier->site,
               "barrier %u for %u threads here, for %u there, in one generation", barrier->id,
               threads, barrier->expected);
    }
    if (barrier->came[self->in_block / 32] >> self->lane & 1) {
        hazard(self, "k", site, barrier->site,
               "thread %u arrives at barrier %u again before the barrier has completed",
               self->in_block, barrier->id);
    }
}

/* .aligned: the lanes of a warp come from one place. */
static void check_aligned(const thread *self, const emu_site *site)
{
    for (int lane = 0; lane < LANES; lane++) {
        const thread *other = &self->warp->threads[lane];
        if (other->wait == WAIT_NAMED && other->wait_on != NULL && other->site->id != site->id &&
            other->wait_object == &self->block->named[0]) {
            hazard(self, "k", site, other->site,
                   "lanes of warp %u execute block_sync at different places", self->warp->in_block);
            return;
        }
    }
}

/* All that wait take over what all that came have published. */
static void complete(named_barrier *barrier)
{
    for (thread *one = barrier->waiters.first; one != NULL; one = one->wait_next) {
        thread_acquire(one, barrier->vc, barrier->f);
        one->wait_value = 1;
    }
    barrier->arrived = 0;
    memset(barrier->came, 0, sizeof barrier->came);
    clock_clear(&the_machine.clocks, barrier->vc);
    clock_clear(&the_machine.clocks, barrier->f);
    wait_list_wake(&barrier->waiters);
}

static void arrive(thread *self, emu_site *site, uint32_t id, uint32_t threads, bool wait)
{
    named_barrier *barrier = &self->block->named[id];
    const clock_table *clocks = &the_machine.clocks;
    barrier->id = id;
    check_arrival(self, site, barrier, threads);
    if (barrier->vc == NULL) {
        barrier->vc = machine_clock();
        barrier->f = machine_clock();
    }
    if (barrier->arrived == 0) {
        barrier->expected = threads;
        barrier->site = site;
    }
    barrier->arrived++;
    barrier->came[self->in_block / 32] |= (uint32_t)1 << self->lane;
    clock_join(clocks, barrier->vc, self->vc);
    clock_join(clocks, barrier->f, self->f);
    thread_release(self);
    const bool last = barrier->arrived >= barrier->expected;
    if (last && wait) {
        thread_acquire(self, barrier->vc, barrier->f);
    }
    if (last) {
        complete(barrier);
    } else if (wait) {
        thread_block(self, WAIT_NAMED, barrier, 0, &barrier->waiters);
        while (self->wait_value == 0) {
            thread_block(self, WAIT_NAMED, barrier, 0, &barrier->waiters);
        }
    }
}

void emu_block_sync(emu_site *site)
{
    thread *self = thread_enter(site);
    if (!site_removed(site)) {
        check_aligned(self, site);
        arrive(self, site, 0, self->block->thread_count, true);
    }
}

void emu_barrier_sync(uint32_t id, uint32_t threads, emu_site *site)
{
    thread *self = thread_enter(site);
    threads = site_count(site, threads, WARP_STEP);
    if (!site_removed(site) && usable(self, site, id, threads)) {
        arrive(self, site, id, threads, true);
    }
}

void emu_barrier_arrive(uint32_t id, uint32_t threads, emu_site *site)
{
    thread *self = thread_enter(site);
    threads = site_count(site, threads, WARP_STEP);
    if (!site_removed(site) && usable(self, site, id, threads)) {
        arrive(self, site, id, threads, false);
    }
}
