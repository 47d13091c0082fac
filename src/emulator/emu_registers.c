/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setmaxnreg: the block's pool of registers.  PTX ISA 9.7.19.5.
 */
#include "emulator/emu_warp.h"
#include "emulator/emu_wgmma.h"
#include "emulator/schedule.h"

static bool valid(const thread *self, const emu_site *site, uint32_t registers, bool increase)
{
    const uint32_t current = self->warp->registers;
    if (registers < 24 || registers > 256 || registers % 8 != 0) {
        hazard(self, "n", site, NULL, "%u registers: not a multiple of 8 in 24 .. 256", registers);
        return false;
    }
    if (increase ? registers < current : registers > current) {
        hazard(self, "n", site, NULL, "%s to %u registers, but the warp has %u",
               increase ? "increase" : "decrease", registers, current);
        return false;
    }
    return true;
}

void emu_setmaxnreg(uint32_t registers, bool increase, emu_site *site)
{
    thread *self = thread_enter(site);
    block *owner = self->block;
    warp *w = self->warp;
    if (!warp_meet(self, site, MEETING_ALIGNED)) {
        return;
    }
    sequence_check(self, site, registers);
    if (owner->launch->registers != 0 && valid(self, site, registers, increase)) {
        const int64_t more = ((int64_t)registers - w->registers) * LANES;
        while (more > owner->free_registers) {
            thread_block(self, WAIT_REGISTERS, owner, registers, &owner->register_waiters);
        }
        owner->free_registers -= more;
        w->registers = registers;
        if (more < 0) {
            wait_list_wake(&owner->register_waiters);
        }
    }
    warp_part(w);
}
