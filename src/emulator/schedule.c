/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/schedule.h"

#include "emulator/operation.h"

enum {
    DEFAULT_MAX_STEPS = 200000000,
    /* Rounds of giving up all timed waits, with no progress in between, that make a deadlock. */
    FRUITLESS_ROUNDS = 1000,
};

void thread_make_ready(thread *self)
{
    the_machine.ready[self->index / 64] |= (uint64_t)1 << self->index % 64;
}

void wait_list_wake(wait_list *list)
{
    for (thread *one = list->first; one != NULL; one = one->wait_next) {
        one->wait_on = NULL;
        thread_make_ready(one);
    }
    list->first = NULL;
    the_machine.progress++;
}

static bool starved(uint32_t index)
{
    return the_machine.threads[index].warp->in_block == (uint32_t)the_machine.config.starved_warp;
}

static int lowest(uint64_t word)
{
    return __builtin_ctzll(word);
}

/* First ready thread at or after `from`, else the first of all; -1 if none. */
static int64_t next_ready(uint32_t from)
{
    const machine *m = &the_machine;
    uint64_t mask = ~(uint64_t)0 << from % 64;
    for (uint32_t i = 0; i <= m->ready_words; i++) {
        const uint32_t word = (from / 64 + i) % m->ready_words;
        if (m->ready[word] & mask) {
            return (int64_t)word * 64 + lowest(m->ready[word] & mask);
        }
        mask = ~(uint64_t)0;
    }
    return -1;
}

static int64_t highest_ready(void)
{
    const machine *m = &the_machine;
    for (uint32_t word = m->ready_words; word-- > 0;) {
        if (m->ready[word]) {
            return (int64_t)word * 64 + 63 - __builtin_clzll(m->ready[word]);
        }
    }
    return -1;
}

static int64_t ready_but_not_starved(void)
{
    const machine *m = &the_machine;
    int64_t spare = -1;
    for (uint32_t word = 0; word < m->ready_words; word++) {
        for (uint64_t left = m->ready[word]; left != 0; left &= left - 1) {
            const uint32_t index = word * 64 + (uint32_t)lowest(left);
            if (!starved(index)) {
                return index;
            }
            spare = spare < 0 ? index : spare;
        }
    }
    return spare;
}

static thread *pick(void)
{
    int64_t index = -1;
    switch (the_machine.config.order) {
    case EMU_HIGH_FIRST: index = highest_ready(); break;
    case EMU_STARVE_WARP: index = ready_but_not_starved(); break;
    case EMU_SHUFFLED: index = next_ready(machine_random(the_machine.thread_count)); break;
    default: index = next_ready(0); break;
    }
    return index < 0 ? NULL : &the_machine.threads[index];
}

/* From whoever runs to the next thread, or to the scheduler if there is none. */
static void leave(fiber *from)
{
    machine *m = &the_machine;
    operations_tick();
    m->steps++;
    thread *next = m->stopped || m->steps >= m->config.max_steps ? NULL : pick();
    if (next != NULL) {
        m->ready[next->index / 64] &= ~((uint64_t)1 << next->index % 64);
    }
    fiber *to = next != NULL ? &next->fiber : &m->main_fiber;
    m->running = next;
    if (to != from) {
        fiber_switch(from, to);
    }
}

void thread_block(thread *self, wait_kind kind, const void *object, uint64_t value, wait_list *on)
{
    self->wait = kind;
    self->wait_object = object;
    self->wait_value = value;
    self->wait_on = on;
    self->wait_next = on->first;
    on->first = self;
    leave(&self->fiber);
    the_machine.running = self;
    self->wait = WAIT_NOTHING;
}

void thread_finish(thread *self)
{
    self->exited = true;
    the_machine.live--;
    the_machine.progress++;
    for (;;) {
        leave(&self->fiber);
    }
}

static void unlink_waiter(thread *self)
{
    thread **at = &self->wait_on->first;
    while (*at != self) {
        at = &(*at)->wait_next;
    }
    *at = self->wait_next;
    self->wait_on = NULL;
}

/* Lets waits that may give up do so; false if there are none. */
static bool give_up_timed(void)
{
    bool any = false;
    for (uint32_t i = 0; i < the_machine.thread_count; i++) {
        thread *one = &the_machine.threads[i];
        if (one->timed && one->wait_on != NULL) {
            unlink_waiter(one);
            one->timed_out = true;
            thread_make_ready(one);
            any = true;
        }
    }
    return any;
}

static void endless_report(void)
{
    const thread *self = &the_machine.threads[0];
    for (uint32_t i = 0; i < the_machine.thread_count && self->exited; i++) {
        self = &the_machine.threads[i];
    }
    hazard(self, "d", self->site, NULL, "no end after %llu thread switches",
           (unsigned long long)the_machine.steps);
}

void schedule_run(void)
{
    machine *m = &the_machine;
    uint64_t progress = 0;
    uint32_t fruitless = 0;
    if (m->config.max_steps == 0) {
        m->config.max_steps = DEFAULT_MAX_STEPS;
    }
    while (!m->stopped) {
        leave(&m->main_fiber);
        if (m->stopped) {
            break;
        }
        grid_check_start();
        if (m->steps >= m->config.max_steps) {
            endless_report();
            m->stopped = true;
        } else if (operations_advance_one()) {
            continue;
        } else if (m->live == 0) {
            break;
        } else {
            fruitless = progress == m->progress ? fruitless + 1 : 0;
            progress = m->progress;
            if (fruitless > FRUITLESS_ROUNDS || !give_up_timed()) {
                deadlock_report();
                m->stopped = true;
            }
        }
    }
}
