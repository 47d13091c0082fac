/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that instructions which touch memory share.
 */
#ifndef HALFBYTE_EMULATOR_COPY_H
#define HALFBYTE_EMULATOR_COPY_H

#include "emulator/machine.h"
#include "emulator/tensor_map.h"

/* Global memory [address, address + bytes): false, and reported, if it is in no buffer or must not
 * be written.  Under two grids also what their order demands. */
bool global_allowed(const thread *self, const emu_site *site, const void *address, size_t bytes,
                    bool write);

/* Whether the bytes lie in a buffer; reports nothing. */
bool memory_readable(uint64_t address, size_t bytes);

/* A map for an instruction of `dims` dimensions (0: of any); false, and reported, if it is none. */
bool tensor_map_check(const thread *self, const emu_site *site, const tensor_map *map,
                      uint32_t dims, tensor_shape *shape);

/* What a box has of its tensor, as global_allowed(). */
bool box_allowed(const thread *self, const emu_site *site, const tensor_shape *shape,
                 const int32_t at[3], bool write);

/* emu_cluster.c: whether another block's memory can be touched now: it has begun (the thread
 * knows), and has not ended.  The own block always can. */
bool remote_allowed(const thread *self, const emu_site *site, const block *target);

/* Keeps an access to another block, which must not end before it. */
void remote_keep(const thread *self, const emu_site *site, block *target);
void remotes_at_exit(block *owner);

/* emu_store.c: bulk groups also cover the reading of a map by a copy into shared memory. */
uint32_t bulk_current_group(thread *self);
touch bulk_read_touch(const thread *self, uint32_t group, const emu_site *site);
void bulk_map_was_read(thread *issuer);

/* emu_store.c, emu_cp_async.c: a thread returns. */
void bulk_at_exit(thread *self);
void cp_async_at_exit(thread *self);
void bulk_free(thread *self);
void cp_async_free(thread *self);

#endif
