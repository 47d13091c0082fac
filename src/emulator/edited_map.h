/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps in global memory that kernels edit: who reads them, and who may.
 *
 * Only maps in a registered buffer can be edited, so only those are watched; maps among the
 * kernel's parameters cost nothing.
 */
#ifndef HALFBYTE_EMULATOR_EDITED_MAP_H
#define HALFBYTE_EMULATOR_EDITED_MAP_H

#include "emulator/machine.h"

/* A copy through the map was issued; reader: its access, in flight or with its group.  map may be
 * NULL: nothing to do. */
void tensormap_use(const thread *self, const emu_site *site, const tensor_map *map, touch reader);

/* The copy has read the map: a reader `in_flight` of the agent gets this clock. */
void tensormap_read_complete(const tensor_map *map, uint32_t agent, uint32_t clock,
                             touch in_flight);

void tensormaps_forget(void);

#endif
