/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which schedules a kernel is run under: every policy with every order, and draws over all axes.
 */
#ifndef HALFBYTE_EMULATOR_HARNESS_SCHEDULES_H
#define HALFBYTE_EMULATOR_HARNESS_SCHEDULES_H

#include "emulator/emulator.h"

/* What the axes range over. */
typedef struct schedule_axes {
    size_t first_site; /* emu_site_count() before the kernel's first run: its sites follow */
    uint32_t warps;    /* of a block: one of them may be starved */
} schedule_axes;

/*
 * The schedule of policy and order.  seed feeds the random ones and chooses the delayed site (none
 * before a run has met one: then EARLIEST), the starved warp and the poison; 0 takes the first
 * site, warp 0 and poison 0xff.
 */
emu_config schedule_make(const schedule_axes *axes, emu_policy policy, emu_order order,
                         uint64_t seed);

/*
 * The deterministic schedules in a fixed order: every policy but RANDOM, DELAY_SITE for each site,
 * with every order but SHUFFLED, STARVE_WARP for the first warp and the last.  The first one needs
 * no sites; the number of all is right once a run has met them.
 */
size_t schedule_count(const schedule_axes *axes);
emu_config schedule_at(const schedule_axes *axes, size_t index);

/* Is it in the share-th part of them?  Each of the eight parts has every other policy in one order;
 * share counts on after the last. */
bool schedule_in_share(size_t index, size_t share);

/* A draw over all axes. */
emu_config schedule_draw(const schedule_axes *axes, uint64_t seed);

#endif
