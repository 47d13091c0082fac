/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Global memory: the registry of buffers, and what two grids under programmatic dependent launch
 * did to them.
 */
#ifndef HALFBYTE_EMULATOR_BUFFERS_H
#define HALFBYTE_EMULATOR_BUFFERS_H

#include "emulator/api.h"

/* Sites of a 4-byte cell's accesses, 0 = none; only kept when two grids run. */
typedef struct grid_cell {
    uint16_t first_read, first_write; /* by the first grid */
    uint16_t early_read, early_write; /* by the second, before it knew the first to have ended */
} grid_cell;

typedef struct buffer {
    const uint8_t *data;
    size_t bytes;
    char *name;
    bool writable;
    grid_cell *cells;
} buffer;

struct emu_memory {
    buffer *buffers;
    size_t count, capacity;
    size_t last; /* index of the buffer that was found last */
};

/* The buffer that [address, address + bytes) lies in, NULL if none. */
buffer *memory_find(emu_memory *memory, const void *address, size_t bytes);

/* The buffer nearest to address, and how far before (negative) or past its end that lies; NULL if
 * there is no buffer. */
const buffer *memory_nearest(const emu_memory *memory, const void *address, int64_t *distance);

/* Starts or ends (cells freed) the record of accesses by two grids.  False if memory is out. */
bool memory_watch(emu_memory *memory);
void memory_unwatch(emu_memory *memory);

#endif
