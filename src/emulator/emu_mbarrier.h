/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mbarrier objects: 64-bit barriers in shared memory with phases.
 */
#ifndef HALFBYTE_EMULATOR_EMU_MBARRIER_H
#define HALFBYTE_EMULATOR_EMU_MBARRIER_H

#include "emulator/machine.h"

struct mbarrier {
    block *block;
    uint32_t address;
    bool live;
    uint32_t count;   /* arrivals a phase */
    uint32_t pending; /* left in this phase */
    int64_t tx;       /* bytes expected and not counted yet; may be negative for a while */
    uint32_t phase;   /* the one that is not complete; never goes back, also over another init */
    uint32_t first_phase;  /* since the last init */
    uint32_t observed;     /* the latest phase number at which some thread's wait returned */
    uint32_t copied_phase; /* the latest in which bytes were counted, plus one; 0 = none */
    const emu_site *copied_site;
    uint32_t agent;             /* of the copies that complete here */
    uint32_t *vc, *f;           /* joined by this phase's arrivals */
    uint32_t *done_vc, *done_f; /* of the last complete phase */
    const thread *init_thread;
    uint32_t init_clock;
    uint32_t fence_clock; /* of init_thread at its fence_mbarrier_init; 0 = not fenced */
    const emu_site *init_site;
    uint32_t *seen; /* by thread of the block: one more than the phase number that its last wait
                       returned at; 0 = never waited */
    wait_list waiters;
};

/* Resolves a shared address of the thread's block, or of its cluster: block and offset.  NULL if
 * the block does not exist. */
block *smem_resolve(const thread *self, smem_addr address, uint32_t *offset);

/* The barrier that the thread may use at address, which is reported if it may not; NULL: none. */
mbarrier *mbarrier_use(const thread *self, smem_addr address, const emu_site *site);

void mbarrier_expect(mbarrier *b, const thread *self, const emu_site *site, uint32_t bytes);

/* One arrival that publishes vc and f; self is NULL where no thread of the machine is at fault. */
void mbarrier_arrive_with(mbarrier *b, const thread *self, const emu_site *site, const uint32_t *vc,
                          const uint32_t *f);

/* Counts the bytes of a copy; returns the clock of its agent at which the copy is visible. */
uint32_t mbarrier_complete_tx(mbarrier *b, const emu_site *site, uint32_t bytes);

/* The agent's clock that a phase stands for. */
static inline uint32_t mbarrier_phase_clock(uint32_t phase)
{
    return phase + 1;
}

/* Whether [address, address + bytes) touches a live barrier; then that barrier, else NULL. */
const mbarrier *mbarrier_touched(const block *owner, uint32_t address, uint32_t bytes);

/* Block's end: phases with bytes that nobody waited for. */
void mbarriers_at_exit(const block *owner);

#endif
