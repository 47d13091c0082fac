/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp.async: copies of 4, 8 or 16 bytes by ordinary threads.  PTX ISA 9.7.9.25.3, 9.7.13.15.15.
 *
 * They write in the generic proxy, so that an asynchronous reader needs fence_proxy_async after the
 * wait.
 */
#include <stdlib.h>
#include <string.h>

#include "emulator/copy.h"
#include "emulator/emu_mbarrier.h"
#include "emulator/operation.h"
#include "emulator/schedule.h"
#include "emulator/stored.h"

/* Copies of one thread, numbered from 1; groups by the number of their last copy. */
typedef struct copy_groups {
    uint32_t agent;
    uint32_t issued; /* copies */
    uint32_t committed;
    uint32_t group_end[64];  /* by group mod 64: number of its last copy */
    uint32_t waited;         /* copies up to this one */
    operation *first, *last; /* copies that are not complete, in order of issue */
    const emu_site *last_site;
    wait_list waiters;
} copy_groups;

enum { GROUPS_KEPT = 64 };

static copy_groups *groups_of(thread *self)
{
    if (self->copies == NULL) {
        self->copies = calloc(1, sizeof *self->copies);
        if (self->copies == NULL) {
            static copy_groups spare; /* the run ends at the next switch */
            abort_run("out of memory");
            self->copies = &spare;
        }
        self->copies->agent = agent_new(AGENT_CP_ASYNC, self);
    }
    return self->copies;
}

void cp_async_free(thread *self)
{
    free(self->copies);
    self->copies = NULL;
}

static bool advance_copy(operation *self);

static const operation_kind copy_kind = {"cp.async", advance_copy, NULL, NULL, true, false};

/* Copies up to number `last` of the thread are complete. */
static bool complete_up_to(const thread *self, uint32_t last)
{
    const operation *oldest = self->copies->first;
    return oldest == NULL || touch_clock(oldest->load.mark) > last;
}

static void unlink_copy(copy_groups *groups, operation *self)
{
    operation **at = &groups->first;
    operation *before = NULL;
    while (*at != self) {
        before = *at;
        at = &(*at)->load.next_of_thread;
    }
    *at = self->load.next_of_thread;
    if (groups->last == self) {
        groups->last = before;
    }
}

static bool advance_copy(operation *self)
{
    const load_operation *load = &self->load;
    if (memory_readable((uint64_t)(uintptr_t)load->source, load->bytes)) {
        memcpy(load->target->smem + load->address, load->source, load->bytes);
        load->target->smem_version++;
    }
    unlink_copy(self->issuer->copies, self);
    wait_list_wake(&self->issuer->copies->waiters);
    return true;
}

static void copy(smem_addr dst, const void *src, uint32_t bytes, emu_site *site)
{
    thread *self = thread_enter(site);
    copy_groups *groups = groups_of(self);
    block *owner = self->block;
    if (dst % bytes != 0 || dst < SMEM_START || dst + bytes > owner->smem_end ||
        (uintptr_t)src % bytes != 0) {
        hazard(self, "memory", site, NULL,
               "cp.async to shared address 0x%x from %p: outside, or no multiples of %u", dst, src,
               bytes);
        return;
    }
    global_allowed(self, site, src, bytes, false);
    stores_check_read(self, site, src, bytes);
    const mbarrier *hit = mbarrier_touched(owner, dst, bytes);
    if (hit != NULL) {
        hazard(self, "h", site, hit->init_site, "cp.async to the bytes of a live mbarrier");
    }
    groups->issued++;
    groups->last_site = site;
    operation *issued = operation_new(&copy_kind, self, site);
    issued->load =
        (load_operation){.source = src,
                         .bytes = bytes,
                         .target = owner,
                         .address = dst,
                         .mark = touch_make(groups->agent, groups->issued, site->id, false)};
    observer by = thread_observer(self, site);
    by.self = issued->load.mark;
    shadow_write(owner, dst, bytes, &by);
    memset(owner->smem + dst, the_machine.config.poison, bytes);
    owner->smem_version++;
    *(groups->last != NULL ? &groups->last->load.next_of_thread : &groups->first) = issued;
    groups->last = issued;
    operation_issue(issued);
}

void emu_cp_async_4(smem_addr dst, const void *src, emu_site *site)
{
    copy(dst, src, 4, site);
}

void emu_cp_async_8(smem_addr dst, const void *src, emu_site *site)
{
    copy(dst, src, 8, site);
}

void emu_cp_async_16(smem_addr dst, const void *src, emu_site *site)
{
    copy(dst, src, 16, site);
}

void emu_cp_async_commit(emu_site *site)
{
    thread *self = thread_enter(site);
    copy_groups *groups = groups_of(self);
    if (!site_removed(site)) {
        groups->committed++;
        groups->group_end[groups->committed % GROUPS_KEPT] = groups->issued;
    }
}

void emu_cp_async_wait(uint32_t pending, emu_site *site)
{
    thread *self = thread_enter(site);
    copy_groups *groups = groups_of(self);
    if (site_removed(site)) {
        return;
    }
    pending += site_mutation(site) == EMU_MUTATE_WEAKEN;
    if (groups->committed <= pending || pending >= GROUPS_KEPT) {
        return;
    }
    const uint32_t last = groups->group_end[(groups->committed - pending) % GROUPS_KEPT];
    while (!complete_up_to(self, last)) {
        thread_block(self, WAIT_CP_ASYNC, self, last, &groups->waiters);
    }
    if (self->vc[groups->agent] < last) {
        self->vc[groups->agent] = last;
        groups->waited = last;
    }
}

static bool copies_complete(const operation *self)
{
    return complete_up_to(self->issuer, self->arrive.after_copies);
}

static bool advance_arrive(operation *self)
{
    mbarrier_arrive_with(self->arrive.barrier, self->issuer, self->site, self->arrive.vc,
                         self->arrive.f);
    spare_clocks_return(self->arrive.vc, self->arrive.f);
    return true;
}

static const operation_kind arrive_kind = {
    "arrive after cp.async", advance_arrive, copies_complete, NULL, false, false};

/* Publishes the copies, and nothing else that the thread did. */
void emu_cp_async_mbarrier_arrive_noinc(smem_addr bar, emu_site *site)
{
    thread *self = thread_enter(site);
    mbarrier *b = site_removed(site) ? NULL : mbarrier_use(self, bar, site);
    if (b == NULL) {
        return;
    }
    copy_groups *groups = groups_of(self);
    operation *issued = operation_new(&arrive_kind, self, site);
    issued->arrive.barrier = b;
    issued->arrive.after_copies = groups->issued;
    spare_clocks_take(&issued->arrive.vc, &issued->arrive.f);
    issued->arrive.vc[groups->agent] = groups->issued;
    groups->waited = groups->issued;
    operation_issue(issued);
}

void cp_async_at_exit(thread *self)
{
    const copy_groups *groups = self->copies;
    if (groups != NULL && groups->waited < groups->issued) {
        hazard(self, "m", groups->last_site, NULL,
               "the thread returns, but nothing waits for this cp.async");
    }
}
