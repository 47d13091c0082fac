/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shadow of a block's shared memory: who wrote each 4 bytes last, and who has read them since.
 */
#ifndef HALFBYTE_EMULATOR_SHADOW_H
#define HALFBYTE_EMULATOR_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/hopper/emulated/instructions.h"

/*
 * An access in one word: clock in bits 0..31, agent in 32..47, site in 48..62, bit 63:
 * asynchronous. 0 = none; clocks begin at 1.
 */
typedef uint64_t touch;

#define TOUCH_IN_FLIGHT UINT32_MAX /* the clock of a copy that has not completed */

static inline touch touch_make(uint32_t agent, uint32_t clock, uint32_t site, bool async)
{
    return (uint64_t)clock | (uint64_t)agent << 32 | (uint64_t)site << 48 | (uint64_t)async << 63;
}

static inline uint32_t touch_clock(touch a)
{
    return (uint32_t)a;
}

static inline uint32_t touch_agent(touch a)
{
    return (uint32_t)(a >> 32) & 0xffff;
}

static inline uint32_t touch_site(touch a)
{
    return (uint32_t)(a >> 48) & 0x7fff;
}

static inline bool touch_async(touch a)
{
    return a >> 63;
}

enum { SHADOW_READS = 8 };

typedef struct shadow {
    touch *writes;                /* [cells] */
    touch (*reads)[SHADOW_READS]; /* [cells]; the first 0 ends the list */
    uint32_t cells;
    uint32_t low, high;       /* cells that were ever written or read: [low, high) */
    struct read_list **lists; /* reads of the cells that have more, one an agent */
    uint32_t list_count, list_capacity;
    uint32_t free_list; /* number of a list that no cell uses, 0 = none */
} shadow;

struct thread;
struct block;

/* Who makes an access and what it may rely on. */
typedef struct observer {
    const uint32_t *vc, *f;
    const struct thread *thread; /* that executes or issued it */
    const emu_site *site;
    touch self;
    bool async;
} observer;

bool shadow_create(shadow *s, uint32_t bytes);
void shadow_destroy(shadow *s);
void shadow_clear(shadow *s);

/* The access of `bytes` at address is checked against those before, reported, and kept. */
void shadow_read(struct block *owner, uint32_t address, uint32_t bytes, const observer *by);
void shadow_write(struct block *owner, uint32_t address, uint32_t bytes, const observer *by);

/* Changes the write record of the bytes, where it is `before`. */
void shadow_complete(struct block *owner, uint32_t address, uint32_t bytes, touch before,
                     touch after);

/* Whether the observer may rely on an access having happened. */
bool shadow_ordered(const observer *by, touch earlier);

#endif
