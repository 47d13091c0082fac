/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendezvous of the lanes of a warp.
 */
#ifndef HALFBYTE_EMULATOR_EMU_WARP_H
#define HALFBYTE_EMULATOR_EMU_WARP_H

#include "emulator/machine.h"

typedef enum meeting {
    MEETING_ALIGNED, /* .sync.aligned: one and the same instruction of the source */
    MEETING_ANY      /* instructions of one name, wherever they stand */
} meeting;

/*
 * Waits for all lanes.  True in one of them, while the others are still held: it does what the warp
 * does together, then warp_part().  False in the others, after that.
 */
bool warp_meet(thread *self, emu_site *site, meeting kind);
void warp_part(warp *w);

/* A lane returns: those that wait for it must not wait for ever. */
void warp_lane_exits(thread *self);

/* All lanes take over each other's clocks. */
void warp_join_clocks(warp *w);

#endif
