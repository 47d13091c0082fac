/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/operation.h"

#include <stdlib.h>
#include <string.h>

/* RANDOM: at issue one in 2 completes, at a switch of threads one in 16 advances something. */
enum { RANDOM_AT_ISSUE = 2, RANDOM_AT_SWITCH = 16 };

operation *operation_new(const operation_kind *kind, thread *issuer, const emu_site *site)
{
    operation *made = the_machine.free_operations;
    if (made != NULL) {
        the_machine.free_operations = made->next;
        memset(made, 0, sizeof *made);
    } else {
        made = calloc(1, sizeof *made);
        if (made == NULL) {
            abort_run("out of memory");
            static operation spare; /* the run ends at the next switch */
            memset(&spare, 0, sizeof spare);
            made = &spare;
        }
    }
    made->kind = kind;
    made->issuer = issuer;
    made->site = site;
    made->sequence = the_machine.issued++;
    return made;
}

static void enqueue(operation *self)
{
    self->previous = the_machine.last;
    self->next = NULL;
    *(the_machine.last != NULL ? &the_machine.last->next : &the_machine.first) = self;
    the_machine.last = self;
    the_machine.pending++;
}

static void retire(operation *self)
{
    *(self->previous != NULL ? &self->previous->next : &the_machine.first) = self->next;
    *(self->next != NULL ? &self->next->previous : &the_machine.last) = self->previous;
    self->next = the_machine.free_operations;
    the_machine.free_operations = self;
    the_machine.pending--;
}

static bool free_to_go(const operation *self)
{
    return self->kind->free_to_go == NULL || self->kind->free_to_go(self);
}

/* One stage; true if that was the last. */
static bool advance(operation *self)
{
    the_machine.progress++;
    if (!self->kind->advance(self)) {
        self->stage++;
        return false;
    }
    retire(self);
    return true;
}

void operation_complete(operation *self)
{
    while (!advance(self)) {
    }
}

void operation_issue(operation *self)
{
    const emu_policy policy = the_machine.config.policy;
    enqueue(self);
    if (!free_to_go(self)) {
        return;
    }
    if (policy == EMU_EARLIEST || (policy == EMU_DELAY_SITE && !site_delayed(self->site)) ||
        (policy == EMU_RANDOM && machine_random(RANDOM_AT_ISSUE) == 0)) {
        operation_complete(self);
    } else if (policy == EMU_TORN && self->kind->halves) {
        advance(self);
    }
}

/* DELAY_SITE: what had to wait for a delayed operation goes on as soon as that is complete. */
static bool eager(const operation *self)
{
    return the_machine.config.policy == EMU_DELAY_SITE && !site_delayed(self->site);
}

static operation *choose(void)
{
    operation *chosen = NULL;
    if (the_machine.config.policy == EMU_LIFO) {
        for (operation *one = the_machine.last; one != NULL; one = one->previous) {
            if (free_to_go(one)) {
                return one;
            }
        }
        return NULL;
    }
    uint32_t skip =
        the_machine.config.policy == EMU_RANDOM ? machine_random(the_machine.pending) : 0;
    for (operation *one = the_machine.first; one != NULL; one = one->next) {
        if (!free_to_go(one)) {
            continue;
        }
        if (eager(one)) {
            return one;
        }
        if (chosen == NULL || skip > 0) {
            skip -= chosen != NULL;
            chosen = one;
        }
    }
    return chosen;
}

bool operations_advance_one(void)
{
    operation *chosen = the_machine.pending == 0 ? NULL : choose();
    if (chosen == NULL) {
        return false;
    }
    advance(chosen);
    return true;
}

void operations_tick(void)
{
    if (the_machine.config.policy == EMU_RANDOM && the_machine.pending > 0 &&
        machine_random(RANDOM_AT_SWITCH) == 0) {
        operations_advance_one();
    }
}

bool operations_of_grid(uint32_t grid)
{
    for (const operation *one = the_machine.first; one != NULL; one = one->next) {
        if (one->issuer->block->grid == grid) {
            return true;
        }
    }
    return false;
}

const operation *operation_into(const block *target)
{
    for (const operation *one = the_machine.first; one != NULL; one = one->next) {
        if (one->kind->into_block && one->load.target == target) {
            return one;
        }
    }
    return NULL;
}

void operations_discard(void)
{
    while (the_machine.first != NULL) {
        operation *one = the_machine.first;
        if (one->kind->discard != NULL) {
            one->kind->discard(one);
        }
        retire(one);
    }
}
