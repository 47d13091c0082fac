/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/machine.h"

#include <stdarg.h>
#include <string.h>

machine the_machine;

uint32_t agent_new(agent_kind kind, const void *owner)
{
    const uint32_t agent = clock_new_agent(&the_machine.clocks);
    if (agent == UINT32_MAX) {
        abort_run("too many agents");
        return 0;
    }
    the_machine.agents[agent] = (agent_info){kind, owner};
    return agent;
}

uint32_t *machine_clock(void)
{
    uint32_t *made = clock_new(&the_machine.clocks);
    if (made == NULL) {
        abort_run("too many clocks");
        return the_machine.clocks.words;
    }
    return made;
}

/* A spare vector's first words hold the address of the next. */
static uint32_t *spare_take(void)
{
    machine *m = &the_machine;
    uint32_t *taken = m->spare_clock;
    if (taken == NULL) {
        return machine_clock();
    }
    memcpy(&m->spare_clock, taken, sizeof m->spare_clock);
    clock_clear(&m->clocks, taken);
    return taken;
}

static void spare_return(uint32_t *clock)
{
    memcpy(clock, &the_machine.spare_clock, sizeof the_machine.spare_clock);
    the_machine.spare_clock = clock;
}

void spare_clocks_take(uint32_t **vc, uint32_t **f)
{
    *vc = spare_take();
    *f = spare_take();
}

void spare_clocks_return(uint32_t *vc, uint32_t *f)
{
    spare_return(vc);
    spare_return(f);
}

/* splitmix64 */
uint32_t machine_random(uint32_t limit)
{
    uint64_t z = the_machine.random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(((z ^ z >> 31) >> 32) * limit >> 32);
}

void hazard(const thread *self, const char *class_letter, const emu_site *site,
            const emu_site *other, const char *format, ...)
{
    const finding_key key = {class_letter, site, NULL, other, self->block->index, self->in_block};
    char *message = report_count(the_machine.report, &key);
    if (message != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message, sizeof((emu_finding *)0)->message, format, arguments);
        va_end(arguments);
    }
}

void abort_run(const char *why)
{
    const thread *self = the_machine.running;
    the_machine.stopped = true;
    if (why != NULL && self != NULL) {
        hazard(self, "memory", self->site, NULL, "the emulator gives up: %s", why);
    }
}
