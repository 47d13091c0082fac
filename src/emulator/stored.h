/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bulk stores write to global memory: a reader in the same cluster must know the store
 * complete.
 */
#ifndef HALFBYTE_EMULATOR_STORED_H
#define HALFBYTE_EMULATOR_STORED_H

#include "emulator/operation.h"

/* The latest stores are kept; a reader that relies on an older one goes unchecked. */
void stores_keep(const thread *self, const emu_site *site, const store_operation *store,
                 uint32_t done_agent, uint32_t group);
void stores_forget(void);

/* A read of global memory against them. */
void stores_check_read(const thread *self, const emu_site *site, const void *address, size_t bytes);

#endif
