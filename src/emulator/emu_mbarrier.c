/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mbarrier machine.  PTX ISA 9.7.13.15.
 */
#include "emulator/emu_mbarrier.h"

#include <stdlib.h>

#include "emulator/schedule.h"

enum { MAX_TX = (1 << 20) - 1 };

block *smem_resolve(const thread *self, smem_addr address, uint32_t *offset)
{
    const uint32_t rank = address >> SMEM_RANK_SHIFT;
    *offset = address & (((uint32_t)1 << SMEM_RANK_SHIFT) - 1);
    if (rank == 0) {
        return self->block;
    }
    const cluster *c = self->block->cluster;
    return rank <= c->block_count ? &c->blocks[rank - 1] : NULL;
}

const mbarrier *mbarrier_touched(const block *owner, uint32_t address, uint32_t bytes)
{
    if (owner->barrier_count == 0) {
        return NULL;
    }
    for (uint32_t i = address / 8; i <= (address + bytes - 1) / 8; i++) {
        if (owner->barrier_at[i] != 0) {
            const mbarrier *b = owner->barriers[owner->barrier_at[i] - 1];
            if (b->live) {
                return b;
            }
        }
    }
    return NULL;
}

static mbarrier *at_address(const block *owner, uint32_t offset)
{
    if (offset % 8 != 0 || offset < SMEM_START || offset + 8 > owner->smem_end ||
        owner->barrier_at[offset / 8] == 0) {
        return NULL;
    }
    return owner->barriers[owner->barrier_at[offset / 8] - 1];
}

mbarrier *mbarrier_use(const thread *self, smem_addr address, const emu_site *site)
{
    uint32_t offset;
    const block *owner = smem_resolve(self, address, &offset);
    mbarrier *b = owner == NULL ? NULL : at_address(owner, offset);
    if (b == NULL || !b->live) {
        hazard(self, "h", site, b != NULL ? b->init_site : NULL,
               "no mbarrier at shared address 0x%x: %s", address,
               b != NULL ? "it was invalidated" : "not initialised (yet)");
        return NULL;
    }
    const uint32_t known = self->vc[b->init_thread->index];
    if (b->init_thread != self && known < b->init_clock) {
        hazard(self, "h", site, b->init_site,
               "the mbarrier's init by thread %u is not ordered before this use",
               b->init_thread->in_block);
    } else if (owner != self->block && (b->fence_clock == 0 || known < b->fence_clock)) {
        hazard(
            self, "h", site, b->init_site,
            "used from another block, but its init was not followed by fence_mbarrier_init and a "
            "cluster barrier");
    }
    return b;
}

/* Ends the phase if nothing is missing. */
static void settle(mbarrier *b)
{
    const clock_table *clocks = &the_machine.clocks;
    if (b->pending != 0 || b->tx != 0) {
        return;
    }
    uint32_t *vc = b->done_vc, *f = b->done_f;
    b->done_vc = b->vc;
    b->done_f = b->f;
    if (b->done_vc[b->agent] < mbarrier_phase_clock(b->phase)) {
        b->done_vc[b->agent] = mbarrier_phase_clock(b->phase);
    }
    b->vc = vc;
    b->f = f;
    clock_clear(clocks, b->vc);
    clock_clear(clocks, b->f);
    b->phase++;
    b->pending = b->count;
    wait_list_wake(&b->waiters);
}

static void add_tx(mbarrier *b, int64_t bytes)
{
    b->tx += bytes;
    the_machine.progress++;
    settle(b);
}

static void check_range(const mbarrier *b, const thread *self, const emu_site *site)
{
    if (b->tx > MAX_TX || b->tx < -MAX_TX) {
        hazard(self, "d", site, b->init_site, "transaction count %lld outside +-(2^20 - 1)",
               (long long)b->tx);
    }
}

void mbarrier_expect(mbarrier *b, const thread *self, const emu_site *site, uint32_t bytes)
{
    b->tx += bytes;
    check_range(b, self, site);
    b->tx -= bytes;
    add_tx(b, bytes);
}

uint32_t mbarrier_complete_tx(mbarrier *b, const emu_site *site, uint32_t bytes)
{
    const uint32_t phase = b->phase;
    b->copied_phase = phase + 1;
    b->copied_site = site;
    add_tx(b, -(int64_t)bytes);
    return mbarrier_phase_clock(phase);
}

void mbarrier_arrive_with(mbarrier *b, const thread *self, const emu_site *site, const uint32_t *vc,
                          const uint32_t *f)
{
    if (b->pending == 0) {
        hazard(
            self, "d", site, b->init_site,
            "arrival number %u at an mbarrier for %u, in phase %u that still waits for %lld bytes",
            b->count + 1, b->count, b->phase - b->first_phase, (long long)b->tx);
        return;
    }
    if (b->phase > b->first_phase && b->observed < b->phase) {
        hazard(self, "d", site, b->init_site,
               "arrives for phase %u before any thread has waited for phase %u",
               b->phase - b->first_phase, b->phase - b->first_phase - 1);
    }
    clock_join(&the_machine.clocks, b->vc, vc);
    clock_join(&the_machine.clocks, b->f, f);
    b->pending--;
    the_machine.progress++;
    settle(b);
}

/* A barrier object for the address, found again or new; NULL if there is no room. */
static mbarrier *barrier_object(block *owner, uint32_t offset)
{
    mbarrier *b = at_address(owner, offset);
    if (b != NULL) {
        return b;
    }
    if (owner->barrier_count == MBARRIERS_A_BLOCK || (b = calloc(1, sizeof *b)) == NULL ||
        (b->seen = calloc(owner->thread_count, sizeof *b->seen)) == NULL) {
        free(b);
        abort_run("no room for another mbarrier");
        return NULL;
    }
    b->block = owner;
    b->address = offset;
    b->agent = agent_new(AGENT_COPY, b);
    b->vc = machine_clock();
    b->f = machine_clock();
    b->done_vc = machine_clock();
    b->done_f = machine_clock();
    owner->barriers[owner->barrier_count++] = b;
    owner->barrier_at[offset / 8] = (uint16_t)owner->barrier_count;
    return b;
}

void emu_mbarrier_init(smem_addr bar, uint32_t count, emu_site *site)
{
    thread *self = thread_enter(site);
    block *owner = self->block;
    if (bar % 8 != 0 || bar < SMEM_START || bar + 8 > owner->smem_end) {
        hazard(self, "memory", site, NULL, "mbarrier at shared address 0x%x: misaligned or outside",
               bar);
        return;
    }
    mbarrier *b = barrier_object(owner, bar);
    if (b == NULL) {
        return;
    }
    if (b->live) {
        hazard(self, "h", site, b->init_site,
               "initialises a live mbarrier again, without mbarrier_inval");
    }
    const observer by = thread_observer(self, site);
    shadow_write(owner, bar, 8, &by);
    owner->smem_version++;
    b->live = true;
    b->count = b->pending = site_count(site, count, 1);
    b->tx = 0;
    b->first_phase = b->phase = b->phase + (b->init_site != NULL);
    b->observed = b->phase;
    b->init_thread = self;
    b->init_clock = thread_clock(self);
    b->fence_clock = 0;
    b->init_site = site;
    clock_clear(&the_machine.clocks, b->vc);
    clock_clear(&the_machine.clocks, b->f);
}

void emu_mbarrier_inval(smem_addr bar, emu_site *site)
{
    thread *self = thread_enter(site);
    mbarrier *b = mbarrier_use(self, bar, site);
    if (b != NULL) {
        const observer by = thread_observer(self, site);
        b->live = false;
        shadow_write(b->block, b->address, 8, &by);
    }
}

void emu_fence_mbarrier_init(emu_site *site)
{
    thread *self = thread_enter(site);
    if (site_removed(site)) {
        return;
    }
    for (uint32_t i = 0; i < self->block->barrier_count; i++) {
        mbarrier *b = self->block->barriers[i];
        if (b->init_thread == self && b->fence_clock == 0) {
            b->fence_clock = thread_clock(self);
        }
    }
    thread_release(self);
}

static void arrive(thread *self, mbarrier *b, const emu_site *site)
{
    mbarrier_arrive_with(b, self, site, self->vc, self->f);
    thread_release(self);
}

static mbarrier *local_barrier(thread *self, smem_addr bar, const emu_site *site)
{
    if (bar >> SMEM_RANK_SHIFT != 0) {
        hazard(self, "p", site, NULL, "%s on the barrier of another block: use the cluster form",
               site->instruction);
        return NULL;
    }
    return mbarrier_use(self, bar, site);
}

void emu_mbarrier_arrive(smem_addr bar, emu_site *site)
{
    thread *self = thread_enter(site);
    mbarrier *b = site_removed(site) ? NULL : local_barrier(self, bar, site);
    if (b != NULL) {
        arrive(self, b, site);
    }
}

void emu_mbarrier_expect_tx(smem_addr bar, uint32_t bytes, emu_site *site)
{
    thread *self = thread_enter(site);
    mbarrier *b = site_removed(site) ? NULL : local_barrier(self, bar, site);
    if (b != NULL) {
        mbarrier_expect(b, self, site, site_count(site, bytes, 16));
    }
}

void emu_mbarrier_arrive_expect_tx(smem_addr bar, uint32_t bytes, emu_site *site)
{
    thread *self = thread_enter(site);
    mbarrier *b = site_removed(site) ? NULL : local_barrier(self, bar, site);
    if (b != NULL) {
        mbarrier_expect(b, self, site, site_count(site, bytes, 16));
        arrive(self, b, site);
    }
}

/* The phase of this parity has completed: the current one has the other. */
static bool parity_done(const mbarrier *b, uint32_t parity)
{
    return ((b->phase - b->first_phase) & 1) != (parity & 1);
}

/* A wait returns: joins the last complete phase. */
static void observe(thread *self, mbarrier *b, const emu_site *site)
{
    uint32_t *seen = &b->seen[self->in_block];
    if (*seen == b->phase + 1) {
        hazard(
            self, "d", site, b->init_site,
            "returns at once for a phase that this thread has waited for before (phase %u is not "
            "complete): wrong parity",
            b->phase - b->first_phase);
    }
    *seen = b->phase + 1;
    if (b->phase > b->first_phase) {
        b->observed = b->phase;
        thread_acquire(self, b->done_vc, b->done_f);
    }
}

static bool wait_phase(smem_addr bar, uint32_t parity, emu_site *site, bool timed)
{
    thread *self = thread_enter(site);
    const emu_mutation mutation = site_mutation(site);
    mbarrier *b = mutation == EMU_MUTATE_REMOVE ? NULL : local_barrier(self, bar, site);
    if (b == NULL) {
        return true;
    }
    parity ^= mutation == EMU_MUTATE_FLIP_PARITY;
    self->timed = timed;
    self->timed_out = false;
    while (!parity_done(b, parity) && !self->timed_out) {
        thread_block(self, WAIT_MBARRIER, b, parity, &b->waiters);
    }
    self->timed = false;
    if (!parity_done(b, parity)) {
        return false;
    }
    observe(self, b, site);
    return true;
}

bool emu_mbarrier_try_wait(smem_addr bar, uint32_t parity, emu_site *site)
{
    return wait_phase(bar, parity, site, true);
}

void emu_mbarrier_wait(smem_addr bar, uint32_t parity, emu_site *site)
{
    wait_phase(bar, parity, site, false);
}

void mbarriers_at_exit(const block *owner)
{
    for (uint32_t i = 0; i < owner->barrier_count; i++) {
        const mbarrier *b = owner->barriers[i];
        if (b->live && b->copied_phase > b->first_phase && b->observed < b->copied_phase) {
            hazard(b->init_thread, owner->cluster->block_count > 1 ? "i" : "d", b->copied_site,
                   b->init_site,
                   "the block ends, but no thread has waited for phase %u of the mbarrier "
                   "that this copy completes on",
                   b->copied_phase - 1 - b->first_phase);
        }
    }
}
