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

/* Whether copies through the map are followed; map may be NULL. */
bool edited_map_watched(const tensor_map *map);

/* A copy through the map was issued, which has read it when `by` or `also` has happened: a copy
 * into shared memory by its mbarrier's phase (in flight so far) or by its bulk group, a store by
 * its group. */
void edited_map_use(const thread *self, const emu_site *site, const tensor_map *map, touch by,
                    touch also);

/* A copy that was in flight is complete: at this clock of its agent. */
void edited_map_read_complete(const tensor_map *map, uint32_t agent, uint32_t clock,
                              touch in_flight);

void edited_maps_forget(void);

#endif
