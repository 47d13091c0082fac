/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nobody can run: who waits for what.
 */
#include "emulator/emu_mbarrier.h"
#include "emulator/emu_wgmma.h"
#include "emulator/schedule.h"
#include "emulator/text.h"

static const char *class_of(wait_kind kind)
{
    switch (kind) {
    case WAIT_NAMED: return "k";
    case WAIT_CLUSTER: return "i";
    case WAIT_REGISTERS: return "n";
    case WAIT_WARP:
    case WAIT_WGMMA: return "m";
    case WAIT_GRID:
    case WAIT_LAUNCH: return "j";
    default: return "d";
    }
}

static bool same_wait(const thread *a, const thread *b)
{
    return !b->exited && a->block == b->block && a->wait == b->wait && a->site == b->site &&
           a->wait_object == b->wait_object;
}

/* "threads 0-31, 64": those of the block that wait like this one. */
static void say_threads(text_writer *to, const thread *like)
{
    const block *owner = like->block;
    bool first = true;
    text_append(to, "deadlock: threads ");
    for (uint32_t i = 0; i < owner->thread_count; i++) {
        uint32_t end = i;
        while (end < owner->thread_count && same_wait(like, &owner->threads[end])) {
            end++;
        }
        if (end > i) {
            text_append(to, "%s%u", first ? "" : ", ", i);
            if (end > i + 1) {
                text_append(to, "-%u", end - 1);
            }
            first = false;
            i = end;
        }
    }
}

static void say_object(text_writer *to, const thread *self)
{
    const mbarrier *b = self->wait_object;
    const named_barrier *named = self->wait_object;
    const cluster *c = self->wait_object;
    switch (self->wait) {
    case WAIT_MBARRIER:
        text_append(
            to,
            " wait for parity %u of the mbarrier at 0x%x in phase %u: %u of %u arrivals missing, "
            "transaction count %lld",
            (unsigned)self->wait_value, b->address, b->phase - b->first_phase, b->pending, b->count,
            (long long)b->tx);
        break;
    case WAIT_NAMED:
        text_append(to, " wait at barrier %u: %u of %u threads have come", named->id,
                    named->arrived, named->expected);
        break;
    case WAIT_CLUSTER:
        text_append(to, " wait at the cluster barrier: %u of %u threads have come", c->arrived,
                    c->live);
        break;
    case WAIT_REGISTERS:
        text_append(
            to,
            " wait for %u registers a thread (now %u): the warp needs %lld more, the pool has %lld",
            (unsigned)self->wait_value, self->warp->registers,
            (long long)((int64_t)self->wait_value - self->warp->registers) * LANES,
            (long long)self->block->free_registers);
        break;
    case WAIT_WARP:
        text_append(to, " wait for the other lanes of warp %u (here: 0x%08x)", self->warp->in_block,
                    self->warp->present);
        break;
    case WAIT_GRID: text_append(to, " wait for the end of the preceding grid"); break;
    case WAIT_LAUNCH:
        text_append(
            to, " cannot start: the preceding grid has neither ended nor launched its dependents");
        break;
    default: text_append(to, " wait"); break;
    }
}

static const emu_site *other_place(const thread *self)
{
    switch (self->wait) {
    case WAIT_MBARRIER: return ((const mbarrier *)self->wait_object)->init_site;
    case WAIT_NAMED: {
        const emu_site *site = ((const named_barrier *)self->wait_object)->site;
        return site != NULL && site->id != self->site->id ? site : NULL;
    }
    default: return NULL;
    }
}

void deadlock_report(void)
{
    for (uint32_t i = 0; i < the_machine.thread_count; i++) {
        const thread *self = &the_machine.threads[i];
        if (self->exited) {
            continue;
        }
        const finding_key key = {class_of(self->wait), self->site,         NULL,
                                 other_place(self),    self->block->index, self->in_block};
        char *message = report_count(the_machine.report, &key);
        if (message != NULL) {
            text_writer to = {message, sizeof((emu_finding *)0)->message, 0};
            say_threads(&to, self);
            say_object(&to, self);
        }
    }
}
