/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters: their barrier, the shared memory of other blocks, arrivals there.
 * PTX ISA 9.7.13.3, 9.7.9.23.
 */
#include <stdlib.h>

#include "emulator/copy.h"
#include "emulator/emu_mbarrier.h"
#include "emulator/operation.h"
#include "emulator/schedule.h"

static void cluster_complete(cluster *c)
{
    const uint32_t parity = c->generation & 1;
    uint32_t *vc = c->done_vc[parity], *f = c->done_f[parity];
    c->done_vc[parity] = c->vc;
    c->done_f[parity] = c->f;
    c->vc = vc;
    c->f = f;
    clock_clear(&the_machine.clocks, c->vc);
    clock_clear(&the_machine.clocks, c->f);
    c->arrived = 0;
    c->generation++;
    wait_list_wake(&c->waiters);
}

void emu_cluster_arrive(emu_site *site)
{
    thread *self = thread_enter(site);
    cluster *c = self->block->cluster;
    if (site_removed(site)) {
        return;
    }
    if (self->cluster_arrived) {
        hazard(self, "k", site, NULL, "arrives at the cluster barrier twice without cluster_wait");
        return;
    }
    if (c->vc == NULL) {
        c->vc = machine_clock();
        c->f = machine_clock();
        for (int i = 0; i < 2; i++) {
            c->done_vc[i] = machine_clock();
            c->done_f[i] = machine_clock();
        }
    }
    self->cluster_arrived = true;
    self->cluster_generation = c->generation;
    clock_join(&the_machine.clocks, c->vc, self->vc);
    clock_join(&the_machine.clocks, c->f, self->f);
    thread_release(self);
    c->arrived++;
    if (c->arrived >= c->live) {
        cluster_complete(c);
    }
}

void emu_cluster_wait(emu_site *site)
{
    thread *self = thread_enter(site);
    cluster *c = self->block->cluster;
    if (site_removed(site)) {
        return;
    }
    if (!self->cluster_arrived) {
        hazard(self, "k", site, NULL, "cluster_wait without cluster_arrive before it");
        return;
    }
    while (c->generation == self->cluster_generation) {
        thread_block(self, WAIT_CLUSTER, c, 0, &c->waiters);
    }
    self->cluster_arrived = false;
    const uint32_t parity = self->cluster_generation & 1;
    thread_acquire(self, c->done_vc[parity], c->done_f[parity]);
}

void cluster_thread_exits(thread *self)
{
    cluster *c = self->block->cluster;
    c->live--;
    if (c->arrived > 0 && c->arrived >= c->live) {
        cluster_complete(c);
    }
}

smem_addr emu_map_shared_rank(smem_addr addr, uint32_t rank, emu_site *site)
{
    thread *self = thread_enter(site);
    if (rank >= self->block->cluster->block_count) {
        hazard(self, "i", site, NULL, "rank %u in a cluster of %u blocks", rank,
               self->block->cluster->block_count);
        rank = self->block->rank;
    }
    return (addr & (((uint32_t)1 << SMEM_RANK_SHIFT) - 1)) | (rank + 1) << SMEM_RANK_SHIFT;
}

bool remote_allowed(const thread *self, const emu_site *site, const block *target)
{
    if (target == self->block) {
        return true;
    }
    if (target->live == 0) {
        hazard(self, "i", site, NULL, "block %u of the cluster has ended", target->index);
        return false;
    }
    for (uint32_t i = 0; i < target->thread_count; i++) {
        if (self->vc[target->threads[i].index] != 0) {
            return true;
        }
    }
    hazard(self, "i", site, NULL,
           "touches block %u of the cluster before a cluster barrier has shown that it runs",
           target->index);
    return true;
}

void remote_keep(const thread *self, const emu_site *site, block *target)
{
    remote_access *kept = target->remote;
    while (kept != NULL && touch_agent(kept->by) != self->index) {
        kept = kept->next;
    }
    if (kept == NULL) {
        kept = malloc(sizeof *kept);
        if (kept == NULL) {
            abort_run("out of memory");
            return;
        }
        kept->next = target->remote;
        target->remote = kept;
    }
    kept->by = touch_make(self->index, thread_clock(self), site->id, false);
}

void remotes_at_exit(block *owner)
{
    for (const remote_access *one = owner->remote; one != NULL; one = one->next) {
        bool known = false;
        for (uint32_t i = 0; i < owner->thread_count && !known; i++) {
            known = owner->threads[i].vc[touch_agent(one->by)] >= touch_clock(one->by);
        }
        if (!known) {
            hazard(&the_machine.threads[touch_agent(one->by)], "i",
                   site_numbered(touch_site(one->by)), NULL,
                   "nothing orders this touch before the end of block %u, whose memory it touches",
                   owner->index);
        }
    }
}

static bool advance(operation *self)
{
    mbarrier *b = self->arrive.barrier;
    self->issuer->arrivals_under_way--;
    if (b->block->live == 0) {
        hazard(self->issuer, "i", self->site, NULL, "block %u has ended before this arrival came",
               b->block->index);
    } else {
        mbarrier_arrive_with(b, self->issuer, self->site, self->arrive.vc, self->arrive.f);
    }
    spare_clocks_return(self->arrive.vc, self->arrive.f);
    return true;
}

static const operation_kind arrive_kind = {"arrive", advance, NULL, NULL, false, false};

void arrivals_complete(thread *self)
{
    operation *next;
    for (operation *one = the_machine.first; one != NULL; one = next) {
        next = one->next;
        if (one->kind == &arrive_kind && one->issuer == self) {
            operation_complete(one);
        }
    }
}

/* Takes its time on the way to the other block, but not past the thread's next release: it is an
 * ordinary operation of the thread, not an asynchronous one. */
void emu_mbarrier_arrive_cluster(smem_addr bar, emu_site *site)
{
    thread *self = thread_enter(site);
    mbarrier *b = site_removed(site) ? NULL : mbarrier_use(self, bar, site);
    if (b == NULL || !remote_allowed(self, site, b->block)) {
        return;
    }
    if (b->block == self->block) {
        mbarrier_arrive_with(b, self, site, self->vc, self->f);
        thread_release(self);
        return;
    }
    operation *issued = operation_new(&arrive_kind, self, site);
    issued->arrive.barrier = b;
    spare_clocks_take(&issued->arrive.vc, &issued->arrive.f);
    clock_copy(&the_machine.clocks, issued->arrive.vc, self->vc);
    clock_copy(&the_machine.clocks, issued->arrive.f, self->f);
    remote_keep(self, site, b->block);
    thread_release(self);
    self->arrivals_under_way++;
    operation_issue(issued);
}
